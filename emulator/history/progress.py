"""Progress: how far groups have come in each queue, what waits for them, and when nothing moves.

A queue is stalled while it has messages that some member of its group subscribes to and that the group has neither
consumed nor left out by a filter nor passed by a commit, although the group has a live member and the queue can be
read. It does not matter which member owns the queue, if any does, or why nothing moves. In a group that broadcasts each
consumer has to make progress.

A message that a broker has handed out (popped) waits until it is consumed, acknowledged or revived, though the offset
of the group has passed it: RocketMQ's `ConsumerLagCalculator` counts messages in flight, too.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import attrs

from emulator.history.in_flight import FLIGHT_EVENTS, InFlight
from emulator.history.presence import Presence
from emulator.history.rows.queues import Consumer, GroupQueue, TopicQueue
from emulator.history.rows.row_classes import MessageRow, OwnershipRow, Process, Span, place_of
from emulator.history.rows.shares import WHOLE, PartitionedBy, RunShare
from emulator.history.rows.sweeps import SettlingSweeps
from emulator.spec.model.scenario import BROKER
from emulator.trace.schema import MESSAGES, OWNERSHIP, TraceTable
from nodes.beliefs import MessageEvent, OwnershipEvent

SHORTEST_NS = 1_000_000_000
"""Shorter stalls are left out: every message waits a little."""
_PROGRESS = (MessageEvent.CONSUMED, MessageEvent.FILTERED, MessageEvent.COMMITTED)
_STORED_MAX = 100_000
"""Messages of a queue that may come between the start of a process and its first pull."""
_JOINS_LATER_NS = 5_000_000_000
"""A consumer whose first process comes so long after the first message joins a queue that is in use."""
_GIVE_UP = (MessageEvent.RESET, MessageEvent.EXPIRED)


@attrs.frozen
class QueueStall:
    """A readable queue had a backlog, and its group made no progress for a second or more."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    start_ns: int
    end_ns: int
    censored: bool
    backlog: int
    """Messages at its end."""


@attrs.frozen
class QueueBacklog:
    """What waits for a group, or a consumer of a group that broadcasts, in one queue."""

    messages: int
    """Offsets from the position to the last message that a member subscribes to, and messages in flight."""
    in_flight: int
    """How many of them are in flight: popped, and not done."""
    first_offset: int
    """Everything below is done."""
    still_ns: int
    """Since when messages wait and nothing moves; -1: nothing waits."""
    longest_still: Span | None
    """The longest time in which messages waited and nothing moved, until something did."""


class PassedBy(StrEnum):
    """Why a group passed messages that it had not consumed."""

    RESET = "reset"
    """An administrator set its offset forward."""
    EXPIRED = "expired"
    """A broker deleted the oldest file of its log."""
    MISSED_AT_START = "missed_at_start"
    """The process of a consumer of a group that broadcasts had started, and had not pulled yet."""


@attrs.frozen
class Passed:
    """Messages that a group, or a consumer of a group that broadcasts, passed without consuming them."""

    consumer: Consumer
    by: PassedBy
    t_ns: int
    messages: int
    """Offsets, also of messages that no member subscribes to."""


@attrs.define
class _Position:
    """How far a group, or a consumer that broadcasts, has come in a queue."""

    offset: int
    """Everything below is done."""
    before_reset: int = 0
    """How far it had come before an administrator set it back: what lies below was done once."""
    end: int = 0
    """One above the last message that a member subscribes to, or the last one that ended did."""
    since_ns: int = -1
    """Since when nothing moves; -1: it is not stalled."""
    last: int = -1
    """The message that was consumed last; to consume it once more is no progress."""
    moved: bool = False
    """Whether it has moved in this instant."""
    begun: bool = False
    """Whether an owner has begun, or anything was done."""
    in_flight: InFlight = attrs.Factory(InFlight)
    still_ns: int = -1
    """Since when messages wait and nothing moves, whoever lives; -1: nothing waits."""
    longest_still: Span | None = None
    """The longest time in which messages waited and nothing moved, until something did."""

    @property
    def waiting(self) -> int:
        """Messages that are not done."""
        return max(0, self.end - self.offset) + self.in_flight.count_below(self.offset)


class QueueProgress:
    """How far all groups have come in one queue of a topic: a sweep.

    Args:
        place: the queue.
        presence: who subscribes to what, and who can read.
        stored_max: of how many messages it is remembered when they were stored, for those that are missed at a start.
    """

    def __init__(self, place: TopicQueue, presence: Presence, stored_max: int = _STORED_MAX) -> None:
        self._place = place
        self._presence = presence
        self._end = 0
        """Offset of the next message."""
        self._last_tags: str | None = None
        """Tags of the last message; None: there is none."""
        self._positions: dict[Consumer, _Position] = {}
        self.joined: list[str] = []
        """Groups that have a position, and are not known to `GroupProgress` yet."""
        self._touched: dict[Consumer, None] = {}
        self.found: list[QueueStall] = []
        self.passed: list[Passed] = []
        self._stored_ns: deque[int] = deque(maxlen=stored_max)
        """When each of the latest messages was stored."""
        self._first_ns = -1
        """When the first message was stored; -1: there is none."""
        self._began: dict[Process, None] = {}
        """Processes of groups that broadcast that have begun."""

    def feed(self, row: MessageRow | OwnershipRow) -> None:
        """An owner began, or a message was stored, consumed, filtered or passed by a commit."""
        if isinstance(row, OwnershipRow):
            self._own(row)
        elif row.event == MessageEvent.STORED:
            self._store(row)
        elif row.event in _GIVE_UP:
            self._give_up(row)
        elif row.event in _PROGRESS:
            self._move(row)
        else:
            self._fly(row)

    def _own(self, row: OwnershipRow) -> None:
        if self._presence.broadcasts(row.group, row.seq):
            self._miss(row)
        for key in self._keys(row):
            # What lies below is no backlog of this owner, whether it was consumed or skipped.
            position = self._position(key, row.offset)
            # The first owner may begin with messages that are older than its group.
            position.offset = max(position.offset, row.offset) if position.begun else row.offset
            position.end = max(position.end, self._stored_for(key[0], row.seq))
            position.begun = True

    def _give_up(self, row: MessageRow) -> None:
        """An administrator set an offset, or messages expired: what lies below waits no more.

        Where an offset was set back, what lies above it waits once more.
        """
        by = PassedBy.EXPIRED if row.event == MessageEvent.EXPIRED else PassedBy.RESET
        every = [(key, position) for key, position in self._positions.items() if row.group in ("", key[0].group)]
        for key, position in every:
            lost = min(row.offset, position.end) - max(position.offset, position.before_reset)
            if lost > 0:
                self.passed.append(Passed(key, by, row.t_ns, lost))
            is_set = by is PassedBy.RESET and row.offset >= 0
            position.moved = position.moved or row.offset > position.offset or is_set
            position.before_reset = max(position.before_reset, position.offset)
            position.offset = row.offset if is_set else max(position.offset, row.offset)
            self._touched[key] = None

    def _miss(self, row: OwnershipRow) -> None:
        """A consumer of a group that broadcasts has a new process: count what was stored since this began.

        A first process counts only in a queue that is in use: consumers and producers that start together miss nothing
        that a business waits for.
        """
        process = row.node, row.incarnation
        begun_ns = self._presence.processes.begun_ns(process)
        if process in self._began or begun_ns > row.t_ns:
            return
        if row.incarnation == 1 and (self._first_ns < 0 or begun_ns - self._first_ns < _JOINS_LATER_NS):
            return
        self._began[process] = None
        first = self._end - len(self._stored_ns)
        missed = sum(t_ns >= begun_ns for t_ns in islice(self._stored_ns, max(0, row.offset - first)))
        if missed:
            self.passed.append(Passed((row.queue, row.node), PassedBy.MISSED_AT_START, row.t_ns, missed))

    def _move(self, row: MessageRow) -> None:
        done = row.offset if row.event == MessageEvent.COMMITTED else row.offset + 1
        for key in self._keys(row):
            position = self._position(key, done)
            consumes = row.event == MessageEvent.CONSUMED and row.offset != position.last
            position.moved = position.moved or consumes or done > position.offset
            position.begun = True
            position.offset = max(position.offset, done)
            position.last = row.offset
            if row.event in FLIGHT_EVENTS:
                position.in_flight.take(row.event, row.offset, row.tags)

    def _fly(self, row: MessageRow) -> None:
        """A message was popped, or what was popped came to its end by another way than a listener."""
        for key in self._keys(row):
            position = self._position(key, row.offset)
            position.in_flight.take(row.event, row.offset, row.tags)
            if row.event == MessageEvent.POPPED and position.end <= row.offset:
                # Nobody is known to subscribe to it, as with guests of whom only what they pop is seen.
                position.offset = max(position.offset, row.offset + 1)

    def _store(self, row: MessageRow) -> None:
        is_rewritten = row.offset < self._end  # a broker lost the end of its log
        self._end = row.offset + 1
        self._stored_ns.append(row.t_ns)
        self._first_ns = row.t_ns if self._first_ns < 0 else self._first_ns
        self._last_tags = row.tags
        for group in self._presence.consumer_groups(row.topic, row.seq):
            if self._presence.is_awaited(group, row.topic, row.tags, row.seq):
                for key in self._consumers(GroupQueue(group, *self._place), row):
                    self._position(key, row.offset).end = row.offset + 1
        for key, position in self._positions.items() if is_rewritten else ():
            position.offset = min(position.offset, row.offset)
            position.before_reset = min(position.before_reset, row.offset)
            position.end = min(position.end, row.offset + 1)
            position.in_flight.cut(row.offset)
            self._touched[key] = None

    def _stored_for(self, queue: GroupQueue, seq: int) -> int:
        """The offset behind the last message of the queue, if a member subscribes to it; else 0."""
        tags = self._last_tags
        is_awaited = tags is not None and self._presence.is_awaited(queue.group, queue.topic, tags, seq)
        return self._end if is_awaited else 0

    def _keys(self, row: MessageRow | OwnershipRow) -> Iterator[Consumer]:
        if not self._presence.broadcasts(row.group, row.seq):
            yield row.queue, ""
        elif row.role != BROKER:
            yield row.queue, row.node

    def _consumers(self, queue: GroupQueue, row: MessageRow) -> Iterator[Consumer]:
        if not self._presence.broadcasts(queue.group, row.seq):
            yield queue, ""
            return
        for node, _ in self._presence.members_before(queue.group, queue.topic, row.seq):
            yield queue, node

    def _position(self, key: Consumer, offset: int) -> _Position:
        """The position of a consumer, which settles at the end of this instant."""
        self._touched[key] = None
        position = self._positions.get(key)
        if position is None:
            position = self._positions[key] = _Position(offset)
            self.joined.append(key[0].group)
        return position

    def forget(self) -> None:
        """Forget the stalls that are over, and what was passed."""
        self.found.clear()
        self.passed.clear()

    # --- questions ------------------------------------------------------------------------

    def bounds(self) -> Iterator[tuple[Consumer, int, int]]:
        """How far each group, or consumer that broadcasts, has come, and the offset behind the last one it awaits."""
        return ((key, position.offset, position.end) for key, position in self._positions.items())

    def in_flight(self, key: Consumer) -> list[int]:
        """Offsets that a consumer has passed, of messages that were popped and are not done."""
        position = self._positions[key]
        return position.in_flight.below(position.offset)

    def waiting(self) -> Iterator[tuple[Consumer, int]]:
        """Messages that wait for consumers that had rows in this instant."""
        for key in self._touched:
            position = self._positions[key]
            yield key, position.waiting

    def now(self) -> Iterator[tuple[Consumer, "QueueBacklog"]]:
        """What waits for each group, or consumer that broadcasts, after the instant that was settled last."""
        for key, position in self._positions.items():
            in_flight = position.in_flight.below(position.offset)
            first = in_flight[0] if in_flight else position.offset
            yield key, QueueBacklog(position.waiting, len(in_flight), first, position.still_ns, position.longest_still)

    # --- instants -------------------------------------------------------------------------

    def recheck(self, groups: Container[str] | None = None) -> None:
        """Members or brokers changed in this instant, so the positions of these groups settle; None: those of all."""
        concerned = (key for key in self._positions if groups is None or key[0].group in groups)
        self._touched.update(dict.fromkeys(concerned))

    def settle(self, t_ns: int) -> None:
        """Look at consumers that had rows, or at all."""
        for key in self._touched:
            self._look(key, self._positions[key], t_ns)
        self._touched.clear()

    def _look(self, key: Consumer, position: _Position, t_ns: int) -> None:
        self._look_whether_still(position, t_ns)
        stalls = position.end > position.offset and self._is_owed(key, t_ns)
        if position.since_ns >= 0 and (position.moved or not stalls):
            self._close(key, position, t_ns, censored=False)
        if stalls and position.since_ns < 0:
            position.since_ns = t_ns
        position.moved = False

    @staticmethod
    def _look_whether_still(position: _Position, t_ns: int) -> None:
        waits = position.end > position.offset or position.in_flight.offsets
        since_ns, longest = position.still_ns, position.longest_still
        if since_ns >= 0 and (position.moved or not waits):
            if longest is None or t_ns - since_ns > longest[1] - longest[0]:
                position.longest_still = since_ns, t_ns
            position.still_ns = -1
        if waits and position.still_ns < 0:
            position.still_ns = t_ns

    def _is_owed(self, key: Consumer, t_ns: int) -> bool:
        queue, node = key
        members = self._presence.members(queue.group, queue.topic, t_ns)
        there = any(node in ("", member) for member, _ in members)
        return there and self._presence.is_readable(queue.topic, queue.broker_name, t_ns)

    def _close(self, key: Consumer, position: _Position, t_ns: int, *, censored: bool) -> None:
        if t_ns - position.since_ns >= SHORTEST_NS:
            backlog = max(0, position.end - position.offset)
            self.found.append(QueueStall(*key, position.since_ns, t_ns, censored, backlog))
        position.since_ns = -1

    def close(self, end_ns: int) -> None:
        """Close what is open."""
        for key, position in self._positions.items():
            if position.since_ns >= 0:
                self._close(key, position, end_ns, censored=True)


class GroupProgress(SettlingSweeps[TopicQueue, QueueProgress]):
    """How far all groups have come in all queues.

    Args:
        presence: reads the same rows before.
        share: the part of the run that is read.
        stored_max: see `QueueProgress`; 0: what consumers miss at a start is not asked for.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...]] = (MessageEvent.STORED, *_PROGRESS, *_GIVE_UP, *FLIGHT_EVENTS)

    def __init__(self, presence: Presence, share: RunShare = WHOLE, stored_max: int = _STORED_MAX) -> None:
        super().__init__(partial(QueueProgress, presence=presence, stored_max=stored_max), share)
        self._presence = presence
        self._fed: dict[TopicQueue, None] = {}
        """Queues of which rows came in this instant."""
        self._of_group: dict[str, dict[TopicQueue, None]] = {}
        """Mapping group -> queues in which it has a position."""

    @property
    def found(self) -> list[QueueStall]:
        """All stalls of a second or more."""
        return [item for sweep in self.of.values() for item in sweep.found]

    @property
    def passed(self) -> list[Passed]:
        """Messages that groups passed without consuming them."""
        return [item for sweep in self.of.values() for item in sweep.passed]

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages, and where owners start."""
        return {OWNERSHIP: self._own, MESSAGES: self._message}

    def _own(self, row: OwnershipRow) -> None:
        if row.event == OwnershipEvent.ACQUIRED and row.offset >= 0:
            self._take(row)

    def _message(self, row: MessageRow) -> None:
        if row.event in self.message_events:
            self._take(row)

    def has(self, key: TopicQueue) -> bool:
        """Whether a queue belongs to the share of the run that is read."""
        return self.share.has_queue(*key)

    def _take(self, row: MessageRow | OwnershipRow) -> None:
        place = place_of(row)
        self.feed(place, row)
        sweep = self.of.get(place)
        if sweep is not None:
            self._fed[place] = None
            for group in sweep.joined:
                self._of_group.setdefault(group, {})[place] = None
            sweep.joined.clear()

    def part(self) -> dict[TopicQueue, tuple[list[QueueStall], list[Passed]]]:
        """Mapping queue -> its stalls, and what was passed."""
        return {place: (item.found, item.passed) for place, item in self.of.items() if item.found or item.passed}

    def merge(self, part: Mapping[TopicQueue, tuple[list[QueueStall], list[Passed]]]) -> None:
        """Take over the queues of a share."""
        for place, (found, passed) in part.items():
            sweep = self.sweep(place)
            sweep.found, sweep.passed = found, passed

    def concerned(self, t_ns: int) -> Iterable[TopicQueue]:  # noqa: ARG002 - what changed is known
        """The queues of groups whose members or brokers changed."""
        self._fed.clear()
        changed = self._presence.changed
        if "" in changed:
            for sweep in self.of.values():
                sweep.recheck()
            return self.of
        places = dict.fromkeys(place for group in changed for place in self._of_group.get(group, ()))
        for place in places:
            self.of[place].recheck(changed)
        return places

    def forget(self) -> None:
        """Forget the stalls that are over, and what was passed."""
        for sweep in self.of.values():
            sweep.forget()

    def waiting(self) -> Iterator[tuple[Consumer, int]]:
        """Messages that wait in each queue of which a row came in this instant."""
        return (item for place in self._fed for item in self.of[place].waiting())

    def bounds(self) -> Iterator[tuple[Consumer, int, int]]:
        """See `QueueProgress.bounds`, of all queues."""
        return (item for sweep in self.of.values() for item in sweep.bounds())

    def in_flight(self, key: Consumer) -> list[int]:
        """See `QueueProgress.in_flight`."""
        return self.of[key[0].place].in_flight(key)

    def now(self) -> "Iterator[tuple[Consumer, QueueBacklog]]":
        """What waits for each group, or consumer that broadcasts, in each queue in which it has a position."""
        return (item for sweep in self.of.values() for item in sweep.now())
