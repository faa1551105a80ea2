"""Records of pops in a database instead of the revive topic: writing, deleting and reviving them."""

from collections.abc import Sequence

from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.files import load_pop_records, persist_pop_records
from nodes.broker.part import RequestRefusedError
from nodes.broker.pop.queue_locks import GROUP_LOCK_TIMEOUT_MS, group_locks
from nodes.broker.pop.records import ReviveLog, record_pop
from nodes.broker.pop.revive_message import MessageReviver
from nodes.broker.tables.clients.consumer_offsets import NO_OFFSET
from nodes.broker.tables.pop.check_point import PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.consumer_cache import LeftCache
from nodes.broker.tables.pop.consumer_records import PopConsumerRecord
from nodes.broker.tables.pop.pop_tables import PopTables
from nodes.broker.tables.pop.queue_locks import group_lock_key
from nodes.fields import LONG_MAX
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import RetryMark
from nodes.protocol.names import parse_normal_topic
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success
from nodes.units import NS_PER_MS

REVIVE_QUEUE = 0
"""The revive queue that handles name; no record stands in it."""
_REVIVE_INTERVAL_MS = 500
_CACHE_INTERVAL_MS = 1_000
_BEHIND_MS = 50
"""A pass leaves the latest records for the next one."""
_OVERLAP_MS = 3_000
_FIRST_TIME_MS = 3_000
_STOP_PAUSE_MS = 10


class _Rounds:
    """The rounds of a thread that pauses after each of them; those that would find nothing are left out."""

    def __init__(self, host: Host, pause_ms: int) -> None:
        self._host = host
        self._pause_ns = pause_ms * NS_PER_MS
        self._next_ns = host.clock.monotonic_ns()

    def leave_out(self) -> int | None:
        """Pass over the rounds until now; returns how many ms ago the last one would have been, if there was any."""
        now_ns = self._host.clock.monotonic_ns()
        passed = -((self._next_ns - now_ns) // self._pause_ns)
        if passed <= 0:
            return None
        self._next_ns += passed * self._pause_ns
        return (now_ns - self._next_ns + self._pause_ns) // NS_PER_MS

    async def wait(self) -> None:
        """Wait until the next round begins."""
        await self._host.sleep_until_ns(self._next_ns)

    def ended(self, *, at_once: bool = False) -> None:
        """A round has ended, or the thread begins."""
        self._next_ns = self._host.clock.monotonic_ns() + (0 if at_once else self._pause_ns)


class PopConsumerService:
    """The database of one broker. Slaves never hear of what is in it, so that a broker revives whatever its role.

    While there are no records there is neither task nor timer.

    Args:
        reviver: copies messages to retry topics.
        log: where records go when an operator takes the database out of use.

    Mirrors:
        `org.apache.rocketmq.broker.pop.PopConsumerService`, and the threads of this and of `PopConsumerCache`.

    Emits:
        CHECK_POINT for each record that leaves memory, RE_PUT for one that is rewritten since its message could not
        be revived, LOST for one that is given up; COMMITTED for offsets of queues with records in memory.
    """

    def __init__(
        self, broker: BrokerContext, tables: PopTables, offsets: OffsetManage, reviver: MessageReviver, log: ReviveLog
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._reviver = reviver
        self._log = log
        self._is_init = broker.config.pop_consumer_kv_service_init
        self._group_locks, self._records, self._cache = tables.group_locks, tables.records, tables.cache
        self.locks = group_locks(broker, tables.group_locks)
        self.current_time_ms = _FIRST_TIME_MS
        """How far the last pass has come."""
        self._passes = _Rounds(broker.host, _REVIVE_INTERVAL_MS)
        self._cleanups = _Rounds(broker.host, _CACHE_INTERVAL_MS)
        self._watches = self._watches_cache = self._passing = self._stopped = False

    @property
    def is_enabled(self) -> bool:
        """Whether pops go through the database.

        Raises:
            RequestRefusedError: they would, but this process has none.
        """
        if not self._broker.config.pop_consumer_kv_service_enable:
            return False
        if not self._is_init:
            remark = "popConsumerKVServiceEnable needs popConsumerKVServiceInit, false when this broker started"
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, remark)
        return True

    def handlers(self) -> Handlers:
        """The request that takes the database out of use."""
        return {RequestCode.POP_ROLLBACK: InTask(self._transfer_to_fs_store)}

    def load(self) -> None:
        """Read the records of an earlier process; those that it had in memory are gone."""
        if self._is_init:
            load_pop_records(self._broker, self._records)

    def start(self) -> None:
        """Begin to count passes; there is none before the first record."""
        self.locks.start()
        self._passes.ended(at_once=True)
        self._cleanups.ended()
        self._watch()

    async def stop(self) -> None:
        """Begin no further pass, and wait for the running one; records in memory are lost."""
        self._stopped = True
        while self._passing:
            await self._broker.host.sleep_ms(_STOP_PAUSE_MS)

    # --- what requests do -----------------------------------------------------------

    async def keep(self, records: Sequence[PopConsumerRecord]) -> PopOutcome:
        """Keep the records of a pop, in memory if that is wanted and there is room; returns where they are."""
        if self._broker.config.enable_pop_buffer_merge and not self._cache.is_full:
            self._cache.write_records(records)
            self._watch()
            return PopOutcome.BUFFERED
        await self._change(written=records)
        return PopOutcome.STORED

    async def ack(self, ck: PopCheckPoint, offset: int) -> PopOutcome:
        """Delete the record of a message, if there is one with exactly these times; one in memory may have any."""
        record = record_of(ck, offset)
        if self._is_in_memory(record):
            return PopOutcome.BUFFERED
        await self._change(deleted=(record,))
        return PopOutcome.STORED

    async def change_invisible_time(self, old: PopCheckPoint, new: PopCheckPoint, offset: int) -> None:
        """Write the new record, then delete the old one: if both are visible at the same time, none is left."""
        before = record_of(old, offset)
        await self._change(written=(record_of(new, offset),))
        if not self._is_in_memory(before):
            await self._change(deleted=(before,))

    def _is_in_memory(self, record: PopConsumerRecord) -> bool:
        return self._broker.config.enable_pop_buffer_merge and self._cache.delete_record(record)

    async def _change(
        self, *, written: Sequence[PopConsumerRecord] = (), deleted: Sequence[PopConsumerRecord] = ()
    ) -> None:
        """Change the database; returns when that is on the disk."""
        if not written and not deleted:
            return
        self._records.write_records(written)
        self._records.delete_records(deleted)
        persist_pop_records(self._broker, self._records)
        self._watch()
        busy_ms = self._broker.host.disk.busy_ms()
        if busy_ms:
            await self._broker.host.sleep_ms(busy_ms)

    async def _transfer_to_fs_store(self, _channel: Channel, request: Command) -> Command:
        """Move all records to the log, from which they are revived then; one that the log refuses is gone.

        Mirrors:
            `PopConsumerService#transferToFsStore`.
        """
        config = self._broker.config
        while records := self._records.scan_expired_records(0, LONG_MAX, config.pop_revive_max_return_size_per_read):
            for record in records:
                await self._log.put_ck(self._check_point(record), record.offset % config.revive_queue_num)
            await self._change(deleted=records)
        return success(request)

    # --- threads --------------------------------------------------------------------

    def _watch(self) -> None:
        """Let the threads run as long as there is something to watch."""
        start, has_thread = self._broker.host.start_soon, self._is_init and not self._stopped
        if has_thread and len(self._records) and not self._watches:
            self._watches = True
            start(self._revive_in_time, name="PopConsumerService")
        if has_thread and self._cache.queues and not self._watches_cache:
            self._watches_cache = True
            start(self._clean_in_time, name="PopConsumerCache")

    async def _revive_in_time(self) -> None:
        since_ms = self._passes.leave_out()
        if since_ms is not None:
            # A pass without records only moves the time on.
            self.current_time_ms = self._broker.host.clock.now_ms() - since_ms - _BEHIND_MS
        while len(self._records):
            await self._passes.wait()
            if self._stopped:
                break
            self._passing = True
            is_full = await self._pass_or_log() >= self._broker.config.pop_revive_max_return_size_per_read
            self._passing = False
            self._passes.ended(at_once=is_full)
        self._watches = False

    async def _pass_or_log(self) -> int:
        """A pass; RocketMQ's thread survives every error, and finds the same records again in its next pass."""
        try:
            return await self.revive()
        except Exception as error:  # noqa: BLE001 - as RocketMQ does
            self._broker.host.log.warning("PopConsumerService revive error", error=str(error))
            return 0

    async def _clean_in_time(self) -> None:
        self._cleanups.leave_out()
        while self._cache.queues:
            await self._cleanups.wait()
            if self._stopped:
                break
            self._broker.host.begin_cause("PopConsumerCache")
            await self.cleanup_cache()
            self._cleanups.ended()
        self._watches_cache = False

    # --- passes ---------------------------------------------------------------------

    async def revive(self) -> int:
        """Revive what is visible again; returns how many records that were."""
        host, maximum = self._broker.host, self._broker.config.pop_revive_max_return_size_per_read
        upper_ms = host.clock.now_ms() - _BEHIND_MS
        due = self._records.scan_expired_records(self.current_time_ms - _OVERLAP_MS, upper_ms, maximum)
        if due:
            host.begin_cause("PopConsumerService")
        revived = [(record, await self._revive(record)) for record in due]
        again = [record for before, done in revived if not done for record in self._next_try(before)]
        await self._change(written=again)
        await self._change(deleted=due)
        self.current_time_ms = due[-1].visibility_timeout_ms if due else upper_ms
        return len(due)

    async def _revive(self, record: PopConsumerRecord) -> bool:
        """Copy a message of this broker's log to the retry topic; False: try it again."""
        return await self._reviver.revive(self._check_point(record), record.offset, REVIVE_QUEUE, self._broker.store)

    def _next_try(self, record: PopConsumerRecord) -> tuple[PopConsumerRecord, ...]:
        if record.attempt_times >= self._broker.config.pop_revive_max_attempt_times:
            self._record(MessageEvent.LOST, record, PopOutcome.REFUSED)
            return ()
        again = record.after_failure(self._broker.host.clock.now_ms())
        self._record(MessageEvent.RE_PUT, again, PopOutcome.STORED)
        return (again,)

    async def cleanup_cache(self) -> int:
        """Write or revive what leaves memory, and commit the offsets of what is left; returns how much is left."""
        now_ms = self._broker.host.clock.now_ms()
        for left in self._cache.cleanup_records(now_ms, self._is_offline):
            for record in left.to_revive:
                if not await self._revive(record):
                    # No one keeps it any more.
                    self._record(MessageEvent.LOST, record, PopOutcome.REFUSED)
            for record in left.to_store:
                self._record(MessageEvent.CHECK_POINT, record, PopOutcome.STORED)
            await self._change(written=left.to_store)
            self._commit(left)
        return sum(map(len, self._cache.queues.values()))

    def _is_offline(self, group: str, topic: str) -> bool:
        key, now_ms = group_lock_key(group, parse_normal_topic(topic, group)), self._broker.host.clock.now_ms()
        return self._group_locks.is_timeout(key, now_ms, GROUP_LOCK_TIMEOUT_MS)

    def _commit(self, left: LeftCache) -> None:
        group, topic, queue_id = left.queue
        key = group_lock_key(group, topic)
        if left.commit == NO_OFFSET or not self.locks.try_lock(key):
            return
        self._offsets.commit(group, topic, queue_id, left.commit, "")
        self.locks.unlock(key)

    def _record(self, event: MessageEvent, record: PopConsumerRecord, outcome: PopOutcome) -> None:
        record_pop(self._broker, event, self._check_point(record), record.offset, REVIVE_QUEUE, outcome=outcome)

    def _check_point(self, record: PopConsumerRecord) -> PopCheckPoint:
        """A record as the check point of a pop of one message."""
        place = (record.topic, record.group, record.queue_id, record.offset)
        times = (record.pop_time_ms, record.invisible_time_ms)
        return PopCheckPoint(*place, *times, 1, self._broker.broker_name, (0,))


def record_of(ck: PopCheckPoint, offset: int) -> PopConsumerRecord:
    """The record of a message, as far as its handle reports."""
    return PopConsumerRecord(
        ck.pop_time_ms, ck.cid, ck.topic, ck.queue_id, RetryMark.NORMAL, ck.invisible_time_ms, offset
    )


def clear_cache(broker: BrokerContext, tables: PopTables, group: str, topic: str, queue_id: int) -> None:
    """Forget what is in memory for a queue; a pop that holds the lock of the group loses it.

    Mirrors:
        `PopConsumerService#clearCache`.
    """
    key = group_lock_key(group, topic)
    tables.group_locks.try_lock(key, broker.host.clock.now_ms())
    tables.cache.remove_records(group, topic, queue_id)
    tables.group_locks.unlock(key)
