"""Messages: what brokers stored, what each group consumed, and what a filter left out.

A message is known by its queue, its offset and its store time, since offsets are used again after a loss of writes.
Each consumer of a group that broadcasts consumes every message from its own start on.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import Consumer, GroupQueue, TopicQueue
from emulator.history.rows.row_classes import MessageRow, OwnershipRow
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, OWNERSHIP, TraceTable
from nodes.beliefs import MessageEvent, OwnershipEvent
from nodes.filter.filter_api import is_tag_type

Identity = tuple[int, int]
"""Offset and store time."""
_EMULATED_ADDRESS = re.compile(r"127\.1\.")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+")


@attrs.define
class Consumption:
    """What a group, or one consumer of a group that broadcasts, did with one queue."""

    first: int = -1
    """Lowest offset from which it started; -1: it never owned the queue."""
    reached: int = -1
    """The last commit; before the first one, the first start."""
    passed: int = 0
    """Highest offset that it committed; of a consumer that broadcasts, one above the highest that it consumed."""
    acknowledged: int = -1
    """Highest offset that a guest committed: what guests consume is not traced."""
    consumed: dict[Identity, int] = attrs.Factory(dict)
    """Mapping message -> how often it was consumed."""
    filtered: dict[Identity, bool] = attrs.Factory(dict)
    """Messages that a filter left out, and whether another member subscribes to them."""
    jumps: list[tuple[int, int]] = attrs.Factory(list)
    """Starts above the offset that had been reached: from, to."""
    given_up: list[tuple[int, int]] = attrs.Factory(list)
    """Offsets that an administrator skipped, or whose messages expired: from, to."""

    first_popped: int = -1
    """Lowest offset that it popped; -1: it pops none of the queue."""
    acked: dict[Identity, int] = attrs.Factory(dict)
    """Messages that it acknowledged before any listener consumed them, since those of guests are not seen, and the row
    with which it did first."""
    began: tuple[int, int] | None = None
    """Row with which the first owner began, and the offset at which it did."""

    def begin(self) -> int:
        """Lowest offset that it is owed: where an owner began, else what it got first; -1: it got none."""
        if self.first >= 0 or self.first_popped >= 0:
            return self.first if self.first >= 0 else self.first_popped
        return min((offset for offset, _ in self.consumed), default=-1)

    def give_up(self, until: int) -> None:
        """What the group has not passed below an offset is not owed any more."""
        done = max(self.passed, self.reached)
        if done < until:
            self.given_up.append((done, until))

    def start(self, seq: int, offset: int) -> None:
        """An owner begins at an offset."""
        self.began = self.began or (seq, offset)
        self.first = offset if self.first < 0 else min(self.first, offset)
        if 0 <= self.reached < offset:
            self.jumps.append((self.reached, offset))
        self.reached = offset if self.reached < 0 else self.reached


class QueueMessages:
    """The messages of one queue of a topic, and what all groups did with them: a sweep.

    Args:
        presence: who broadcasts, and who subscribes to what.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.stored: list[Identity] = []
        """All messages, as they were stored."""
        self.end = 0
        """Offset of the next message."""
        self.cut: dict[Identity, str] = {}
        """Messages that were removed from the log -> sender and when it was sent."""
        self.of: dict[Consumer, Consumption] = {}
        """What each group did, and each consumer of the groups that broadcast."""
        self._reads: dict[str, Callable[[Any], None]] = {
            MessageEvent.STORED: self._store,
            MessageEvent.CONSUMED: self._consume,
            MessageEvent.FILTERED: self._filter,
            MessageEvent.COMMITTED: self._commit,
            MessageEvent.CUT: self._cut,
            MessageEvent.RESET: self._reset,
            MessageEvent.EXPIRED: self._expire,
            MessageEvent.POPPED: self._pop,
            MessageEvent.ACKED: self._ack,
            OwnershipEvent.ACQUIRED: self._own,
        }

    def feed(self, row: MessageRow | OwnershipRow) -> None:
        """A message, an offset, or an owner of the queue."""
        read = self._reads.get(row.event)
        if read is not None:
            read(row)

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""

    def times_consumed(self, consumer: Consumer, identity: Identity) -> int:
        """How often a group, or a consumer of a group that broadcasts, has consumed a message so far."""
        known = self.of.get(consumer)
        return known.consumed.get(identity, 0) if known is not None else 0

    def _own(self, row: OwnershipRow) -> None:
        if row.offset >= 0:
            for known in self._of(row):
                known.start(row.seq, row.offset)

    def _consume(self, row: MessageRow) -> None:
        identity = row.offset, row.stored_ms
        for known in self._of(row):
            known.consumed[identity] = known.consumed.get(identity, 0) + 1
        if self._presence.broadcasts(row.group, row.seq):
            mine = self.of[row.queue, row.node]
            mine.passed = max(mine.passed, row.offset + 1)

    def _pop(self, row: MessageRow) -> None:
        known = self._known((row.queue, ""))
        known.first_popped = row.offset if known.first_popped < 0 else min(known.first_popped, row.offset)

    def _ack(self, row: MessageRow) -> None:
        known, identity = self._known((row.queue, "")), (row.offset, row.stored_ms)
        if identity not in known.consumed:
            known.acked.setdefault(identity, row.seq)

    def _filter(self, row: MessageRow) -> None:
        for known in self._of(row):
            known.filtered[row.offset, row.stored_ms] = self._matches_another(row)

    def _commit(self, row: MessageRow) -> None:
        known = self._known((row.queue, ""))
        known.passed = max(known.passed, row.offset)
        known.reached = row.offset
        if _ADDRESS.fullmatch(row.client_id) and not _EMULATED_ADDRESS.match(row.client_id):
            known.acknowledged = max(known.acknowledged, row.offset)

    def _cut(self, row: MessageRow) -> None:
        self.cut[row.offset, row.stored_ms] = row.key

    def _reset(self, row: MessageRow) -> None:
        self._known((row.queue, "")).give_up(row.offset)

    def _expire(self, row: MessageRow) -> None:
        for known in self.of.values():
            known.give_up(row.offset)

    def _store(self, row: MessageRow) -> None:
        self.stored.append((row.offset, row.stored_ms))
        self.end = row.offset + 1

    def _matches_another(self, row: MessageRow) -> bool:
        """Whether a live member subscribes by tags to a message that another one's subscription leaves out."""
        subscriptions = self._presence.subscriptions(row.group, row.topic, row.seq)
        expressions = [
            subscription["expression"] for subscription in subscriptions if is_tag_type(subscription["type"])
        ]
        differ = len(dict.fromkeys(expressions)) > 1
        return differ and self._presence.is_wanted(row.group, row.topic, row.tags, row.seq)

    def _of(self, row: MessageRow | OwnershipRow) -> Iterator[Consumption]:
        """The consumption of the group, and of the consumer if the group broadcasts."""
        queue = row.queue
        yield self._known((queue, ""))
        if self._presence.broadcasts(row.group, row.seq):
            yield self._known((queue, row.node))

    def _known(self, consumer: Consumer) -> Consumption:
        known = self.of.get(consumer)
        if known is None:
            known = self.of[consumer] = Consumption()
        return known


class TracedMessages(Watcher):
    """The messages of all queues.

    Args:
        presence: reads the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._of_shares: dict[GroupQueue, int] = {}
        """What `duplicates` returned in the shares of the run."""
        self.queues: dict[TopicQueue, QueueMessages] = {}
        self.unacknowledged: dict[str, None] = {}
        """Sender and when it was sent, of messages whose sender did not receive SEND_OK."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages, and where owners start."""
        return {OWNERSHIP: self._feed, MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.UNACKNOWLEDGED:
            self.unacknowledged[row.key] = None
        else:
            self._feed(row)

    def _feed(self, row: MessageRow | OwnershipRow) -> None:
        place = row.topic, row.broker_name, row.queue_id
        found = self.queues.get(place)
        if found is None:
            found = self.queues[place] = QueueMessages(self._presence)
        found.feed(row)

    def part(self) -> dict[GroupQueue, int]:
        """The duplicates; messages themselves are known in their share only."""
        return self.duplicates()

    def merge(self, part: Mapping[GroupQueue, int]) -> None:
        """Take over the duplicates of a share."""
        self._of_shares.update(part)

    def end(self, place: TopicQueue) -> int:
        """Offset of the next message of a queue; 0: none was stored."""
        found = self.queues.get(place)
        return found.end if found is not None else 0

    def broadcasts(self, row: MessageRow) -> bool:
        """Whether each consumer of the group consumes all messages, by the rows before one."""
        return self._presence.broadcasts(row.group, row.seq)

    def nth(self, row: MessageRow) -> int:
        """How often the group has consumed a message, with this row; each consumer counts if the group broadcasts."""
        return self.times_consumed(row, row.node if self.broadcasts(row) else "")

    def is_first(self, row: MessageRow) -> bool:
        """Whether a consumption or an acknowledgement is the first end of a message for the group, or the consumer."""
        acked_seq = self._acked_seq(row)
        if row.event == MessageEvent.CONSUMED:
            return self.nth(row) == 1 and not 0 <= acked_seq < row.seq
        return acked_seq == row.seq

    def _acked_seq(self, row: MessageRow) -> int:
        """The first acknowledgement of a message that no listener had consumed; -1: there is none before the row."""
        found = self.queues.get((row.topic, row.broker_name, row.queue_id))
        known = None if found is None or row.stored_ms < 0 or self.broadcasts(row) else found.of.get((row.queue, ""))
        return -1 if known is None else known.acked.get((row.offset, row.stored_ms), -1)

    def times_consumed(self, row: MessageRow, node: str = "") -> int:
        """How often the group has consumed a message so far; with a node, how often this consumer has."""
        found = self.queues.get((row.topic, row.broker_name, row.queue_id))
        return found.times_consumed((row.queue, node), (row.offset, row.stored_ms)) if found is not None else 0

    def began_at(self, consumer: Consumer, seq: int) -> int:
        """Offset at which the first owner had begun before a row; 0: none had."""
        found = self.queues.get(consumer[0].place)
        known = found.of.get(consumer) if found is not None else None
        return known.began[1] if known is not None and known.began is not None and known.began[0] < seq else 0

    def duplicates(self) -> dict[GroupQueue, int]:
        """How often messages were consumed again, per queue; of groups that broadcast, by the same consumer."""
        found: dict[GroupQueue, int] = dict(self._of_shares)
        for consumer, known in self.consumers():
            times = sum(times - 1 for times in known.consumed.values())
            found[consumer[0]] = found.get(consumer[0], 0) + times
        return {queue: times for queue, times in found.items() if times}

    def consumers(self) -> Iterator[tuple[Consumer, Consumption]]:
        """What each group did with each queue; of groups that broadcast, what each consumer did."""
        for queue in self.queues.values():
            for (of, node), known in queue.of.items():
                if node or not self._presence.broadcasts(of.group):
                    yield (of, node), known
