"""What a lite pull consumer does with queues that come and go."""

from nodes.client.instance import ClientInstance
from nodes.client.mq_admin import MQAdmin
from nodes.client.offset_store import OffsetStore
from nodes.client.process_queue import ProcessQueue
from nodes.client.pull_from_where import consume_timestamp_ms, pull_from_where_without_offset
from nodes.client.rebalance_roles import PopProcessQueue
from nodes.config import LitePullConsumerConfig
from nodes.protocol.model import MessageQueue
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError


class StoredOffsetUnknownError(RemotingError):
    """It could not be found out whether the group has an offset of a queue."""


class LitePullQueues:
    """Implements `nodes.client.rebalance_roles.QueueKeeper`.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceLitePullImpl`.
    """

    client_rebalance = True
    """Whatever the option says."""

    def __init__(self, instance: ClientInstance, config: LitePullConsumerConfig, offsets: OffsetStore) -> None:
        self._offsets = offsets
        self._admin = MQAdmin(instance)
        self._consume_from_where = config.consume_from_where
        self._timestamp_ms = consume_timestamp_ms(config, instance.host.clock.now_ms())

    async def lock(self, queue: MessageQueue) -> bool:  # noqa: ARG002
        """Nothing is consumed in order: no lock is needed."""
        return True

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Forget what memory still holds of a new queue."""
        self._offsets.memory.remove(queue)

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where to start: what memory holds, else what is stored, else what `consumeFromWhere` says.

        Raises:
            StoredOffsetUnknownError: the stored offset could not be read.
            RemotingError, BrokerError: there is none, and the queue could not be asked.
        """
        if queue in self._offsets.memory:
            return self._offsets.memory.read(queue)
        try:
            stored = await self._offsets.read_from_store(queue)
        except (RemotingError, BrokerError) as error:
            raise StoredOffsetUnknownError(f"the offset of {queue} cannot be read: {error}") from error
        if stored is not None:
            return stored
        return await pull_from_where_without_offset(self._admin, self._consume_from_where, self._timestamp_ms, queue)

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:  # noqa: ARG002
        """Commit what memory holds of a dropped queue: not what polls have returned since the last auto commit."""
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        return True

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:  # noqa: ARG002
        """Nothing is ever popped."""
        return True
