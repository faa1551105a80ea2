"""Finding the rows that a question is about."""

from collections.abc import Callable, Mapping
from typing import Any

from emulator.analysis.rows.lookup import TraceRow, TraceRows
from emulator.state.client_names import guest_of
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP
from emulator.why.absence import absence
from emulator.why.first_offset import first_offset_lines, missed_at_start_lines
from emulator.why.group import group
from emulator.why.held import STAGES, Finding, end_of, kind_of, why_no_belief
from emulator.why.holds import Hold, holds
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
    StallQuestion,
    StormQuestion,
    TopicQuestion,
    TransactionQuestion,
    WhyError,
    no_such,
)
from emulator.why.storm import storm
from emulator.why.topic import topic
from emulator.why.transaction import transaction
from emulator.why.words import NodeNames, seconds
from nodes.beliefs import LifecycleEvent, OwnershipEvent

_HOLDS = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value)
_OWNERS_MAX = 4


def find(trace: TraceRows, asked: Question, names: NodeNames) -> Finding:
    """Find the rows that a question is about.

    Args:
        trace: of the run.
        asked: the question.
        names: of the nodes.

    Raises:
        WhyError: the trace has none; the text says what it has.
    """
    return _FINDERS[type(asked)](trace, asked, names)


def _queue(trace: TraceRows, asked: QueueQuestion, names: NodeNames) -> Finding:
    wanted = {} if asked.group is None else {"group": asked.group}
    place: dict[str, Any] = {
        "topic": asked.topic,
        "broker_name": asked.broker_name,
        "queue_id": asked.queue_id,
        **wanted,
    }
    rows = trace.select(OWNERSHIP, event=_HOLDS, until_ns=asked.at_ns, **place)
    if not rows:
        later = trace.select(OWNERSHIP, event=_HOLDS, **place)
        return _never_owned(trace, asked, later, names)
    found_holds = holds(trace, rows, asked.at_ns)
    headlines: list[str] = []
    found: list[TraceRow] = []
    silences: list[Silence] = []
    for group_name in dict.fromkeys(row.text("group") for row in rows):
        of_group = [hold for hold in found_holds if hold.row.text("group") == group_name]
        owners = [hold for hold in of_group if hold.owns]
        headlines.append(_who_owns(asked, group_name, owners, of_group))
        where = (asked.topic, asked.broker_name, asked.queue_id)
        for lines_of in (first_offset_lines, missed_at_start_lines):
            headlines += [f"  {line}" for line in lines_of(trace, group_name, asked.at_ns, where)]
        headlines += [] if owners else no_owner_lines(trace, group_name, asked, names)
        told = owners[-_OWNERS_MAX:] or [max(of_group, key=lambda hold: hold.newest.seq)]
        stalled = stalled_first(trace, asked, group_name, names) if len(owners) == 1 else None
        if stalled is not None:
            headlines += stalled.headlines
            found += stalled.rows
            silences += stalled.silences
        else:
            found += [hold.newest for hold in reversed(told)]
    return Finding(tuple(headlines), tuple(found), tuple(silences))


def _who_owns(asked: QueueQuestion, group: str, owners: list[Hold], holds: list[Hold]) -> str:
    when = "" if asked.at_ns is None else f"at {seconds(asked.at_ns)} "
    queue = f"{when}queue {asked.queue} of group {group}"
    if not owners:
        last = max(holds, key=lambda hold: hold.newest.seq)
        return f"{queue} has no owner: {last.row.text('node')} lost it last, at {seconds(last.newest.t_ns)}"
    names = [f"{hold.row.text('node')} since {seconds(hold.row.t_ns)}" for hold in owners]
    count = f"{len(owners)} owners" if len(owners) > 1 else "one owner"
    listed = ", ".join(names[-_OWNERS_MAX:])
    more = len(names) - _OWNERS_MAX
    return f"{queue} has {count}: {listed}{f', and {more} more' if more > 0 else ''}"


def _never_owned(trace: TraceRows, asked: QueueQuestion, later: list[TraceRow], names: NodeNames) -> Finding:
    """Why a queue had no owner before, or in the whole run.

    Raises:
        WhyError: no group that is asked about has a member that subscribes to the topic.
    """
    said = _why_no_queue(trace, asked, later)
    groups = subscribed_groups(trace, asked.topic) if asked.group is None else (asked.group,)
    lines = [line for group in groups for line in no_owner_lines(trace, group, asked, names)]
    if not lines:
        raise WhyError(said)
    views = [view for group in groups if (view := newest_view(trace, group, asked, names)) is not None]
    return Finding((said, *lines), tuple(views))


def _why_no_queue(trace: TraceRows, asked: QueueQuestion, later: list[TraceRow]) -> str:
    if later:
        return f"nobody had owned {asked.queue} yet; {later[0].text('node')} was the first, at {seconds(later[0].t_ns)}"
    if asked.group is not None and asked.group not in trace.values(OWNERSHIP, "group"):
        return no_such("group", asked.group, trace.values(OWNERSHIP, "group"))
    if asked.topic not in trace.values(OWNERSHIP, "topic"):
        return no_such("topic that was consumed", asked.topic, trace.values(OWNERSHIP, "topic"))
    if asked.broker_name not in trace.values(OWNERSHIP, "broker_name"):
        return no_such("brokerName", asked.broker_name, trace.values(OWNERSHIP, "broker_name"))
    rows = trace.select(OWNERSHIP, topic=asked.topic, broker_name=asked.broker_name)
    ids = sorted(dict.fromkeys(row.number("queue_id") for row in rows))
    has = ", ".join(map(str, ids)) or "none"
    of = f" of group {asked.group}" if asked.group is not None else ""
    return f"nobody{of} ever owned {asked.queue}; owned queues of {asked.topic}/{asked.broker_name} are {has}"


def _belief(trace: TraceRows, asked: BeliefQuestion, _names: NodeNames) -> Finding:
    kind = kind_of(trace, asked)
    wanted = {} if asked.node is None else {"node": asked.node}
    row = trace.newest(BELIEFS, kind=kind.value, subject=asked.subject, until_ns=asked.at_ns, **wanted)
    if row is None:
        raise WhyError(why_no_belief(trace, asked, kind))
    end = end_of(trace, row, asked.at_ns)
    headlines: tuple[str, ...] = ()
    if end is not None:
        said = f"{row.text('node')} believes nothing any more: its process ended at {seconds(end.t_ns)}"
        headlines = (f"{said} ({end.text('event').replace('_', ' ')}); before that",)
    return Finding(headlines, (row,))


def _node(trace: TraceRows, asked: NodeQuestion, _names: NodeNames) -> Finding:
    row = trace.newest(LIFECYCLE, node=asked.node, event=STAGES, until_ns=asked.at_ns)
    guest = guest_of(asked.node)
    in_vain = trace.select(LIFECYCLE, node=guest, event=LifecycleEvent.NOT_EMULATED.value, until_ns=asked.at_ns)
    headlines = tuple(f"at {seconds(one.t_ns)} {guest} asked {one.text('detail')}" for one in in_vain)
    if row is not None or headlines:
        return Finding(headlines, () if row is None else (row,))
    if asked.node not in trace.values(LIFECYCLE, "node"):
        raise WhyError(no_such("node", asked.node, trace.values(LIFECYCLE, "node")))
    first = trace.select(LIFECYCLE, node=asked.node)[0]
    raise WhyError(f"{asked.node} had not started yet; it did at {seconds(first.t_ns)}")


_FINDERS: Mapping[type[Question], Callable[[TraceRows, Any, NodeNames], Finding]] = {
    QueueQuestion: _queue,
    StallQuestion: stall,
    LagQuestion: lag,
    GroupQuestion: group,
    TopicQuestion: topic,
    MessageQuestion: message,
    TransactionQuestion: transaction,
    StormQuestion: storm,
    BeliefQuestion: _belief,
    AbsenceQuestion: absence,
    NodeQuestion: _node,
}
