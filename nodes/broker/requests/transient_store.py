"""The buffers of a broker's log, and the thread that commits them to the page cache."""

from functools import partial

from nodes.broker.context import BrokerContext
from nodes.broker.tables.requests.transient_store_pool import Allocation, TransientStorePool
from nodes.config.store import FlushDiskType
from nodes.protocol.model import MASTER_ID
from nodes.units import NS_PER_MS


class TransientStore:
    """Appends to buffers, and commits one file at a time; a commit lasts until the disk has taken what was flushed.

    RocketMQ looks every `commit_interval_commit_log`; a look that finds nothing to commit changes nothing, so it is
    left out. Brokers look at the same instants here, counted from the beginning of the run.

    Mirrors:
        `org.apache.rocketmq.store.CommitLog.CommitRealTimeService`, `MappedFileQueue#commit`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        config = broker.config
        self._broker = broker
        self._pool = TransientStorePool(
            config.transient_store_pool_size,
            config.commit_log_file_bytes,
            fast_fail=config.fast_fail_if_no_buffer_in_store_pool,
        )
        self._committed_ms = 0
        """When the last commit ended, by the wall clock."""
        self._is_waiting = False
        """A look or the end of a commit is ahead."""

    @property
    def is_deficient(self) -> bool:
        """Whether no buffer is free, so that sends are refused."""
        return self._pool.is_deficient

    @property
    def available(self) -> int:
        """Free buffers."""
        return self._pool.available

    @property
    def behind_bytes(self) -> int:
        """Bytes of the log that wait for a commit."""
        return self._end - self._pool.committed_offset if self._is_waiting else 0

    @property
    def _end(self) -> int:
        return self._broker.store.max_commit_log_offset

    def allocate(self) -> Allocation:
        """What takes the next message; it is committed later."""
        allocation = self._pool.allocate(self._end)
        if not self._is_waiting and allocation is not Allocation.NONE:
            self._wait(is_woken=True)
        return allocation

    def _wait(self, *, is_woken: bool) -> None:
        config = self._broker.config
        self._is_waiting = True
        if is_woken and config.flush_disk_type is FlushDiskType.ASYNC_FLUSH:
            self._broker.host.call_later_ms(0, self._look)
            return
        interval_ns = config.commit_interval_commit_log * NS_PER_MS
        delay_ns = interval_ns - self._broker.host.clock.monotonic_ns() % interval_ns
        self._broker.host.call_later_ms(delay_ns / NS_PER_MS, self._look)

    def _look(self) -> None:
        """Commit what is enough, or whatever there is if it is time to."""
        config, host, end = self._broker.config, self._broker.host, self._end
        is_thorough = host.clock.now_ms() >= self._committed_ms + config.commit_commit_log_thorough_interval
        offset = self._pool.committable_offset(end, 0 if is_thorough else config.commit_commit_log_least_pages)
        if offset > self._pool.committed_offset:
            host.call_later_ms(host.disk.busy_ms(), partial(self._commit, offset, end))
        elif end > offset:
            self._wait(is_woken=False)
        else:
            self._is_waiting = False

    def _commit(self, offset: int, end: int) -> None:
        """A commit has ended; messages that came meanwhile have woken the thread again."""
        self._pool.commit(offset)
        self._committed_ms = self._broker.host.clock.now_ms()
        self._wait(is_woken=self._end > end)


def transient_store(broker: BrokerContext) -> TransientStore | None:
    """The buffers of a broker; None: it has none.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore#isTransientStorePoolEnable`.
    """
    config = broker.config
    is_master = config.enable_controller_mode or broker.broker_id == MASTER_ID
    is_possible = is_master and not config.enable_d_leger_commit_log  # which has a log of its own
    return TransientStore(broker) if config.transient_store_pool_enable and is_possible else None
