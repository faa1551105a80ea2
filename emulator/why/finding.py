"""Finding the rows that a question is about."""

from collections.abc import Callable, Mapping
from typing import Any

from emulator.guests.client_names import guest_of
from emulator.history.owners import OWNED
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP
from emulator.why.absence import absence
from emulator.why.first_offset import first_offset_lines, missed_at_start_lines
from emulator.why.group import group
from emulator.why.holders import STAGES, Finding, LastHold, end_of, holds, kind_of, why_no_belief
from emulator.why.lag import lag, stall, stalled_first
from emulator.why.message import message
from emulator.why.missing_signals import Silence
from emulator.why.no_owner import newest_view, no_owner_lines, subscribed_groups
from emulator.why.question import (
    AbsenceQuestion,
    BeliefQuestion,
    GroupQuestion,
    LagQuestion,
    MessageQuestion,
    NodeQuestion,
    Question,
    QueueQuestion,
    SendsQuestion,
    StallQuestion,
    StormQuestion,
    TopicQuestion,
    TransactionQuestion,
    WhyError,
    no_such,
)
from emulator.why.sends import sends
from emulator.why.starts import failed_start
from emulator.why.storm import storm
from emulator.why.topic import topic
from emulator.why.transaction import transaction
from emulator.why.words import NodeNames, seconds
from nodes.beliefs import LifecycleEvent

_OWNERS_MAX = 4


def find(trace: TraceRows, requested: Question, names: NodeNames) -> Finding:
    """Find the rows that a question is about.

    Args:
        trace: of the run.
        requested: the question.
        names: of the nodes.

    Raises:
        WhyError: the trace has none; the text says what it has.
    """
    return _FINDERS[type(requested)](trace, requested, names)


def _queue(trace: TraceRows, requested: QueueQuestion, names: NodeNames) -> Finding:
    wanted = {} if requested.group is None else {"group": requested.group}
    place: dict[str, Any] = {
        "topic": requested.topic,
        "broker_name": requested.broker_name,
        "queue_id": requested.queue_id,
        **wanted,
    }
    rows = trace.select(OWNERSHIP, event=OWNED, until_ns=requested.at_ns, **place)
    if not rows:
        later = trace.select(OWNERSHIP, event=OWNED, **place)
        return _never_owned(trace, requested, later, names)
    found_holds = holds(trace, rows, requested.at_ns)
    headlines: list[str] = []
    found: list[TraceRow] = []
    silences: list[Silence] = []
    for group_name in dict.fromkeys(row.text("group") for row in rows):
        of_group = [hold for hold in found_holds if hold.row.text("group") == group_name]
        owners = [hold for hold in of_group if hold.owns]
        headlines.append(_who_owns(requested, group_name, owners, of_group))
        where = (requested.topic, requested.broker_name, requested.queue_id)
        for lines_of in (first_offset_lines, missed_at_start_lines):
            headlines += [f"  {line}" for line in lines_of(trace, group_name, requested.at_ns, where)]
        headlines += [] if owners else no_owner_lines(trace, group_name, requested, names)
        reported = owners[-_OWNERS_MAX:] or [max(of_group, key=lambda hold: hold.newest.seq)]
        stalled = stalled_first(trace, requested, group_name, names) if len(owners) == 1 else None
        if stalled is not None:
            headlines += stalled.headlines
            found += stalled.rows
            silences += stalled.silences
        else:
            found += [hold.newest for hold in reversed(reported)]
    return Finding(tuple(headlines), tuple(found), tuple(silences))


def _who_owns(requested: QueueQuestion, group: str, owners: list[LastHold], holds: list[LastHold]) -> str:
    when = "" if requested.at_ns is None else f"at {seconds(requested.at_ns)} "
    queue = f"{when}queue {requested.queue} of group {group}"
    if not owners:
        last = max(holds, key=lambda hold: hold.newest.seq)
        return f"{queue} has no owner: {last.row.text('node')} lost it last, at {seconds(last.newest.t_ns)}"
    names = [f"{hold.row.text('node')} since {seconds(hold.row.t_ns)}" for hold in owners]
    count = f"{len(owners)} owners" if len(owners) > 1 else "one owner"
    listed = ", ".join(names[-_OWNERS_MAX:])
    more = len(names) - _OWNERS_MAX
    return f"{queue} has {count}: {listed}{f', and {more} more' if more > 0 else ''}"


def _never_owned(trace: TraceRows, requested: QueueQuestion, later: list[TraceRow], names: NodeNames) -> Finding:
    """Why a queue had no owner before, or in the whole run.

    Raises:
        WhyError: no group that is asked about has a member that subscribes to the topic.
    """
    answer = _why_no_queue(trace, requested, later)
    groups = subscribed_groups(trace, requested.topic) if requested.group is None else (requested.group,)
    lines = [line for group in groups for line in no_owner_lines(trace, group, requested, names)]
    if not lines:
        raise WhyError(answer)
    views = [view for group in groups if (view := newest_view(trace, group, requested, names)) is not None]
    return Finding((answer, *lines), tuple(views))


def _why_no_queue(trace: TraceRows, requested: QueueQuestion, later: list[TraceRow]) -> str:
    if later:
        first = later[0]
        return (
            f"no consumer had owned {requested.queue} yet; {first.text('node')} was the first, at {seconds(first.t_ns)}"
        )
    if requested.group is not None and requested.group not in trace.values(OWNERSHIP, "group"):
        return no_such("group", requested.group, trace.values(OWNERSHIP, "group"))
    if requested.topic not in trace.values(OWNERSHIP, "topic"):
        return no_such("topic that was consumed", requested.topic, trace.values(OWNERSHIP, "topic"))
    if requested.broker_name not in trace.values(OWNERSHIP, "broker_name"):
        return no_such("brokerName", requested.broker_name, trace.values(OWNERSHIP, "broker_name"))
    rows = trace.select(OWNERSHIP, topic=requested.topic, broker_name=requested.broker_name)
    ids = sorted(dict.fromkeys(row.number("queue_id") for row in rows))
    has = ", ".join(map(str, ids)) or "none"
    of = f" of group {requested.group}" if requested.group is not None else ""
    return (
        f"no one{of} ever owned {requested.queue}; owned queues of {requested.topic}/{requested.broker_name} are {has}"
    )


def _belief(trace: TraceRows, requested: BeliefQuestion, _names: NodeNames) -> Finding:
    kind = kind_of(trace, requested)
    wanted = {} if requested.node is None else {"node": requested.node}
    row = trace.newest(BELIEFS, kind=kind.value, subject=requested.subject, until_ns=requested.at_ns, **wanted)
    if row is None:
        raise WhyError(why_no_belief(trace, requested, kind))
    end = end_of(trace, row, requested.at_ns)
    headlines: tuple[str, ...] = ()
    if end is not None:
        text = f"{row.text('node')} believes nothing any more: its process ended at {seconds(end.t_ns)}"
        headlines = (f"{text} ({end.text('event').replace('_', ' ')}); before that",)
    return Finding(headlines, (row,))


def _node(trace: TraceRows, requested: NodeQuestion, names: NodeNames) -> Finding:
    row = trace.newest(LIFECYCLE, node=requested.node, event=STAGES, until_ns=requested.at_ns)
    if row is not None and (failed := failed_start(trace, row, names)) is not None:
        return failed
    guest = guest_of(requested.node)
    without_hits = trace.select(
        LIFECYCLE, node=guest, event=LifecycleEvent.NOT_EMULATED.value, until_ns=requested.at_ns
    )
    headlines = tuple(f"at {seconds(item.t_ns)} {guest} asked {item.text('detail')}" for item in without_hits)
    if row is not None or headlines:
        return Finding(headlines, () if row is None else (row,))
    if requested.node not in trace.values(LIFECYCLE, "node"):
        raise WhyError(no_such("node", requested.node, trace.values(LIFECYCLE, "node")))
    first = trace.select(LIFECYCLE, node=requested.node)[0]
    raise WhyError(f"{requested.node} had not started yet; it did at {seconds(first.t_ns)}")


_FINDERS: Mapping[type[Question], Callable[[TraceRows, Any, NodeNames], Finding]] = {
    QueueQuestion: _queue,
    StallQuestion: stall,
    LagQuestion: lag,
    GroupQuestion: group,
    TopicQuestion: topic,
    MessageQuestion: message,
    TransactionQuestion: transaction,
    StormQuestion: storm,
    SendsQuestion: sends,
    BeliefQuestion: _belief,
    AbsenceQuestion: absence,
    NodeQuestion: _node,
}
