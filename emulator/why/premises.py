"""The premises of a belief: what another node believed when it gave the answer.

The cause of a view is an answer, and the cause of that is a timer of the node that
asked. Why the answer said what it said is another chain: that of the belief from
which the other node answered.
"""

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, OWNERSHIP, RPC
from emulator.why.words import NodeNames, change, previous, seconds, value_of
from nodes.beliefs import BeliefKind

_TELLERS_KINDS = {
    BeliefKind.ROUTE.value: BeliefKind.ROUTE,
    BeliefKind.MEMBER_GROUP.value: BeliefKind.LIVE_BROKERS,
    BeliefKind.MIN_BROKER.value: BeliefKind.LIVE_BROKERS,
}
"""Mapping kind of a belief -> kind of the belief from which the other node answered."""


@attrs.frozen
class Premise:
    """A belief on which another belief is based."""

    row: TraceRow
    title: str
    """A line that says how the two are related."""


def view_of(trace: TraceRows, owned: TraceRow, until_ns: int | None = None) -> TraceRow | None:
    """The view from which a consumer acquired or dropped a queue, or its newest view at an instant."""
    subject = f"{owned.text('group')}/{owned.text('topic')}"
    until_seq = owned.seq if until_ns is None else None
    return trace.newest(
        BELIEFS,
        kind=BeliefKind.VIEW.value,
        subject=subject,
        node=owned.text("node"),
        incarnation=owned.number("incarnation"),
        until_seq=until_seq,
        until_ns=until_ns,
    )


def assignment_of(trace: TraceRows, owned: TraceRow, until_ns: int | None = None) -> TraceRow | None:
    """The queues that a broker assigned to a consumer when it acquired or dropped one, or at an instant.

    None: the consumer allocates for itself.
    """
    view = view_of(trace, owned, until_ns)
    newest = trace.newest(
        BELIEFS,
        kind=BeliefKind.ASSIGNMENT.value,
        subject=f"{owned.text('group')}/{owned.text('topic')}",
        node=owned.text("node"),
        incarnation=owned.number("incarnation"),
        until_seq=owned.seq if until_ns is None else None,
        until_ns=until_ns,
    )
    is_assigned = newest is not None and newest.text("source") and (view is None or view.seq < newest.seq)
    return newest if is_assigned else None


def premises(trace: TraceRows, row: TraceRow, names: NodeNames) -> tuple[Premise, ...]:
    """The premises of a row: beliefs of other nodes, or of an earlier pass."""
    if row.table is OWNERSHIP:
        return _premises_of_owner(trace, row, names)
    return _premises_of_belief(trace, row, names) if row.table is BELIEFS else ()


def _premises_of_belief(trace: TraceRows, row: TraceRow, names: NodeNames) -> tuple[Premise, ...]:
    kind = row.text("kind")
    found: tuple[Premise, ...] = ()
    if kind == BeliefKind.VIEW:
        found = _premises_of_view(trace, row, names)
    elif kind == BeliefKind.ASSIGNER:
        found = _route_of_assigner(trace, row)
    elif kind == BeliefKind.ALLOCATION:
        found = _members_of_allocation(trace, row)
    elif kind in (BeliefKind.ASSIGNMENT, BeliefKind.EPOCH) and row.text("source"):
        found = _premises_of_assigned(trace, row, names)
    elif kind in _TELLERS_KINDS and row.text("source"):
        found = _premises_of_answer(trace, row, _TELLERS_KINDS[kind], row.text("subject").partition("/")[0], names)
    return found


def _premises_of_owner(trace: TraceRows, row: TraceRow, names: NodeNames) -> tuple[Premise, ...]:
    assigned = assignment_of(trace, row)
    if assigned is not None:
        return _premises_of_assigned(trace, assigned, names)
    view = view_of(trace, row)
    return () if view is None else _premises_of_view(trace, view, names)


def _premises_of_assigned(trace: TraceRows, row: TraceRow, names: NodeNames) -> tuple[Premise, ...]:
    """How an assigner had allocated; any other broker allocates when it is asked, from its list of members."""
    teller, group = names.node(row.text("source")), row.text("subject").partition("/")[0]
    allocated_queues = _held(trace, teller, BeliefKind.ALLOCATION, row.text("subject"), row.seq)
    if allocated_queues is None:
        return _premises_of_answer(trace, row, BeliefKind.CONSUMER_IDS, group, names)
    return (Premise(allocated_queues, f"{teller} sent this; it had allocated the queues:"),)


def _route_of_assigner(trace: TraceRows, row: TraceRow) -> tuple[Premise, ...]:
    node, topic = row.text("node"), row.text("subject").partition("/")[2]
    route = _held(trace, node, BeliefKind.ROUTE, topic, row.seq)
    return () if route is None else (Premise(route, f"it is the first master of the route that {node} held:"),)


def _members_of_allocation(trace: TraceRows, row: TraceRow) -> tuple[Premise, ...]:
    """The members; none if they were the same at the allocation before."""
    node, group = row.text("node"), row.text("subject").partition("/")[0]
    before = previous(trace, row)
    if before is not None and list(value_of(before)["shares"]) == list(value_of(row)["shares"]):
        return ()
    held = _held(trace, node, BeliefKind.CONSUMER_IDS, group, row.seq)
    return () if held is None else (Premise(held, f"{node} allocated them among the members that it held since:"),)


def _premises_of_view(trace: TraceRows, view: TraceRow, names: NodeNames) -> tuple[Premise, ...]:
    before = previous(trace, view)
    if before is None or value_of(view) is None:
        return ()
    group, _, topic = view.text("subject").partition("/")
    different = change(before, view)
    found: list[Premise] = []
    items = (*different.gone, *different.new, *different.changed)
    if any("@" in item for item in items):
        found += _members(trace, before, view, group, names)
    if any("@" not in item for item in items):
        route = _held(trace, view.text("node"), BeliefKind.ROUTE, topic, view.seq)
        if route is not None:
            found.append(Premise(route, f"the queues are those of the route that {view.text('node')} held:"))
    return tuple(found)


def _members(trace: TraceRows, before: TraceRow, view: TraceRow, group: str, names: NodeNames) -> tuple[Premise, ...]:
    """The member list that the view is from; if another broker was asked before, the list that changed last."""
    now, then = names.node(view.text("source")), names.node(before.text("source"))
    if not view.text("source"):
        return ()
    held = _listed(trace, now, group, _answered_at(trace, view))
    if then != now and before.text("source"):
        other = _listed(trace, then, group, view.seq)
        if other is not None and (held is None or other.seq > held.seq):
            node = view.text("node")
            text = f"{node} had its members from {now} this time, and from {then} before ({seconds(before.t_ns)});"
            return (Premise(other, f"{text} {then} held since:"),)
    return () if held is None else (Premise(held, f"{now} gave these members, which it held since:"),)


def _listed(trace: TraceRows, node: str, group: str, until_seq: int) -> TraceRow | None:
    """The members that a broker held, or those that a proxy held of clients of proxies."""
    held = _held(trace, node, BeliefKind.CONSUMER_IDS, group, until_seq)
    return _held(trace, node, BeliefKind.PROXY_MEMBERS, group, until_seq) if held is None else held


def _premises_of_answer(
    trace: TraceRows, row: TraceRow, kind: BeliefKind, subject: str, names: NodeNames
) -> tuple[Premise, ...]:
    teller = names.node(row.text("source"))
    held = _held(trace, teller, kind, subject, _answered_at(trace, row))
    if held is None or teller == row.text("node"):
        return ()
    return (Premise(held, f"{teller} sent this; it held since:"),)


def _held(trace: TraceRows, node: str, kind: BeliefKind, subject: str, until_seq: int) -> TraceRow | None:
    return trace.newest(BELIEFS, kind=kind.value, subject=subject, node=node, until_seq=until_seq)


def _answered_at(trace: TraceRows, believed: TraceRow) -> int:
    """Seq of the request whose answer was believed; the other node read its tables right after it."""
    answer = trace.row(believed.cause) if believed.cause else None
    if answer is not None and answer.table is RPC and answer.text("kind") == "response" and answer.cause:
        return answer.cause
    return believed.seq
