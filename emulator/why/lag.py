"""Lag and stalls: which queues of a group have messages that wait, what keeps each, and since when."""

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import MESSAGES, OWNERSHIP
from emulator.why.backlog import ON_ITS_WAY_NS, GroupBacklog, WaitingQueue, backlog
from emulator.why.holders import Finding, known_groups
from emulator.why.missing_signals import Silence
from emulator.why.no_owner import subscribed_groups
from emulator.why.question import LagQuestion, QueueQuestion, StallQuestion, WhyError, no_question_about
from emulator.why.stalls import StallCause, why_it_waits
from emulator.why.words import NodeNames, seconds
from nodes.beliefs import MessageEvent, OwnershipEvent

_QUEUES_MAX = 6
_CAUSES_MAX = 3
"""So many causes have their own lines; each stands for all queues that wait for it."""
_SURELY_NS = 5 * ON_ITS_WAY_NS
"""A queue that has not moved for so long is stalled, where the question is not about stalls."""


@attrs.frozen
class _Stalled:
    waiting: WaitingQueue
    cause: StallCause


def lag(trace: TraceRows, requested: LagQuestion, names: NodeNames) -> Finding:
    """Why messages wait for a group.

    Raises:
        WhyError: there is no such group.
    """
    groups = known_groups(trace)
    if requested.group not in groups:
        raise no_question_about("group", requested.group, groups, "lag {}")
    found = backlog(trace, requested.group, requested.at_ns)
    if not found.late:
        return Finding(
            (*_calm(requested.group, found), *_before_the_first_owner(trace, requested.group, found.at_ns)), ()
        )
    stalled = [_Stalled(element, why_it_waits(trace, element, found.at_ns, names)) for element in found.late]
    causes: dict[str, list[_Stalled]] = {}
    for item in stalled:
        causes.setdefault(item.cause.text, []).append(item)
    ordered = sorted(causes.values(), key=lambda of: (of[0].cause.rank, -_messages(of)))
    lines = [_headline(requested.group, found, ordered)]
    for of in ordered[:_CAUSES_MAX]:
        lines += _cause_lines(of, alone=len(ordered) == 1)
    more = len(ordered) - _CAUSES_MAX
    lines += [f"  {more} more causes"] if more > 0 else []
    first = ordered[0][0].cause
    return Finding(tuple(lines), first.rows, first.silences)


def stall(trace: TraceRows, requested: StallQuestion, names: NodeNames) -> Finding:
    """What keeps the messages of a queue waiting.

    Raises:
        WhyError: no group consumes the queue, or no broker has it.
    """
    queue = requested.queue
    groups = subscribed_groups(trace, queue.topic) if queue.group is None else (queue.group,)
    _check(trace, queue, groups)
    lines: list[str] = []
    rows: list[TraceRow] = []
    silences: list[Silence] = []
    calm: list[str] = []
    for group in groups:
        found, causes = _of_queue(trace, queue, group, names)
        for cause in causes:
            lines += [_stall_line(cause, found), *(f"  {line}" for line in cause.cause.lines)]
            rows += cause.cause.rows
            silences += cause.cause.silences
        if not causes:
            calm.append(_moves(trace, queue, group, found))
    return Finding((*lines, *calm), tuple(rows), tuple(silences))


def stalled_first(trace: TraceRows, queue: QueueQuestion, group: str, names: NodeNames) -> Finding | None:
    """What keeps a queue from moving, for an answer about its owner; None: it moves."""
    found, causes = _of_queue(trace, queue, group, names)
    still = [cause for cause in causes if cause.waiting.since_ns <= found.at_ns - _SURELY_NS]
    if not still:
        return None
    lines = [
        line for item in still for line in (_stall_line(item, found), *(f"  {element}" for element in item.cause.lines))
    ]
    rows = tuple(row for item in still for row in item.cause.rows)
    return Finding(tuple(lines), rows, tuple(silence for item in still for silence in item.cause.silences))


def _of_queue(
    trace: TraceRows, queue: QueueQuestion, group: str, names: NodeNames
) -> tuple[GroupBacklog, list[_Stalled]]:
    """What waits for a group, and why it waits in one queue."""
    found = backlog(trace, group, queue.at_ns, (queue.topic, queue.broker_name, queue.queue_id))
    late = [item for item in found.late if item.queue.name == queue.queue]
    return found, [_Stalled(item, why_it_waits(trace, item, found.at_ns, names)) for item in late]


def _calm(group: str, found: GroupBacklog) -> list[str]:
    at = seconds(found.at_ns)
    some = f" ({_count(found.messages)} on the way)" if found.messages else ""
    lines = [f"at {at} nothing of group {group} waits{some}"]
    past = found.longest
    if past is not None and past.lasted_ns >= _SURELY_NS:
        before = f"{max(past.start_ns, past.end_ns - 1_000_000) / 1e9:.3f}".rstrip("0").rstrip(".")
        subject = (
            f"queue {past.queue.name} stood still longest, from {seconds(past.start_ns)} to {seconds(past.end_ns)}"
        )
        lines.append(f"  {subject}; ask `stall {past.queue.name} of {group} at {before}s`")
    return lines


def _before_the_first_owner(trace: TraceRows, group: str, at_ns: int) -> tuple[str, ...]:
    """When the group got its first queue, if that was later: messages that are older came late, and did not wait."""
    owned = trace.select(OWNERSHIP, group=group, event=OwnershipEvent.ACQUIRED.value)
    if not owned or owned[0].t_ns <= at_ns:
        return ()
    return (f"  no member of it had a queue before {seconds(owned[0].t_ns)}; ask `group {group}`",)


def _headline(group: str, found: GroupBacklog, causes: list[list[_Stalled]]) -> str:
    first = causes[0]
    share = "" if len(causes) == 1 else f"; {_messages(first):,} of them:"
    cause = first[0].cause.text
    subject = f"{_count(found.messages)} {'waits' if found.messages == 1 else 'wait'} for group {group}"
    return f"at {seconds(found.at_ns)} {subject} in {_queues(len(found.late))}{share or ':'} {cause}"


def _cause_lines(of: list[_Stalled], *, alone: bool) -> list[str]:
    lines = [] if alone else [f"  {_count(_messages(of))} in {_queues(len(of))}: {of[0].cause.text}"]
    lines += [f"    {line}" for line in of[0].cause.lines]
    lines += [f"    {_queue_line(item.waiting)}" for item in of[:_QUEUES_MAX]]
    more = len(of) - _QUEUES_MAX
    return [*lines, *([f"    {more} more queues"] if more > 0 else [])]


def _queue_line(waiting_queue: WaitingQueue) -> str:
    of = f" for {waiting_queue.node}" if waiting_queue.node else ""
    stored = f"the first, offset {waiting_queue.first_offset}, was stored at {seconds(waiting_queue.oldest_ns)}"
    messages, since = _count(waiting_queue.messages), seconds(waiting_queue.since_ns)
    return f"{waiting_queue.queue.name}{of}: {messages}, {stored}; nothing has moved since {since}"


def _stall_line(stalled: _Stalled, found: GroupBacklog) -> str:
    waiting = stalled.waiting
    names = waiting.queue.group + (f", member {waiting.node}" if waiting.node else "")
    subject = f"{_count(waiting.messages)} of queue {waiting.queue.name} {'waits' if waiting.messages == 1 else 'wait'}"
    since = f"none has moved since {seconds(waiting.since_ns)}"
    return f"at {seconds(found.at_ns)} {subject} for group {names}, and {since}: {stalled.cause.text}"


def _moves(trace: TraceRows, queue: QueueQuestion, group: str, found: GroupBacklog) -> str:
    """Why a queue is not stalled."""
    last = trace.newest(
        MESSAGES,
        event=MessageEvent.CONSUMED.value,
        group=group,
        topic=queue.topic,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        until_ns=found.at_ns,
    )
    calm = f"at {seconds(found.at_ns)} queue {queue.queue} of group {group} is not stalled: no message waits"
    if last is None:
        return f"{calm}, and none was ever consumed"
    offset, when = last.number("offset"), seconds(last.t_ns)
    return f"{calm}, and {last.text('node')} consumed the last one, offset {offset}, at {when}"


def _check(trace: TraceRows, queue: QueueQuestion, groups: tuple[str, ...]) -> None:
    """Refuse a queue that no group consumes."""
    known = known_groups(trace)
    if queue.group is not None and queue.group not in known:
        raise no_question_about("group", queue.group, known, f"stall {queue.queue} of {{}}")
    place = ("topic", "broker_name", "queue_id")
    stored = trace.tuples(MESSAGES, place, event=MessageEvent.STORED.value, topic=queue.topic)
    rows = dict.fromkeys((*stored, *trace.tuples(OWNERSHIP, place, topic=queue.topic)))
    queues = tuple(f"{topic}/{broker_name}/{queue_id}" for topic, broker_name, queue_id in sorted(rows))
    if not rows:
        topics = tuple(dict.fromkeys((*trace.values(OWNERSHIP, "topic"), *trace.values(MESSAGES, "topic"))))
        raise no_question_about("topic", queue.topic, topics, "topic {}")
    if queue.queue not in queues:
        raise no_question_about("queue", queue.queue, queues, "stall {}")
    if not groups:
        raise WhyError(f"no group consumes {queue.topic}; ask `topic {queue.topic}`")


def _messages(of: list[_Stalled]) -> int:
    return sum(item.waiting.messages for item in of)


def _count(messages: int) -> str:
    return f"{messages:,} {'message' if messages == 1 else 'messages'}"


def _queues(number: int) -> str:
    return f"{number} {'queue' if number == 1 else 'queues'}"
