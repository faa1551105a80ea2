"""Pops whose offset is not committed yet, and, if `enablePopBufferMerge` is on, their acknowledgements in memory.

An offset moves when the check point of the pop is stored, not when its messages are acknowledged. A scan every 5 ms
says what is to be stored; the caller stores it and reports how that went.

Mirrors:
    `org.apache.rocketmq.broker.processor.PopBufferMergeService`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

import attrs

from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint, get_bit, merge_key, set_bit
from nodes.protocol.java import bucket_of, java_hash
from nodes.protocol.names import build_polling_key
from nodes.values import frozen

SCAN_INTERVAL_MS = 5
OFFSET_QUEUE_IDLE_MS = 5 * 60 * 1000
NOT_STORED = -1
STORING = 2**63 - 1
NO_OFFSET = -1
_SPARE_MS = 1500
_BUCKETS = 32_768
"""Of RocketMQ's table, whose order is that of the scan."""
_SCANS_PER_COUNT = 12_000


@attrs.define(eq=False)
class PopCheckPointWrapper:
    """A pop."""

    revive_queue_id: int
    revive_queue_offset: int
    """Where the check point stands; -1: it is not stored, the largest number: it is being stored."""
    ck: PopCheckPoint
    next_begin_offset: int
    """The offset to commit."""
    just_offset: bool
    """Whether it is here for its offset alone, so that acknowledgements go to the log."""
    ck_stored: bool = False
    bits: int = 0
    """A bit for each message that is acknowledged."""
    to_store_bits: int = 0
    """A bit for each acknowledgement that is in the log."""
    refused: bool = False
    """Whether the last put of its check point was refused."""
    merge_key: str = attrs.field(init=False)
    lock_key: str = attrs.field(init=False)
    _all_bits: int = attrs.field(init=False)
    """A bit for each message."""
    _bucket: int = attrs.field(init=False, default=-1)
    """-1: not asked for yet, as where a scan finds no other pop."""

    def __attrs_post_init__(self) -> None:
        self.merge_key = self.ck.merge_key
        self.lock_key = build_polling_key(self.ck.topic, self.ck.cid, self.ck.queue_id)
        self._all_bits = (1 << self.ck.num) - 1

    @property
    def bucket(self) -> int:
        """Its place in a scan."""
        if self._bucket < 0:
            self._bucket = bucket_of(java_hash(self.merge_key), _BUCKETS)
        return self._bucket

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do with its check point; with its offset alone it has no acknowledgements."""
        bits, every = self.bits, self._all_bits
        return bits & every == every or (self.ck_stored and not (bits ^ self.to_store_bits) & every)

    def acks_to_store(self) -> tuple[int, ...]:
        """The messages whose acknowledgement is here and not in the log, by their place in the pop."""
        different = self.bits ^ self.to_store_bits
        return tuple(index for index in range(self.ck.num) if get_bit(different, index))

    def storing(self) -> None:
        """Its check point goes to the log."""
        self.revive_queue_offset = STORING

    def stored(self, revive_queue_offset: int | None) -> None:
        """Its check point is in the log, or not.

        Args:
            revive_queue_offset: where, 0 on another broker; None: it was refused.
        """
        self.refused = revive_queue_offset is None
        self.ck_stored = self.ck_stored or revive_queue_offset is not None
        self.revive_queue_offset = NOT_STORED if revive_queue_offset is None else revive_queue_offset

    def acks_stored(self, indices: Sequence[int]) -> None:
        """Acknowledgements are in the log."""
        for index in indices:
            self.to_store_bits = set_bit(self.to_store_bits, index)


@attrs.define(eq=False)
class _OffsetQueue:
    """The pops of one queue, in their order."""

    last_pop_ms: int
    pops: deque[PopCheckPointWrapper] = attrs.field(factory=deque)


@frozen
class PopBufferOptions:
    """Options of the broker under their names."""

    enable_pop_buffer_merge: bool = False
    enable_pop_batch_ack: bool = False
    pop_ck_stay_buffer_time_ms: int = 10_000
    pop_ck_stay_buffer_time_out_ms: int = 3000
    pop_ck_max_buffer_size: int = 200_000
    pop_ck_offset_max_queue_size: int = 20_000


class PopBufferMerge:
    """The pops of one broker that are not finished."""

    def __init__(self, options: PopBufferOptions) -> None:
        self._options = options
        self._buffer: dict[str, PopCheckPointWrapper] = {}
        self._offset_queues: dict[str, _OffsetQueue] = {}
        self._scans = 0
        self.serving = True
        """Whether acknowledgements are merged: not after a scan that took long, until all is finished."""
        self.counter = 0
        """How many pops the buffer has, as far as was counted: a pop that replaces one counts, too."""

    @property
    def buffer(self) -> Mapping[str, PopCheckPointWrapper]:
        """Merge key -> pop."""
        return self._buffer

    @property
    def offset_queues(self) -> Mapping[str, Sequence[PopCheckPointWrapper]]:
        """`topic@group@queue id` -> pops whose offset is not committed, in their order."""
        return {key: tuple(queue.pops) for key, queue in self._offset_queues.items()}

    def get_latest_offset(self, lock_key: str) -> int:
        """Where the next pop of a queue begins; -1 if the committed offset says it."""
        queue = self._offset_queues.get(lock_key)
        return queue.pops[-1].next_begin_offset if queue and queue.pops else NO_OFFSET

    def add_ck(
        self, ck: PopCheckPoint, revive_queue_id: int, next_begin_offset: int, now_ms: int
    ) -> PopCheckPointWrapper | None:
        """Keep a pop and its acknowledgements in memory; None: it must be stored at once.

        Mirrors:
            `PopBufferMergeService#addCk`.
        """
        if not self._merges(ck, now_ms) or self.counter > self._options.pop_ck_max_buffer_size:
            return None
        made = PopCheckPointWrapper(revive_queue_id, NOT_STORED, ck, next_begin_offset, False)
        queue = self._offset_queues.get(made.lock_key)
        if queue is not None and len(queue.pops) >= self._options.pop_ck_offset_max_queue_size:
            return None
        return made if self._add(made) else None

    def add_ck_just_offset(
        self, ck: PopCheckPoint, revive_queue_id: int, next_begin_offset: int
    ) -> PopCheckPointWrapper | None:
        """Keep a pop for its offset; the caller stores the check point now, and the scan tries again if that fails.

        Returns:
            The pop; None: another one has the same key, so nothing may be handed out.
        """
        made = PopCheckPointWrapper(revive_queue_id, NOT_STORED, ck, next_begin_offset, True)
        return made if self._add(made) else None

    def add_ck_mock(self, ck: PopCheckPoint, revive_queue_id: int, next_begin_offset: int) -> None:
        """Keep the offset behind messages of which no filter let one through; there is nothing to store."""
        self._queue(PopCheckPointWrapper(revive_queue_id, STORING, ck, next_begin_offset, True, ck_stored=True))

    def add_ak(self, ack: AckMsg, now_ms: int) -> bool:
        """Take an acknowledgement in memory; False: it must be stored. An offset that was not popped is swallowed."""
        key = merge_key(ack.topic, ack.consumer_group, ack.queue_id, ack.start_offset, ack.pop_time_ms, ack.broker_name)
        found = self._buffer.get(key)
        if found is None or found.just_offset or not self._merges(found.ck, now_ms):
            return False
        if now_ms - found.ck.pop_time_ms > self._options.pop_ck_stay_buffer_time_ms - _SPARE_MS:
            return False
        for offset in ack.ack_offsets:
            index = found.ck.index_of_ack(offset)
            if index >= 0:
                found.bits = set_bit(found.bits, index)
        return True

    def clear_offset_queue(self, lock_key: str) -> None:
        """Forget the offsets of a queue that wait, as a reset does."""
        self._offset_queues.pop(lock_key, None)

    def scan(self) -> Iterator[PopCheckPointWrapper]:
        """The pops that are not finished, one after the other; finished ones are dropped on the way."""
        pops = list(self._buffer.values())
        for found in sorted(pops, key=attrgetter("bucket")) if len(pops) > 1 else pops:
            if found.is_finished:
                self.drop(found)
            else:
                yield found

    def drop(self, found: PopCheckPointWrapper) -> None:
        """Forget a pop; its offset still waits for its turn."""
        del self._buffer[found.merge_key]
        self.counter -= 1

    def leaves_memory(self, found: PopCheckPointWrapper, now_ms: int) -> bool:
        """Whether check point and acknowledgements of a pop that is not finished go to the log now."""
        if found.just_offset:
            return False
        too_late = found.ck.revive_time_ms - now_ms < self._options.pop_ck_stay_buffer_time_out_ms
        return not self.serving or too_late or now_ms - found.ck.pop_time_ms > self._options.pop_ck_stay_buffer_time_ms

    def acks_of(self, found: PopCheckPointWrapper) -> tuple[tuple[tuple[int, ...], AckMsg], ...]:
        """The records to store for a pop that leaves memory: places in the pop, and the acknowledgement of these.

        A record for several messages has no broker name, so that its reader takes its own.
        """
        ck, places = found.ck, found.acks_to_store()
        handle = (ck.start_offset, ck.cid, ck.topic, ck.queue_id, ck.pop_time_ms)
        if self._options.enable_pop_batch_ack:
            offsets = tuple(ck.ack_offset_by_index(index) for index in places)
            return ((places, BatchAckMsg(0, *handle, None, offsets)),) if places else ()
        return tuple(((place,), AckMsg(ck.ack_offset_by_index(place), *handle, ck.broker_name)) for place in places)

    def scan_commit_offset(self, commit: Callable[[PopCheckPointWrapper], bool]) -> int:
        """Commit the offset of each pop that is finished, as long as those before it in its queue are.

        Args:
            commit: commits, also an offset smaller than the one before; False: the queue is locked, so its turn ends.

        Returns:
            How many still wait.
        """
        for queue in self._offset_queues.values():
            while queue.pops and queue.pops[0].is_finished:
                head = queue.pops[0]
                if head.next_begin_offset >= 0 and not commit(head):
                    break
                queue.pops.popleft()
        return self.offset_total_size

    @property
    def offset_total_size(self) -> int:
        """How many offsets wait."""
        return sum([len(queue.pops) for queue in self._offset_queues.values()])

    def scanned(self, took_ms: int) -> None:
        """A scan has ended; after a slow one nothing is merged until all is finished."""
        if took_ms > self._options.pop_ck_stay_buffer_time_out_ms - 1000:
            self.serving = False
        self._scans += 1
        if self._scans >= _SCANS_PER_COUNT:
            self.counter = len(self._buffer)
            self._scans = 0

    def next_scan_ms(self, now_ms: int) -> int | None:
        """When a scan finds something to do: now, or when the next pop leaves memory; None: never, as things are."""
        if not self.serving:
            return now_ms
        for queue in self._offset_queues.values():
            if queue.pops and queue.pops[0].is_finished:
                return now_ms
        options, leaving_ms = self._options, None
        for found in self._buffer.values():
            if found.just_offset:
                # One that is being stored changes nothing until that has ended.
                due_ms = now_ms if found.is_finished or found.revive_queue_offset == NOT_STORED else None
            elif found.is_finished:
                due_ms = now_ms
            else:
                too_late_ms = found.ck.revive_time_ms - options.pop_ck_stay_buffer_time_out_ms
                due_ms = min(too_late_ms, found.ck.pop_time_ms + options.pop_ck_stay_buffer_time_ms) + 1
            if due_ms == now_ms:
                return now_ms
            if due_ms is not None:
                leaving_ms = due_ms if leaving_ms is None else min(leaving_ms, due_ms)
        return None if leaving_ms is None else max(now_ms, leaving_ms)

    def serve_again(self) -> None:
        """Merge again if all is finished; asked after the pause that follows each scan."""
        if not self._buffer and not self.offset_total_size:
            self.serving = True

    def scan_garbage(
        self, topic_exists: Callable[[str], bool], group_exists: Callable[[str], bool], now_ms: int
    ) -> None:
        """Forget queues of unknown topics and groups, and queues not popped lately, with all offsets that wait."""
        for key in list(self._offset_queues):
            named = key.split("@")
            if len(named) != 3:
                continue
            idle_ms = now_ms - self._offset_queues[key].last_pop_ms
            if not topic_exists(named[0]) or not group_exists(named[1]) or idle_ms > OFFSET_QUEUE_IDLE_MS:
                del self._offset_queues[key]

    def clear(self) -> None:
        """Forget everything, as a plain slave does."""
        self._buffer.clear()
        self._offset_queues.clear()

    def _merges(self, ck: PopCheckPoint, now_ms: int) -> bool:
        if not self._options.enable_pop_buffer_merge or not self.serving:
            return False
        return ck.revive_time_ms - now_ms >= self._options.pop_ck_stay_buffer_time_out_ms + _SPARE_MS

    def _add(self, made: PopCheckPointWrapper) -> bool:
        if made.merge_key in self._buffer:
            return False
        self._queue(made)
        self._buffer[made.merge_key] = made
        self.counter += 1
        return True

    def _queue(self, made: PopCheckPointWrapper) -> None:
        queue = self._offset_queues.setdefault(made.lock_key, _OffsetQueue(made.ck.pop_time_ms))
        queue.last_pop_ms = made.ck.pop_time_ms
        queue.pops.append(made)
