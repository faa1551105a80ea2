"""Locks of queues for pops, with the thread that forgets old ones, reduced to its effect."""

from collections.abc import Callable

from nodes.broker.context import BrokerContext
from nodes.broker.tables.pop.queue_locks import UNUSED_EXPIRE_MS, PopQueueLocks, group_lock_key
from nodes.protocol.names import build_polling_key
from nodes.units import NS_PER_MS

_CLEAN_INTERVAL_NS = 60_000 * NS_PER_MS
_SPIN_MS = 1
GROUP_LOCK_TIMEOUT_MS = 120_000
"""A lock of a group and topic that was taken longer ago is forgotten; so long ago the group has gone offline."""


class QueueLocks:
    """The locks of one broker.

    RocketMQ's thread looks once a minute for locks that were taken too long ago, and forgets them, also held ones. Here
    the last look is made up for when a lock is wanted: before that, no one can notice.

    Args:
        table: the locks themselves.
        key_of: topic, group and queue id -> key.
        expire_ms: how long ago is too long.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopMessageProcessor.QueueLockManager`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        table: PopQueueLocks,
        key_of: Callable[[str, str, int], str] = build_polling_key,
        expire_ms: int = UNUSED_EXPIRE_MS,
    ) -> None:
        self._broker = broker
        self._table = table
        self._key_of = key_of
        self._expire_ms = expire_ms
        self._next_clean_ns = broker.host.clock.monotonic_ns() + _CLEAN_INTERVAL_NS
        """When the thread looks next."""

    def start(self) -> None:
        """Begin to count minutes."""
        self._next_clean_ns = self._broker.host.clock.monotonic_ns() + _CLEAN_INTERVAL_NS

    def try_lock(self, key: str) -> bool:
        """Take the lock of a queue, unless it is held."""
        return self.try_lock_at(key, self._broker.host.clock.now_ms())

    def try_lock_at(self, key: str, now_ms: int) -> bool:
        """As `try_lock`, for a caller that knows what the wall clock shows."""
        now_ns = self._broker.host.clock.monotonic_ns()
        if now_ns >= self._next_clean_ns:
            since_ns = (now_ns - self._next_clean_ns) % _CLEAN_INTERVAL_NS
            self._next_clean_ns = now_ns - since_ns + _CLEAN_INTERVAL_NS
            self._table.clean_unused_lock(now_ms - since_ns // NS_PER_MS, self._expire_ms)
        return self._table.try_lock(key, now_ms)

    def unlock(self, key: str) -> None:
        """Give a lock back."""
        self._table.unlock(key)

    async def lock(self, topic: str, group: str, queue_id: int) -> str:
        """Take a lock; RocketMQ's thread spins as long as it is held.

        Returns:
            Its key.
        """
        key = self._key_of(topic, group, queue_id)
        while not self.try_lock(key):
            await self._broker.host.sleep_ms(_SPIN_MS)
        return key


def group_locks(broker: BrokerContext, table: PopQueueLocks) -> QueueLocks:
    """Locks of a group and topic, whatever the queue.

    Mirrors:
        `org.apache.rocketmq.broker.pop.PopConsumerLockService`.
    """

    def key_of(topic: str, group: str, _queue_id: int) -> str:
        return group_lock_key(group, topic)

    return QueueLocks(broker, table, key_of, GROUP_LOCK_TIMEOUT_MS)
