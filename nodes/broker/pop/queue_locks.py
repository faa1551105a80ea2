"""Locks of queues for pops, with the thread that forgets old ones, reduced to its effect."""

from nodes.broker.context import BrokerContext
from nodes.broker.tables.pop_queue_locks import UNUSED_EXPIRE_MS
from nodes.protocol.names import build_polling_key

_NS_PER_MS = 1_000_000
_SPIN_MS = 1


class QueueLocks:
    """The locks of one broker.

    RocketMQ's thread looks once a minute for locks that were taken more than a minute ago, and forgets them, also held
    ones. Here the last look is made up for when a lock is wanted: before that, nobody can notice.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopMessageProcessor.QueueLockManager`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._started_ns = broker.host.clock.monotonic_ns()
        self._cleaned = 0

    def start(self) -> None:
        """Begin to count minutes."""
        self._started_ns = self._broker.host.clock.monotonic_ns()

    def try_lock(self, key: str) -> bool:
        """Take the lock of a queue, unless it is held."""
        clock, period_ns = self._broker.host.clock, UNUSED_EXPIRE_MS * _NS_PER_MS
        minutes, since_ns = divmod(clock.monotonic_ns() - self._started_ns, period_ns)
        if minutes > self._cleaned:
            self._cleaned = minutes
            self._broker.pop_locks.clean_unused_lock(clock.now_ms() - since_ns // _NS_PER_MS)
        return self._broker.pop_locks.try_lock(key, clock.now_ms())

    def unlock(self, key: str) -> None:
        """Give a lock back."""
        self._broker.pop_locks.unlock(key)

    async def lock(self, topic: str, group: str, queue_id: int) -> str:
        """Take a lock; RocketMQ's thread spins as long as it is held.

        Returns:
            Its key.
        """
        key = build_polling_key(topic, group, queue_id)
        while not self.try_lock(key):
            await self._broker.host.sleep_ms(_SPIN_MS)
        return key
