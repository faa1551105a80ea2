"""Which messages wait for a group at an instant, queue by queue, and since when none of a queue has moved.

How far the group has come is what the judge says, too (`GroupProgress`), by the subscriptions at each row.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

import attrs

from emulator.history.presence import Presence, selects
from emulator.history.progress import GroupProgress, QueueBacklog
from emulator.history.rows.feed import feed_all
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.rows.queues import Consumer, GroupQueue, TopicQueue
from emulator.history.rows.row_classes import ROWS
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP, TraceTable
from emulator.why.words import value_of
from nodes.beliefs import BeliefKind, MessageEvent, OwnershipEvent
from nodes.protocol.model import MessageModel

ON_ITS_WAY_NS = 1_000_000_000
"""A message that waits for less is on its way."""
_OF_ALL_GROUPS = (MessageEvent.RESET.value, MessageEvent.EXPIRED.value)
"""Events that may concern all groups of a queue."""


@attrs.frozen
class WaitingQueue:
    """A queue with messages that wait."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    messages: int
    first_offset: int
    oldest_ns: int
    """When the first of them was stored."""
    since_ns: int
    """Since when it has not moved."""


@attrs.frozen
class PastStall:
    """A queue with messages that waited, and of which none moved, until one did."""

    queue: GroupQueue
    start_ns: int
    end_ns: int

    @property
    def lasted_ns(self) -> int:
        """How long."""
        return self.end_ns - self.start_ns


@attrs.frozen
class GroupBacklog:
    """What waits for a group at an instant."""

    at_ns: int
    queues: tuple[WaitingQueue, ...]
    """Those with the most messages first."""
    longest: "PastStall | None"
    """The longest stall that is over; None: every message moved at once."""

    @property
    def messages(self) -> int:
        """All that wait."""
        return sum(queue.messages for queue in self.queues)

    @property
    def late(self) -> tuple[WaitingQueue, ...]:
        """The queues of which a message waits for longer than a moment."""
        return tuple(queue for queue in self.queues if queue.oldest_ns <= self.at_ns - ON_ITS_WAY_NS)


def subscriptions_of(trace: TraceRows, group: str, until_ns: int | None) -> list[TraceRow]:
    """The newest subscription of each node to each topic of a group, without those that have ended."""
    rows = trace.select(BELIEFS, kind=BeliefKind.SUBSCRIPTION.value, until_ns=until_ns)
    own = {(row.text("node"), row.text("subject")): row for row in rows if _is_of(row.text("subject"), group)}
    return [row for row in own.values() if value_of(row) is not None]


def topic_of(subscription: TraceRow) -> str:
    """The topic of a subscription."""
    return subscription.text("subject").rpartition("/")[2]


def popped_topics(trace: TraceRows, group: str, until_ns: int | None) -> tuple[str, ...]:
    """The topics of a group that only proxies know, which do not record its subscriptions; empty: brokers know it."""
    if subscriptions_of(trace, group, None):
        return ()
    popped = trace.tuples(MESSAGES, ("topic",), event=MessageEvent.POPPED.value, group=group, until_ns=until_ns)
    return tuple(dict.fromkeys(topic for (topic,) in popped))


def broadcasts(subscriptions: Sequence[TraceRow]) -> bool:
    """Whether the members of a group each consume all messages."""
    return any(value_of(row)["model"] == MessageModel.BROADCASTING for row in subscriptions)


def is_wanted(subscription: TraceRow, tags: str) -> bool:
    """Whether a subscription is for messages with these tags; what SQL92 selects is not known, so it is."""
    return selects(value_of(subscription), tags)


def backlog(trace: TraceRows, group: str, at_ns: int | None, only: TopicQueue | None = None) -> GroupBacklog:
    """What waits for a group.

    Args:
        trace: of the run.
        group: the consumer group.
        at_ns: the instant; None: the end of the run.
        only: one queue; None: all queues.
    """
    until_ns = trace.end_ns() if at_ns is None else min(at_ns, trace.end_ns())
    presence = Presence({})
    progress = GroupProgress(presence, stored_max=0)
    feed_all((presence, progress), _rows(trace, group, until_ns, only))
    known = [(consumer, waits) for consumer, waits in progress.now() if consumer[0].group == group]
    found = (_waiting(trace, presence, consumer, waits, until_ns) for consumer, waits in known if waits.messages)
    queues = sorted(found, key=lambda item: (-item.messages, item.queue, item.node))
    past = [PastStall(queue, *waits.longest_still) for (queue, _), waits in known if waits.longest_still is not None]
    return GroupBacklog(until_ns, tuple(queues), max(past, key=lambda item: item.lasted_ns, default=None))


def _rows(trace: TraceRows, group: str, until_ns: int, only: TopicQueue | None) -> Iterator[Any]:
    """The rows that say how far a group has come, in order."""

    def of(table: TraceTable, **wanted: Any) -> Iterator[Any]:
        row_class = ROWS[table]
        return map(row_class._make, trace.tuples(table, row_class._fields, until_ns=until_ns, **wanted))

    subscribed = [row for row in of(BELIEFS, kind=BeliefKind.SUBSCRIPTION.value) if _is_of(row.subject, group)]
    place = {} if only is None else dict(zip(("topic", "broker_name", "queue_id"), only, strict=True))
    owned = list(of(OWNERSHIP, event=OwnershipEvent.ACQUIRED.value, group=group, **place))
    moved = list(of(MESSAGES, group=group, event=GroupProgress.message_events, **place))
    topics = dict.fromkeys(row.subject.rpartition("/")[2] for row in subscribed)
    topics |= dict.fromkeys(row.topic for row in (*owned, *moved))
    asked = place or {"topic": tuple(topics)}
    stored = of(MESSAGES, event=MessageEvent.STORED.value, **asked)
    given_up = of(MESSAGES, event=_OF_ALL_GROUPS, group="", **asked)
    yield from merge(of(LIFECYCLE), subscribed, owned, moved, stored, given_up, key=itemgetter(0))


def _is_of(subject: str, group: str) -> bool:
    return subject.rpartition("/")[0] == group


def _waiting(
    trace: TraceRows, presence: Presence, consumer: Consumer, waits: QueueBacklog, until_ns: int
) -> WaitingQueue:
    """A queue with its first message that waits; one that the trace does not have has waited since it stood still."""
    queue, node = consumer
    place: dict[str, Any] = {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
    stored = trace.tuples(
        MESSAGES, ("offset", "t_ns", "seq", "tags"), event=MessageEvent.STORED.value, until_ns=until_ns, **place
    )
    # Offsets are used again after a broker has lost the end of its log: the last message of an offset counts.
    newest = {offset: (t_ns, seq, tags) for offset, t_ns, seq, tags in stored if offset >= waits.first_offset}
    for offset, (t_ns, seq, tags) in sorted(newest.items()):
        if waits.in_flight or presence.is_awaited(queue.group, queue.topic, tags, seq):
            return WaitingQueue(queue, node, waits.messages, offset, t_ns, waits.still_ns)
    return WaitingQueue(queue, node, waits.messages, waits.first_offset, waits.still_ns, waits.still_ns)
