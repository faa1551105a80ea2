"""Deleting the oldest files of the log: those that are old enough, at some hours or by hand, and at its limit."""

from collections.abc import Callable

from nodes.beliefs import Lifecycle, LifecycleEvent, MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.store.expired_files import expired_files, has_room, is_nearly_full, is_time_to_delete
from nodes.host import Channel
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS

_FIRST_MS = 60_000
_LOOKS_BY_HAND = 20
"""How many looks an operator's request lasts."""


class CleanCommitLog(Part):
    """Looks for files to delete; there are none before the log has a second file, so until then its thread rests.

    Args:
        broker: whose log it is.
        on_deleted: called when files of the log are deleted.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore.CleanCommitLogService`, `.CleanConsumeQueueService`.

    Emits:
        STORE_NEARLY_FULL, STORE_FULL: once for each process; EXPIRED for each queue that loses messages.
    """

    def __init__(self, broker: BrokerContext, on_deleted: Callable[[], None]) -> None:
        self._broker = broker
        self._on_deleted = on_deleted
        self._thread = ScheduledThread(broker.host, "StoreScheduledThread")
        self._begun_ns = -1
        self._looks = False
        """Whether its thread runs."""
        self._by_hand = 0
        self._files = 0
        """How many files the log had when it was last looked at."""
        self._reported: dict[LifecycleEvent, None] = {}

    def handlers(self) -> Handlers:
        """The request of an operator."""
        return {RequestCode.DELETE_EXPIRED_COMMITLOG: self._delete_expired}

    async def start(self) -> None:
        """Begin; to be called when the log is loaded."""
        self._begun_ns = self._broker.host.clock.monotonic_ns()
        self._look_at_files()

    async def stop(self) -> None:
        """Write what was appended and is not on the disk."""
        self._broker.flush.finish()

    def on_message_arrived(self, _topic: str, _queue_id: int) -> None:
        """Look at the files when the log has begun another one."""
        if self._broker.store.file_count != self._files:
            self._look_at_files()

    def _delete_expired(self, _channel: Channel, request: Command) -> Command:
        """In the next looks, too, files are deleted that are old enough, whatever the hour."""
        self._by_hand = _LOOKS_BY_HAND
        self._start_thread()
        return success(request)

    def _look_at_files(self) -> None:
        store, config = self._broker.store, self._broker.config
        if store.file_count > 1:
            self._start_thread()
        if is_nearly_full(store, config):
            used = f"{store.used_bytes:,} of {config.store_max_bytes:,} bytes of the log are used"
            fate = "at the limit its oldest messages are deleted, consumed or not"
            self._record(LifecycleEvent.STORE_NEARLY_FULL, f"{used}; {fate}")
        while store.file_count > 1 and not has_room(store, config):
            self._delete_oldest_files(1)
            self._record(LifecycleEvent.STORE_FULL, "from now on the oldest messages are deleted, consumed or not")
        self._files = store.file_count

    def _start_thread(self) -> None:
        """Start the thread as if it had run from the start on."""
        if self._looks:
            return
        self._looks = True
        period_ms = self._broker.config.clean_resource_interval
        passed_ms = (self._broker.host.clock.monotonic_ns() - self._begun_ns) / NS_PER_MS
        wait_ms = _FIRST_MS - passed_ms
        self._thread.at_fixed_rate(
            "cleanFilesPeriodically", self._clean_files, wait_ms if wait_ms > 0 else wait_ms % period_ms, period_ms
        )
        self._thread.start()

    async def _clean_files(self) -> None:
        store, config = self._broker.store, self._broker.config
        now_ms = self._broker.host.clock.now_ms()
        if is_time_to_delete(config, now_ms) or is_nearly_full(store, config) or self._by_hand:
            self._by_hand = max(0, self._by_hand - 1)
            self._delete_oldest_files(expired_files(store.newest_in_files(), store.file_count, config, now_ms))
            self._files = store.file_count

    def _delete_oldest_files(self, count: int) -> None:
        store, host = self._broker.store, self._broker.host
        for _ in range(count):
            for begin in store.delete_oldest_file():
                place = begin.topic, self._broker.broker_name, begin.queue_id, begin.min_offset
                host.record(MessageRecord(MessageEvent.EXPIRED, "", *place))
            host.log.info("a file of the commit log is deleted", minOffset=store.min_commit_log_offset)
        if count:
            self._on_deleted()

    def _record(self, event: LifecycleEvent, detail: str) -> None:
        if event not in self._reported:
            self._reported[event] = None
            self._broker.host.record(Lifecycle(event, detail))
