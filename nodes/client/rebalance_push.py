"""What a push consumer does with queues that come and go: where they start, what is committed, when it unlocks."""

import trio

from nodes.client.instance import ClientInstance
from nodes.client.mq_admin import MQAdmin
from nodes.client.offset_store import OffsetStore
from nodes.client.order_locks import OrderLocks
from nodes.client.process_queue import ProcessQueue
from nodes.client.pull_from_where import compute_pull_from_where, consume_timestamp_ms
from nodes.client.rebalance_roles import PopProcessQueue
from nodes.config import ConsumerConfig
from nodes.protocol.model import MessageModel, MessageQueue

_CONSUME_LOCK_WAIT_MS = 500
_UNLOCK_DELAY_MS = 20_000
"""After the last grant: then a dropped queue is unlocked while its listener still has a batch."""


class PushQueues:
    """Implements `nodes.client.rebalance_roles.QueueKeeper`.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalancePushImpl`.
    """

    def __init__(
        self, instance: ClientInstance, config: ConsumerConfig, offsets: OffsetStore, locks: OrderLocks
    ) -> None:
        self._host = instance.host
        self._offsets = offsets
        self._locks = locks
        self._admin = MQAdmin(instance)
        self._consume_from_where = config.consume_from_where
        self._timestamp_ms = consume_timestamp_ms(config, self._host.clock.now_ms())
        is_broadcasting = config.message_model is MessageModel.BROADCASTING
        self._is_ordered = config.consume_orderly and not is_broadcasting
        self.client_rebalance = config.client_rebalance or config.consume_orderly or is_broadcasting
        """Whether it divides the queues itself: ordered and broadcasting ones do, whatever the option says."""

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a new ordered queue at its broker."""
        return await self._locks.lock(queue)

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Forget what memory still holds of a new queue."""
        self._offsets.memory.remove(queue)

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a queue starts.

        Raises:
            RemotingError, BrokerError: it could not be found out.
        """
        return await compute_pull_from_where(
            self._offsets, self._admin, self._consume_from_where, self._timestamp_ms, queue
        )

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit what memory holds of a dropped queue; returns whether it could be let go of."""
        self._offsets.persist(queue)
        if self._is_ordered:
            return await self._try_remove_ordered(queue, process_queue)
        self._offsets.memory.remove(queue)
        return True

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:  # noqa: ARG002
        """Nothing is cached or stored for a queue that is popped: it can always go."""
        return True

    async def _try_remove_ordered(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Unlock a dropped queue when its listener has no batch, or whatever it has when the lock grew old."""
        now_ms = self._host.clock.now_ms()
        forced = process_queue.dropped and now_ms > process_queue.last_lock_ms + _UNLOCK_DELAY_MS
        if not forced:
            try:
                with self._host.timeout_ms(_CONSUME_LOCK_WAIT_MS):
                    await process_queue.consume_lock.acquire()
            except trio.TooSlowError:
                process_queue.try_unlock_times += 1
                return False
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        process_queue.locked = False
        self._locks.unlock(queue)
        if not forced:
            process_queue.consume_lock.release()
        return True
