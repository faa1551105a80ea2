"""Queries for the offsets of a queue, to its master."""

from nodes.client.instance.client_instance import ClientInstance
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import RemotingConnectError
from nodes.rpc.typed import invoke, succeeded


class MQAdmin:
    """Asks the broker with id 0 of the queue's group, never another one.

    Mirrors:
        `org.apache.rocketmq.client.impl.MQAdminImpl`.
    """

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the offset of the queue's last message.

        Raises:
            RemotingError: no answer, or no master is known.
            BrokerError: the master refuses.
        """
        header = headers.GetMaxOffsetRequestHeader(queue.topic, queue.queue_id, bname=queue.broker_name)
        return await self._ask(queue, RequestCode.GET_MAX_OFFSET, header)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at this time or later.

        Args:
            queue: of any topic.
            timestamp_ms: wall clock of the broker.

        Raises:
            RemotingError: no answer, or no master is known.
            BrokerError: the master refuses.
        """
        header = headers.SearchOffsetRequestHeader(queue.topic, queue.queue_id, timestamp_ms, bname=queue.broker_name)
        return await self._ask(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    async def _ask(
        self,
        queue: MessageQueue,
        code: RequestCode,
        header: headers.GetMaxOffsetRequestHeader | headers.SearchOffsetRequestHeader,
    ) -> int:
        routes = self._instance.routes
        address = routes.find_broker_address_in_publish(routes.broker_name_of(queue))
        if address is None:
            await self._instance.update_topic_route(queue.topic)
            address = routes.find_broker_address_in_publish(routes.broker_name_of(queue))
        if address is None:
            raise RemotingConnectError(f"no master of {queue.broker_name} is known")
        timeout_ms = self._instance.config.mq_client_api_timeout
        answer = await invoke(self._instance.rpc, address, code, header, timeout_ms=timeout_ms)
        return _offset(answer)


def _offset(answer: Command) -> int:
    return decode_header(headers.OffsetResponseHeader, succeeded(answer).ext_fields).offset
