"""Batches of ordered pops: their file, and the timers that wake held pops when a queue is free again."""

from collections.abc import Callable, Sequence

from nodes.broker.context import BrokerContext
from nodes.broker.files import ORDER_INFO_FILE
from nodes.broker.tables.pop.consumer_order_info import ConsumerOrderInfoManager
from nodes.host import Timer
from nodes.units import NS_PER_MS

_TICK_MS = 100
_PERSIST_INTERVAL_MS = 10_000


class OrderInfoService:
    """The table of batches with what happens around it.

    Args:
        on_lock_free: called with topic, group and queue id when the invisible time of a batch may be over.

    Mirrors:
        `org.apache.rocketmq.broker.offset.ConsumerOrderInfoManager`, its file, and `ConsumerOrderInfoLockManager`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        table: ConsumerOrderInfoManager,
        on_lock_free: Callable[[str, str, int], None],
    ) -> None:
        self._broker = broker
        self._on_lock_free = on_lock_free
        self._table = table
        self._timers: dict[tuple[str, str, int], Timer] = {}
        self._wheel_ns: int | None = None
        self._started_ns = broker.host.clock.monotonic_ns()
        self._cleaned = 0
        self._persisting = False

    def load(self) -> None:
        """Read the file of an earlier process, and set the timers of its batches."""
        content = self._broker.host.disk.read(ORDER_INFO_FILE)
        if content is None:
            return
        self._table.decode(content.decode())
        now_ms = self._broker.host.clock.now_ms()
        for key, queues in self._table.table.items():
            topic, _, group = key.partition("@")
            for queue_id, info in queues.items():
                if (info.lock_free_ms(now_ms) or 0) > now_ms:
                    self._update_lock_free(topic, group, queue_id)

    def start(self) -> None:
        """Begin to count the periods of the file."""
        self._started_ns = self._broker.host.clock.monotonic_ns()

    def stop(self) -> None:
        """Write the file, if there is anything to write, and wake no one any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._table.table:
            self._persist()

    def update(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        *,
        pop_time_ms: int,
        invisible_time_ms: int,
        offsets: Sequence[int],
    ) -> tuple[str, ...]:
        """Note a batch; returns the entries of `orderCountInfo`."""
        self._clean()
        counts = self._table.update(
            attempt_id,
            topic,
            group,
            queue_id,
            pop_time_ms=pop_time_ms,
            invisible_time_ms=invisible_time_ms,
            offsets=offsets,
            now_ms=self._broker.host.clock.now_ms(),
        )
        self._update_lock_free(topic, group, queue_id)
        return counts

    def check_block(self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_ms: int) -> bool:
        """Whether a queue gives nothing now."""
        self._clean()
        now_ms = self._broker.host.clock.now_ms()
        return self._table.check_block(
            attempt_id, topic, group, queue_id, invisible_time_ms=invisible_ms, now_ms=now_ms
        )

    def commit_and_next(self, topic: str, group: str, queue_id: int, offset: int, pop_time_ms: int) -> int:
        """Acknowledge a message; returns what the table does."""
        before = self._table.info(topic, group, queue_id)
        following = self._table.commit_and_next(topic, group, queue_id, offset, pop_time_ms)
        if before is not None and following >= 0:
            self._update_lock_free(topic, group, queue_id)
        return following

    def update_next_visible_time(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time_ms: int, next_visible_ms: int
    ) -> None:
        """Say when a message may be popped again."""
        self._table.update_next_visible_time(topic, group, queue_id, offset, pop_time_ms, next_visible_ms)
        info = self._table.info(topic, group, queue_id)
        if info is not None and info.pop_time_ms == pop_time_ms:
            self._update_lock_free(topic, group, queue_id)

    def clear_block(self, topic: str, group: str, queue_id: int) -> None:
        """Forget the batch of a queue."""
        self._table.clear_block(topic, group, queue_id)
        self._persist_later()

    def _update_lock_free(self, topic: str, group: str, queue_id: int) -> None:
        """Set the timer of a queue again, on a wheel that turns every 100 ms from its first use on."""
        self._persist_later()
        host, info = self._broker.host, self._table.info(topic, group, queue_id)
        now_ms, now_ns = host.clock.now_ms(), host.clock.monotonic_ns()
        free_ms = None if info is None else info.lock_free_ms(now_ms)
        if free_ms is None or not self._broker.config.enable_notify_after_pop_order_lock_release:
            return
        if self._wheel_ns is None:
            self._wheel_ns = now_ns
        key, tick_ns = (topic, group, queue_id), _TICK_MS * NS_PER_MS
        deadline_ns = now_ns - self._wheel_ns + max(0, free_ms - now_ms) * NS_PER_MS
        due_ns = self._wheel_ns + (deadline_ns // tick_ns + 1) * tick_ns
        if key in self._timers:
            self._timers[key].cancel()
        self._timers[key] = host.call_later_ms((due_ns - now_ns) / NS_PER_MS, lambda: self._notify_lock_free(key))

    def _notify_lock_free(self, key: tuple[str, str, int]) -> None:
        del self._timers[key]
        self._broker.host.begin_cause("ConsumerOrderInfoLockManager")
        self._on_lock_free(*key)

    def _clean(self) -> None:
        """Forget what RocketMQ has forgotten when it wrote the file for the last time."""
        clock, period_ns = self._broker.host.clock, _PERSIST_INTERVAL_MS * NS_PER_MS
        written, since_ns = divmod(clock.monotonic_ns() - self._started_ns, period_ns)
        if written > self._cleaned:
            self._cleaned = written
            self._auto_clean(clock.now_ms() - since_ns // NS_PER_MS)

    def _auto_clean(self, now_ms: int) -> None:
        topics = self._broker.topics.topics
        self._table.auto_clean(
            lambda topic: topics[topic].read_queue_nums if topic in topics else None,
            self._broker.groups.contains_subscription_group,
            now_ms,
        )

    def _persist_later(self) -> None:
        """Write the file at the end of the running period; a period without changes writes nothing new."""
        if self._persisting:
            return
        self._persisting = True
        period_ns = _PERSIST_INTERVAL_MS * NS_PER_MS
        since_ns = (self._broker.host.clock.monotonic_ns() - self._started_ns) % period_ns
        self._broker.host.call_later_ms((period_ns - since_ns) / NS_PER_MS, self._persist)

    def _persist(self) -> None:
        self._persisting = False
        self._auto_clean(self._broker.host.clock.now_ms())
        self._broker.host.disk.write(ORDER_INFO_FILE, self._table.encode().encode())
