"""What nodes hold: beliefs about a subject and the queues of groups, and who held a queue last."""

from heapq import merge
from operator import attrgetter

import attrs

from emulator.base.text import alike
from emulator.history.owners import GAINED, OWNED, POPPED, Owners
from emulator.history.processes import ENDS, Processes
from emulator.history.rows.feed import feed_all
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import value_of_row
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP
from emulator.why.missing_signals import Silence
from emulator.why.question import BeliefQuestion, QueueQuestion, WhyError, no_such
from emulator.why.words import seconds
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import BeliefKind, LifecycleEvent, MessageEvent

STAGES = tuple(event.value for event in LifecycleEvent if event is not LifecycleEvent.NOT_EMULATED)
"""What happens to a process; the other event is about what it asked."""


@attrs.frozen
class Finding:
    """The rows that a question is about."""

    headlines: tuple[str, ...]
    """The short answer; may be empty."""
    rows: tuple[TraceRow, ...]
    """The rows whose chains of causes are the answer."""
    silences: tuple[Silence, ...] = ()
    """Nodes of which others should have heard."""


def known_groups(trace: TraceRows) -> tuple[str, ...]:
    """All groups that subscribe to something, own a queue, pop, or have a member at a broker or a proxy; sorted."""
    kinds = (BeliefKind.SUBSCRIPTION.value, BeliefKind.CONSUMER_IDS.value, BeliefKind.PROXY_MEMBERS.value)
    subjects = [row.text("subject").partition("/")[0] for row in trace.select(BELIEFS, kind=kinds)]
    popped = [group for (group,) in trace.tuples(MESSAGES, ("group",), event=MessageEvent.POPPED.value)]
    return tuple(sorted(dict.fromkeys([*subjects, *popped, *trace.values(OWNERSHIP, "group")])))


def end_of(trace: TraceRows, row: TraceRow, until_ns: int | None) -> TraceRow | None:
    """The end of the process that wrote a row; None if it lived on until an instant."""
    ends = trace.select(LIFECYCLE, event=ENDS, node=row.text("node"), until_ns=until_ns)
    return next((end for end in ends if end.number("incarnation") == row.number("incarnation")), None)


def kind_of(trace: TraceRows, requested: BeliefQuestion) -> BeliefKind:
    """The kind of belief that a question names, or the only one that has its subject.

    Raises:
        WhyError: no kind has this subject, or several have.
    """
    if requested.kind is not None:
        return requested.kind
    kinds = tuple(dict.fromkeys(row.text("kind") for row in trace.select(BELIEFS, subject=requested.subject)))
    if not kinds:
        if requested.subject in trace.values(BELIEFS, "node"):
            raise WhyError(f"{requested.subject} is a node: ask for `node {requested.subject}`")
        if alike(requested.subject, ("storm",), 1):
            raise WhyError(f"there is no subject {requested.subject}; did you mean `storm`?")
        raise WhyError(no_such("subject", requested.subject, trace.values(BELIEFS, "subject")))
    if len(kinds) > 1:
        raise WhyError(f"expected a kind before {requested.subject}, which has several: {', '.join(sorted(kinds))}")
    return BeliefKind(kinds[0])


def why_no_belief(trace: TraceRows, requested: BeliefQuestion, kind: BeliefKind) -> str:
    """Why no one, or not the node that a question names, holds such a belief."""
    rows = trace.select(BELIEFS, kind=kind.value)
    subjects = tuple(sorted(dict.fromkeys(row.text("subject") for row in rows)))
    if requested.subject not in subjects:
        return no_such(f"subject of {kind}", requested.subject, subjects)
    about = [row for row in rows if row.text("subject") == requested.subject]
    nodes = tuple(sorted(dict.fromkeys(row.text("node") for row in about)))
    if requested.node is not None and requested.node not in nodes:
        return no_such(f"holder of {kind} {requested.subject} named", requested.node, nodes)
    first = next(row for row in about if requested.node in (None, row.text("node")))
    return (
        f"no one knew of {kind} {requested.subject} yet; {first.text('node')} was the first, at {seconds(first.t_ns)}"
    )


CHANGES = (*OWNED, *POPPED)
"""Events after which a consumer holds a queue, or does not hold it any more."""


@attrs.frozen
class LastHold:
    """The last row of a consumer about a queue."""

    row: TraceRow
    ended: TraceRow | None
    """The end of its process, if it held the queue until then; else None."""
    owns: bool
    """Whether the consumer holds the queue."""

    @property
    def is_shared(self) -> bool:
        """Whether other members may receive from the queue, too."""
        return self.row.text("event") in POPPED

    @property
    def newest(self) -> TraceRow:
        """The last thing that happened to its hold."""
        return self.ended or self.row

    @property
    def node(self) -> str:
        """The consumer."""
        return self.row.text("node")


def holds(trace: TraceRows, rows: list[TraceRow], at_ns: int | None) -> list[LastHold]:
    """The last row of each consumer in rows of one queue, in order; one that also popped it has two."""
    newest: dict[tuple[str, str, bool], TraceRow] = {}
    for row in rows:
        key = (row.text("group"), row.text("node"), row.text("event") in POPPED)
        newest.pop(key, None)
        newest[key] = row
    nodes = tuple(dict.fromkeys(node for _, node, _ in newest))
    lives = trace.select(LIFECYCLE, node=nodes, until_ns=at_ns)
    owners = _owners(rows, lives)
    ends = [life for life in lives if life.text("event") in ENDS]
    return [LastHold(row, _end_after(ends, row), _holds(owners, row)) for row in newest.values()]


def _owners(rows: list[TraceRow], lives: list[TraceRow]) -> Owners:
    """The owners after some rows of ownership and lives."""
    processes = Processes()
    owners = Owners(processes)
    in_order = merge(rows, lives, key=attrgetter("seq"))
    feed_all((processes, owners), (value_of_row(row.table, row.fields) for row in in_order))
    return owners


def _holds(owners: Owners, row: TraceRow) -> bool:
    """Whether the process that wrote a row about a queue owns or pops it."""
    queue = GroupQueue(row.text("group"), row.text("topic"), row.text("broker_name"), row.number("queue_id"))
    process = row.text("node"), row.number("incarnation")
    return process in (owners.popping(queue) if row.text("event") in POPPED else owners.now(queue))


def holds_of(trace: TraceRows, group: str, requested: QueueQuestion) -> list[LastHold]:
    """The last row of each consumer of a group about a queue, in order; a member that pops may hold all of a broker."""
    rows = trace.select(
        OWNERSHIP,
        event=CHANGES,
        group=group,
        topic=requested.topic,
        broker_name=requested.broker_name,
        queue_id=(requested.queue_id, ALL_QUEUES),
        until_ns=requested.at_ns,
    )
    return holds(trace, rows, requested.at_ns)


def _end_after(ends: list[TraceRow], row: TraceRow) -> TraceRow | None:
    """The end of the process that acquired a queue; None if it has not ended."""
    if row.text("event") not in GAINED:
        return None
    process = (row.text("node"), row.number("incarnation"))
    return next((end for end in ends if (end.text("node"), end.number("incarnation")) == process), None)
