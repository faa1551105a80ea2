"""Pops whose offset is not committed yet: the scan that stores what must be stored and commits what is finished."""

from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.pop.queue_locks import QueueLocks
from nodes.broker.pop.records import ReviveLog, is_stored
from nodes.broker.tables.pop.buffer import SCAN_INTERVAL_MS, PopBufferMerge, PopCheckPointWrapper
from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint
from nodes.broker.tables.store.put_message_result import PutMessageResult
from nodes.cause import cause
from nodes.protocol.model import MASTER_ID
from nodes.threads import ScanThread

_PLAIN_SLAVE_INTERVAL_MS = 5_000
_GARBAGE_SCANS = 6_000
_STOP_PAUSE_MS = 2_000


class PopBufferMergeService:
    """Keeps the pops of a broker until their check point is stored, and commits their offsets in order.

    A check point that is refused is put again with every scan, that is every 5 ms, and blocks the offset of its queue
    as long; where nothing can be stored, as at an acting slave without escape, the scans go on, and the puts, whose
    result is known, are left out. A slave that does not act for its master forgets everything every 5 s instead.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopBufferMergeService`.

    Emits:
        COMMITTED for each offset.
    """

    def __init__(
        self,
        broker: BrokerContext,
        buffer: PopBufferMerge,
        log: ReviveLog,
        offsets: OffsetManage,
        locks: QueueLocks,
    ) -> None:
        self._broker = broker
        self._log = log
        self._offsets = offsets
        self._locks = locks
        self._buffer = buffer
        config = broker.config
        may_write = config.enable_slave_acting_master or config.is_elected
        self._should_run = broker.broker_id == MASTER_ID or may_write
        period_ms = SCAN_INTERVAL_MS if self._should_run else _PLAIN_SLAVE_INTERVAL_MS
        self._thread = ScanThread(broker.host, "PopBufferMergeService", period_ms, self._scan_or_clear)
        self._garbage_scans = 0
        self._refused = 0
        """Pops that are here for their offset, and whose check point no put can store."""

    def start(self) -> None:
        """Begin to count scans; none happens before the first pop."""
        self._thread.start()

    async def append_check_point(self, ck: PopCheckPoint, revive_qid: int, next_begin_offset: int) -> bool:
        """Keep a pop; if it cannot be merged, its check point is stored now.

        Returns:
            False: another pop has the same key, so its messages must not be handed out.
        """
        buffer = self._buffer
        retained = buffer.add_ck(ck, revive_qid, next_begin_offset, self._now_ms())
        if retained is None:
            retained = buffer.add_ck_just_offset(ck, revive_qid, next_begin_offset)
            if retained is None:
                return False
            await self._put_ck(retained)
        self._schedule()
        return True

    def add_ck_mock(self, ck: PopCheckPoint, revive_qid: int, next_begin_offset: int) -> None:
        """Keep the offset behind messages that no filter let through."""
        self._buffer.add_ck_mock(ck, revive_qid, next_begin_offset)
        self._schedule()

    def add_ak(self, ack: AckMsg) -> bool:
        """Take an acknowledgement in memory; False: it must be stored."""
        taken = self._buffer.add_ak(ack, self._now_ms())
        if taken:
            self._schedule()
        return taken

    async def stop(self) -> None:
        """Store and commit what is left, after a pause that comes even if there is nothing."""
        self._buffer.serving = False
        await self._broker.host.sleep_ms(_STOP_PAUSE_MS)
        if self._should_run and self._buffer.next_scan_ms(self._now_ms()) is not None:
            await self.scan()

    async def scan(self) -> None:
        """Store what leaves memory, then commit the offsets of pops that are finished."""
        began_ns = self._broker.host.clock.monotonic_ns()
        if not (self._refused and self._refused == len(self._buffer.buffer)):
            for found in self._buffer.scan():
                if not (found.just_offset and found.refused and self._log.is_shut):
                    await self._scan_one(found)
        self._buffer.scan_commit_offset(self._commit)
        self._buffer.scanned((self._broker.host.clock.monotonic_ns() - began_ns) // 1_000_000)

    def scan_garbage(self) -> None:
        """Forget queues of unknown topics and groups, and queues not popped lately."""
        broker = self._broker
        groups, topics = broker.groups, broker.topics
        self._buffer.scan_garbage(
            lambda topic: topics.select_topic_config(topic) is not None,
            groups.contains_subscription_group,
            self._now_ms(),
        )

    async def _scan_or_clear(self) -> None:
        if not self._should_run:
            self._buffer.clear()
            self._refused = 0
            return
        await self.scan()
        if self._thread.scans - self._garbage_scans >= _GARBAGE_SCANS:
            self._garbage_scans = self._thread.scans
            self.scan_garbage()
        self._buffer.serve_again()
        self._schedule()

    async def _scan_one(self, found: PopCheckPointWrapper) -> None:
        leaves = self._buffer.leaves_memory(found, self._now_ms())
        if found.revive_queue_offset < 0 and (found.just_offset or leaves):
            await self._put_ck(found)
        if not leaves or not found.ck_stored:
            return
        for places, ack in self._buffer.acks_of(found):
            key = ack.batch_unique_id if isinstance(ack, BatchAckMsg) else ack.unique_id
            put = (ack, found.revive_queue_id, found.ck.revive_time_ms, key)
            if self._broker.config.append_ack_async:
                self._broker.host.start_soon(self._put_ack, found, places, put, name="appendAckAsync")
            else:
                await self._put_ack(found, places, put)
        if found.is_finished:
            self._buffer.drop(found)

    async def _put_ack(
        self, found: PopCheckPointWrapper, places: tuple[int, ...], put: tuple[AckMsg, int, int, str]
    ) -> None:
        if is_stored(await self._log.put_ack(*put)):
            found.acks_stored(places)

    async def _put_ck(self, found: PopCheckPointWrapper) -> None:
        found.storing()
        if self._broker.config.append_ck_async:
            self._broker.host.start_soon(self._put_ck_later, found, cause.get(), name="appendCkAsync")
        else:
            self._take_result(found, await self._log.put_ck(found.ck, found.revive_queue_id))

    async def _put_ck_later(self, found: PopCheckPointWrapper, began: int) -> None:
        cause.set(began)
        self._take_result(found, await self._log.put_ck(found.ck, found.revive_queue_id))
        self._schedule()

    def _take_result(self, found: PopCheckPointWrapper, result: PutMessageResult) -> None:
        if not is_stored(result):
            found.stored(None)
            self._refused += found.just_offset and self._log.is_shut
        else:
            found.stored(0 if result.stored is None else result.stored.queue_offset)

    def _commit(self, head: PopCheckPointWrapper) -> bool:
        """Commit an offset, also a smaller one than before; False: a pop reads the queue just now."""
        if not self._locks.try_lock(head.lock_key):
            return False
        ck = head.ck
        self._offsets.commit(ck.cid, ck.topic, ck.queue_id, head.next_begin_offset, "")
        self._locks.unlock(head.lock_key)
        return True

    def _schedule(self) -> None:
        """Scan when there is something to do."""
        now_ms = self._now_ms()
        due_ms = self._buffer.next_scan_ms(now_ms)
        if due_ms is not None:
            self._thread.scan_in_ms(due_ms - now_ms if self._should_run else 0)

    def _now_ms(self) -> int:
        return self._broker.host.clock.now_ms()
