"""How push, lite pull and classic pull consumers add and remove queues: start offsets, last commits, unlocking."""

from nodes.client.exclusivity.queue_exclusivity import QueueExclusivity
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.mq_admin import MQAdmin
from nodes.client.offsets.offset_store import OffsetStore
from nodes.client.offsets.pull_from_where import (
    compute_pull_from_where,
    consume_timestamp_ms,
    is_offset,
    pull_from_where_without_offset,
)
from nodes.client.rebalance.order_locks import OrderLocks
from nodes.client.tables.offset_table import NO_OFFSET
from nodes.client.tables.process_queue import PopProcessQueue, ProcessQueue
from nodes.config import ConsumerConfig, LitePullConsumerConfig
from nodes.protocol.assigning import RebalanceMode
from nodes.protocol.model import MessageModel, MessageQueue
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.threads import try_lock

_CONSUME_LOCK_WAIT_MS = 500
_UNLOCK_DELAY_MS = 20_000
"""After the last grant; then a dropped queue is unlocked even if its listener still has a batch."""


class PushQueues:
    """Implements `nodes.client.rebalance.roles.QueueSource`.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalancePushImpl`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        offsets: OffsetStore,
        locks: OrderLocks,
        exclusivity: QueueExclusivity | None = None,
    ) -> None:
        self._host = instance.host
        self._exclusivity = exclusivity
        self._offsets = offsets
        self._locks = locks
        self._admin = MQAdmin(instance)
        self._consume_from_where = config.consume_from_where
        self._timestamp_ms = consume_timestamp_ms(config, self._host.clock.now_ms())
        is_broadcasting = config.message_model is MessageModel.BROADCASTING
        self._is_ordered = config.consume_orderly and not is_broadcasting
        self._is_broadcasting = is_broadcasting

    def rebalance_mode(self, wanted: RebalanceMode) -> RebalanceMode:
        """Ordered consumers never ask any broker, and broadcasting ones have nothing to allocate."""
        if self._is_broadcasting or (self._is_ordered and wanted is RebalanceMode.BROKER):
            return RebalanceMode.CLIENT
        return wanted

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a new ordered queue at its broker, or take it for this consumer alone."""
        if self._exclusivity is not None:
            return await self._exclusivity.acquire(queue)
        return await self._locks.lock(queue)

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Remove an old offset of a new queue from memory."""
        self._offsets.memory.remove(queue)

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a queue starts.

        Raises:
            RemotingError, BrokerError: the offset could not be determined.
        """
        return await compute_pull_from_where(
            self._offsets, self._admin, self._consume_from_where, self._timestamp_ms, queue
        )

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit the offset of a dropped queue; returns whether the queue can be removed."""
        if self._exclusivity is not None:
            return self._try_remove_exclusive(queue, process_queue, self._exclusivity)
        self._offsets.persist(queue)
        if self._is_ordered:
            return await self._try_remove_ordered(queue, process_queue)
        self._offsets.memory.remove(queue)
        return True

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:  # noqa: ARG002
        """A popped queue has no state to release: it can always be removed."""
        return True

    def _try_remove_exclusive(
        self, queue: MessageQueue, process_queue: ProcessQueue, exclusivity: QueueExclusivity
    ) -> bool:
        """Give a dropped queue away when its last message in process is done and committed.

        A queue that is not held any more is only forgotten: another consumer may have committed since.
        """
        if exclusivity.holds(queue):
            process_queue.draining = process_queue.running > 0
            if process_queue.draining:
                return False
            self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        exclusivity.release(queue)
        return True

    async def _try_remove_ordered(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Unlock a dropped queue if its listener has no batch, or if the last grant is long ago."""
        now_ms = self._host.clock.now_ms()
        forced = process_queue.dropped and now_ms > process_queue.last_lock_ms + _UNLOCK_DELAY_MS
        if not forced and not await try_lock(self._host, process_queue.consume_lock, _CONSUME_LOCK_WAIT_MS):
            process_queue.try_unlock_times += 1
            return False
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        process_queue.locked = False
        self._locks.unlock(queue)
        if not forced:
            process_queue.consume_lock.release()
        return True


class StoredOffsetUnknownError(RemotingError):
    """The stored offset of a queue could not be read."""


class LitePullQueues:
    """Implements `nodes.client.rebalance.roles.QueueSource`.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceLitePullImpl`.
    """

    def __init__(self, instance: ClientInstance, config: LitePullConsumerConfig, offsets: OffsetStore) -> None:
        self._offsets = offsets
        self._admin = MQAdmin(instance)
        self._consume_from_where = config.consume_from_where
        self._timestamp_ms = consume_timestamp_ms(config, instance.host.clock.now_ms())

    def rebalance_mode(self, wanted: RebalanceMode) -> RebalanceMode:  # noqa: ARG002
        """Fixed, whatever is wanted."""
        return RebalanceMode.CLIENT

    async def lock(self, queue: MessageQueue) -> bool:  # noqa: ARG002
        """No lock is needed: nothing is consumed in order."""
        return True

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Remove an old offset of a new queue from memory."""
        self._offsets.memory.remove(queue)

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where to start: at the offset in memory, else the stored one, else as `consumeFromWhere` says.

        Raises:
            StoredOffsetUnknownError: the stored offset could not be read.
            RemotingError, BrokerError: there is none, and the query for the queue's offsets failed.
        """
        try:
            is_known = queue in self._offsets.memory
            stored = self._offsets.memory.read(queue) if is_known else await self._offsets.read_from_store(queue)
            if is_offset(stored):
                return stored
        except (RemotingError, BrokerError) as error:
            raise StoredOffsetUnknownError(f"the offset of {queue} cannot be read: {error}") from error
        return await pull_from_where_without_offset(self._admin, self._consume_from_where, self._timestamp_ms, queue)

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:  # noqa: ARG002
        """Commit the offset of a dropped queue, without messages polled since the last auto commit."""
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        return True

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:  # noqa: ARG002
        """Never called: a lite pull consumer does not pop."""
        return True


class PullQueues:
    """Implements `nodes.client.rebalance.roles.QueueSource`.

    Args:
        offsets: of the group.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalancePullImpl`.
    """

    def __init__(self, offsets: OffsetStore) -> None:
        self._offsets = offsets

    def rebalance_mode(self, wanted: RebalanceMode) -> RebalanceMode:  # noqa: ARG002
        """Fixed, whatever is wanted."""
        return RebalanceMode.CLIENT

    async def lock(self, queue: MessageQueue) -> bool:  # noqa: ARG002
        """No lock is needed: nothing is consumed in order."""
        return True

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Remove an old offset of a new queue from memory."""
        self._offsets.memory.remove(queue)

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:  # noqa: ARG002
        """No offset: the application decides. RocketMQ's class returns 0, which nothing reads."""
        return NO_OFFSET

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:  # noqa: ARG002
        """Commit what the application has set last, and not what it works on, and forget it."""
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        return True

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:  # noqa: ARG002
        """Never called: a classic pull consumer does not pop."""
        return True
