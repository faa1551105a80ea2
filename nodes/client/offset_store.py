"""A consumer group's offsets: in memory, and at the broker of each queue."""

from collections.abc import Iterable
from typing import Protocol

from nodes.client.instance import ClientInstance
from nodes.client.offset_table import OffsetTable
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import RemotingConnectError, RemotingError
from nodes.rpc.typed import invoke, invoke_oneway, succeeded

_QUERY_TIMEOUT_MS = 5_000


class OffsetStore(Protocol):
    """Where a group's offsets are kept.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.OffsetStore`.
    """

    memory: OffsetTable

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """The stored offset, which memory holds from now on unless it is frozen; None where there is none.

        Raises:
            RemotingError, BrokerError: it could not be read.
        """

    def persist(self, queue: MessageQueue) -> None:
        """Store what memory holds for one queue."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Store what memory holds for the queues of the process queue table."""


class RemoteBrokerOffsetStore:
    """Reads from and commits to brokers; a commit is oneway and never confirmed.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore`.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self.memory = OffsetTable()

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """The offset that the broker has stored for the group; memory holds it from now on, unless it is frozen.

        So the next commit tells the broker what it said itself, though nothing was consumed in between.

        Returns:
            None where it has none.

        Raises:
            RemotingError: no answer.
            BrokerError: another error than "not found".
        """
        address = await self._address_for_query(queue)
        header = headers.QueryConsumerOffsetRequestHeader(self._group, queue.topic, queue.queue_id)
        answer = await invoke(
            self._instance.rpc, address, RequestCode.QUERY_CONSUMER_OFFSET, header, timeout_ms=_QUERY_TIMEOUT_MS
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        offset = _offset(answer)
        self.memory.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Commit what memory holds for one queue."""
        if queue in self.memory:
            self._commit(queue, self.memory.read(queue))

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Commit the queues of the process queue table; what memory holds of others is forgotten unsent."""
        for queue, offset in self.memory.take_for_persist_all(queues):
            self._commit(queue, offset)

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        if not self._send_commit(queue, offset):
            self._instance.host.start_soon(self._commit_by_new_route, queue, offset, name="updateConsumeOffsetToBroker")

    async def _commit_by_new_route(self, queue: MessageQueue, offset: int) -> None:
        # RocketMQ's thread waits for this one; ours goes on with the next queue.
        try:
            await self._instance.update_topic_route(queue.topic)
        except RemotingError as error:
            self._instance.host.log.warning("updateConsumeOffsetToBroker failed", queue=str(queue), error=str(error))
            return
        self._send_commit(queue, offset)

    def _send_commit(self, queue: MessageQueue, offset: int) -> bool:
        """Tell the broker; False where no address of it is known."""
        found = self._instance.routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID)
        if found is None:
            return False
        header = headers.UpdateConsumerOffsetRequestHeader(self._group, queue.topic, queue.queue_id, offset)
        invoke_oneway(self._instance.rpc, found.address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        return True

    async def _address_for_query(self, queue: MessageQueue) -> str:
        routes = self._instance.routes
        found = routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID, only_this_broker=True)
        if found is None:
            await self._instance.update_topic_route(queue.topic)
            found = routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID)
        if found is None:
            raise RemotingConnectError(f"no broker {queue.broker_name} is known")
        return found.address


def _offset(answer: Command) -> int:
    return decode_header(headers.OffsetResponseHeader, succeeded(answer).ext_fields).offset
