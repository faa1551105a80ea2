"""Which messages wait for a group at an instant, queue by queue, and since when none of a queue has moved.

A message waits from the moment a broker stores it until the group is through with it: until a member has consumed or
acknowledged it or a later one of its queue, a filter has left it out, or a commit or a reset has passed it. A message
that was popped waits until it is done itself (`InFlight`). Only messages to which a member subscribes count.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

import attrs

from emulator.history.in_flight import FLIGHT_EVENTS, InFlight
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.spec.model.scenario import BROKER
from emulator.state.owners import GroupQueue
from emulator.trace.schema import BELIEFS, MESSAGES, OWNERSHIP
from emulator.why.words import value_of
from nodes.beliefs import BeliefKind, ConsumptionResult, MessageEvent, OwnershipEvent
from nodes.protocol.model import MessageModel

ON_ITS_WAY_NS = 1_000_000_000
"""A message that waits for less is on its way."""
_CONSUMED, _ACKED, _FILTERED, _COMMITTED, _RESET = (
    MessageEvent.CONSUMED.value,
    MessageEvent.ACKED.value,
    MessageEvent.FILTERED.value,
    MessageEvent.COMMITTED.value,
    MessageEvent.RESET.value,
)
_MOVES = (_CONSUMED, _ACKED, _FILTERED, _COMMITTED, _RESET, OwnershipEvent.ACQUIRED.value)
_STORED, _ACQUIRED = MessageEvent.STORED.value, OwnershipEvent.ACQUIRED.value
_TAG = "TAG"


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
    own = {
        (row.text("node"), row.text("subject")): row for row in rows if row.text("subject").rpartition("/")[0] == group
    }
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
    value = value_of(subscription)
    expression = value["expression"]
    if value["type"] != _TAG or expression in ("", "*"):
        return True
    return tags in [part.strip() for part in expression.split("||")]


def backlog(trace: TraceRows, group: str, at_ns: int | None) -> GroupBacklog:
    """What waits for a group.

    Args:
        trace: of the run.
        group: the consumer group.
        at_ns: the instant; None: the end of the run.
    """
    until_ns = trace.end_ns() if at_ns is None else min(at_ns, trace.end_ns())
    counting = _Counting(group, subscriptions_of(trace, group, at_ns), popped_topics(trace, group, at_ns))
    for row in _rows(trace, group, counting.topics, until_ns):
        counting.take(*row)
    return counting.result(until_ns)


_Row = tuple[int, int, str, str, str, str, str, int, int, str]
"""seq, t_ns, event, node, role, topic, brokerName, queueId, offset, tags."""
_COLUMNS = ("seq", "t_ns", "event", "node", "role", "topic", "broker_name", "queue_id", "offset", "tags")


def _rows(trace: TraceRows, group: str, topics: Sequence[str], until_ns: int) -> Iterator[Any]:
    stored = trace.tuples(MESSAGES, _COLUMNS, event=_STORED, topic=topics, until_ns=until_ns)
    done = tuple(dict.fromkeys((*_MOVES, *(event.value for event in FLIGHT_EVENTS))))
    passed = trace.tuples(MESSAGES, _COLUMNS, event=done, group=group, until_ns=until_ns)
    acquired = trace.tuples(OWNERSHIP, _COLUMNS[:-1], event=_ACQUIRED, group=group, until_ns=until_ns)
    yield from merge(stored, passed, ((*row, "") for row in acquired), key=itemgetter(0))


@attrs.define
class _QueueReader:
    """How far a group, or one member that broadcasts, is in a queue."""

    position: int
    """Everything below is done."""
    since_ns: int
    begun: bool = False
    waiting: int = 0
    in_flight: InFlight = attrs.Factory(InFlight)


@attrs.define
class _SubscribedQueue:
    """The messages of a queue to which a member subscribes, in order."""

    offsets: list[int] = attrs.Factory(list)
    stored_ns: list[int] = attrs.Factory(list)
    readers: dict[str, _QueueReader] = attrs.Factory(dict)
    """By node; empty: the group."""


class _Counting:
    """Counts what waits, row by row."""

    def __init__(self, group: str, subscriptions: list[TraceRow], popped: Sequence[str]) -> None:
        self._group = group
        self._broadcasts = broadcasts(subscriptions)
        self._nodes = tuple(dict.fromkeys(row.text("node") for row in subscriptions)) if self._broadcasts else ("",)
        self._of_topic: dict[str, list[TraceRow]] = {}
        for row in subscriptions:
            self._of_topic.setdefault(topic_of(row), []).append(row)
        self.topics = (*self._of_topic, *popped)
        self._queues: dict[tuple[str, str, int], _SubscribedQueue] = {}
        self._since_ns = min((row.t_ns for row in subscriptions), default=0)
        """Before that nothing waits for the group."""
        self._longest: PastStall | None = None

    def take(
        self, _seq: int, t_ns: int, event: str, node: str, role: str, topic: str, broker: str, queue_id: int,
        offset: int, tags: str,
    ) -> None:  # fmt: skip
        """A row about the group or about one of its topics."""
        queue = self._queues.setdefault((topic, broker, queue_id), _SubscribedQueue())
        if event == _STORED:
            self._store(queue, t_ns, topic, offset, tags)
        elif not self._broadcasts:
            self._move(queue, (topic, broker, queue_id), "", t_ns, event, offset, tags)
        elif role != BROKER and node in self._nodes:
            self._move(queue, (topic, broker, queue_id), node, t_ns, event, offset, tags)

    def _store(self, queue: _SubscribedQueue, t_ns: int, topic: str, offset: int, tags: str) -> None:
        if queue.offsets and offset <= queue.offsets[-1]:  # a broker has lost the end of its log
            place = bisect_left(queue.offsets, offset)
            del queue.offsets[place:], queue.stored_ns[place:]
            for reader in queue.readers.values():
                reader.position = min(reader.position, offset)
                reader.in_flight.cut(offset)
        subscriptions = self._of_topic.get(topic)
        if subscriptions is None or any(is_wanted(row, tags) for row in subscriptions):
            queue.offsets.append(offset)
            queue.stored_ns.append(t_ns)
        for node in self._nodes:
            reader = queue.readers.setdefault(node, _QueueReader(offset, t_ns))
            if not reader.waiting:
                reader.since_ns = t_ns
            self._recount(queue, reader)

    def _move(
        self,
        queue: _SubscribedQueue,
        place: tuple[str, str, int],
        node: str,
        t_ns: int,
        event: str,
        offset: int,
        tags: str,
    ) -> None:
        done = offset + 1 if event in (_CONSUMED, _ACKED, _FILTERED) else offset
        if done < 0:
            return
        reader = queue.readers.setdefault(node, _QueueReader(done, t_ns))
        if event in FLIGHT_EVENTS:
            reader.in_flight.take(event, offset, tags)
            self._recount(queue, reader)
        if event not in _MOVES:
            return
        if event == _RESET or (event == _ACQUIRED and not reader.begun):
            moved = done != reader.position
            reader.position = done
        else:
            moved = done > reader.position
            reader.position = max(reader.position, done)
        reader.begun = True
        if moved or (event == _CONSUMED and tags != ConsumptionResult.LATER):
            since_ns = max(reader.since_ns, self._since_ns)
            if reader.waiting and t_ns - since_ns > (0 if self._longest is None else self._longest.lasted_ns):
                self._longest = PastStall(GroupQueue(self._group, *place), since_ns, t_ns)
            reader.since_ns = t_ns
        self._recount(queue, reader)

    def _recount(self, queue: _SubscribedQueue, reader: _QueueReader) -> None:
        passed = bisect_left(queue.offsets, reader.position)
        reader.waiting = len(queue.offsets) - passed + reader.in_flight.count_below(reader.position)

    def result(self, at_ns: int) -> GroupBacklog:
        """What waits now."""
        found = []
        for (topic, broker, queue_id), queue in self._queues.items():
            for node, reader in queue.readers.items():
                if reader.waiting:
                    in_flight = reader.in_flight.below(reader.position)
                    place = bisect_left(queue.offsets, in_flight[0] if in_flight else reader.position)
                    if place == len(queue.offsets):  # what is in flight was stored before the trace began
                        continue
                    of = GroupQueue(self._group, topic, broker, queue_id)
                    oldest = queue.offsets[place], queue.stored_ns[place]
                    found.append(WaitingQueue(of, node, reader.waiting, *oldest, reader.since_ns))
        found.sort(key=lambda item: (-item.messages, item.queue, item.node))
        return GroupBacklog(at_ns, tuple(found), self._longest)
