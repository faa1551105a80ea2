"""Requests in the thread pools of a broker: each takes time, waits its turn, and is refused when it waits too long."""

from collections.abc import Callable
from functools import partial

from nodes.broker.context import BrokerContext
from nodes.broker.requests.transient_store import transient_store
from nodes.broker.tables.requests.append_lock import AppendLock
from nodes.broker.tables.requests.transient_store_pool import Allocation
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.cause import cause
from nodes.config.request_pools import PoolName, broker_pool
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.rpc.busy_beliefs import BusyReason
from nodes.rpc.thread_pools import QueueScan, RequestTask, ThreadPools
from nodes.threads import WakeUp

_REFUSED_WHEN_BUSY = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
)
"""Requests of `SendMessageProcessor`, which alone looks at the page cache and the buffers before it takes one."""
_APPENDS = (*_REFUSED_WHEN_BUSY, RequestCode.RECALL_MESSAGE, RequestCode.END_TRANSACTION)
"""Requests that append to the log at the end of their time, and wait for its lock. Check points and acknowledgements of
pops wait for it in their handlers (`in_turn`)."""
_SCAN_BEGINS_MS, _SCAN_PERIOD_MS = 1_000, 10


class RequestExecutors(ThreadPools):
    """The thread pools of a broker.

    After the processing time a request that is appended waits for the lock of the log, and for the disk, if that is
    slow. What has waited for too long is refused.

    Args:
        broker: whose options are read when they are needed, except for the sizes of pools.

    Mirrors:
        The executors of `org.apache.rocketmq.broker.BrokerController`, `NettyRemotingAbstract#processRequestCommand`,
        and `org.apache.rocketmq.broker.latency.BrokerFastFailure`.

    Emits:
        BUSY while requests wait for long, or are refused.
    """

    def __init__(self, broker: BrokerContext) -> None:
        super().__init__(broker.host, broker.config.pool_sizes().items(), lambda: broker.config.times, broker_pool)
        self._broker = broker
        self._lock = AppendLock[Callable[[], None]]()
        self.buffers = transient_store(broker)
        """The buffers of the log; None: messages are appended to the page cache."""
        self._fast_failure = QueueScan(
            broker.host, self._clean, _SCAN_BEGINS_MS, _SCAN_PERIOD_MS, "BrokerFastFailureScheduledThread"
        )

    def is_page_cache_busy(self) -> bool:
        """Whether an append lasts for too long (`DefaultMessageStore#isOSPageCacheBusy`)."""
        limit_ms = self._broker.config.os_page_cache_busy_time_out_mills
        return self._lock.is_page_cache_busy(self._host.clock.now_ms(), limit_ms)

    def before_append(self) -> PutMessageStatus | None:
        """Make room for a message in the log; returns why there is none."""
        if self.is_page_cache_busy():
            return PutMessageStatus.OS_PAGE_CACHE_BUSY
        if self.buffers is not None and self.buffers.allocate() is Allocation.NONE:
            return PutMessageStatus.CREATE_MAPPED_FILE_FAILED
        return None

    def _rejection(self, request: Command) -> BusyReason | None:
        if request.code not in _REFUSED_WHEN_BUSY:
            return None
        is_deficient = self.buffers is not None and self.buffers.is_deficient
        return BusyReason.REJECT_REQUEST if self.is_page_cache_busy() or is_deficient else None

    def _on_queued(self) -> None:
        self._fast_failure.watch()

    def _after_processing(self, task: RequestTask) -> None:
        append = partial(self._append, task)
        if task.request.code not in _APPENDS:
            self._run(task)
        elif self.is_page_cache_busy():
            self._beliefs.on_refused(task.pool, BusyReason.SYNCHRONIZED)
            self._run(task)
        elif self._lock.take(append, self._host.clock.now_ms()):
            append()

    def _append_ms(self) -> float:
        """How long an append has the lock: in the page cache until the disk has taken what was written before."""
        is_buffered = self.buffers is not None and self.buffers.allocate() is not Allocation.PAGE_CACHE
        return 0 if is_buffered else self._host.disk.busy_ms()

    def _append(self, task: RequestTask) -> None:
        self._after(self._append_ms(), partial(self._appended, task))

    def _appended(self, task: RequestTask) -> None:
        following = self._lock.release(self._host.clock.now_ms())
        self._run(task)
        if following is not None:
            following()

    async def in_turn(self, put: Callable[[], PutMessageResult]) -> PutMessageResult:
        """Append a message of the broker's own when the appends before it have ended."""
        if self.is_page_cache_busy():
            return put()
        turn = WakeUp(self._host)
        if not self._lock.take(turn.wake, self._host.clock.now_ms()):
            began = cause.get()
            await turn.wait()
            cause.set(began)
        append_ms = self._append_ms()
        if append_ms:
            await self._host.sleep_ms(append_ms)
        following = self._lock.release(self._host.clock.now_ms())
        result = put()
        if following is not None:
            following()
        return result

    def _clean(self) -> bool:
        """Refuse what has waited for too long; returns whether requests still wait."""
        config = self._broker.config
        if config.broker_fast_failure_enable:
            if self.is_page_cache_busy():
                self._expire(PoolName.SEND, BusyReason.PAGE_CACHE_BUSY, self._host.clock.now_ms(), 0)
            self._expire_late(config.wait_limits_ms())
        return self._has_waiting()

    def append_lock_ms(self, now_ms: int) -> int:
        """For how long the present append has had the lock of the log; 0: there is none."""
        return self._lock.lock_time_ms(now_ms)
