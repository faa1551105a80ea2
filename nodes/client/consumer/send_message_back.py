"""Failed messages of a consumer: sent back to their broker, or to the retry topic of any broker."""

from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import BrokerNotExistError, ClientError, DefaultProducer, OutgoingMessage
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.names import retry_topic
from nodes.protocol.properties import DELAY_TIME_LEVEL, RETRY_TOPIC
from nodes.protocol.retries import retry_delay_level, retry_properties
from nodes.protocol.static_topics import MOCK_BROKER_PREFIX
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, succeeded

_TIMEOUT_MS = 5_000


class SendMessageBack:
    """Sends failed messages of a group back.

    Args:
        producer: the inner producer of the client.
        max_reconsume_times: redeliveries before a message becomes a dead letter.

    Mirrors:
        `DefaultMQPushConsumerImpl#sendMessageBack`, `ConsumeMessageOrderlyService#sendMessageBack`.
    """

    def __init__(
        self, instance: ClientInstance, producer: DefaultProducer, group: str, max_reconsume_times: int
    ) -> None:
        self._instance = instance
        self._producer = producer
        self._group = group
        self.max_reconsume_times = max_reconsume_times

    async def send_back(self, message: Message, delay_level: int, broker_name: str | None) -> bool:
        """Send a message back to its broker; if that fails, or its queue is a logical one, to the retry topic of any.

        The first attempt may have been stored although its answer was lost: then the message is redelivered twice.

        Args:
            delay_level: of the redelivery; 0: the broker decides.
            broker_name: broker of its queue; None: the message is sent to its store host, without a route.

        Returns:
            Whether it will be redelivered.
        """
        if broker_name is not None and broker_name.startswith(MOCK_BROKER_PREFIX):
            return await self.send_to_retry_topic(message)
        try:
            await self._consumer_send_message_back(message, delay_level, broker_name)
        except (RemotingError, BrokerError, ClientError) as error:
            self._instance.host.log.warning("Failed to send message back", group=self._group, error=str(error))
            return await self.send_to_retry_topic(message)
        return True

    async def send_to_retry_topic(self, message: Message) -> bool:
        """Send a copy of a message to the group's retry topic like a producer; returns whether that worked."""
        level = str(retry_delay_level(message.reconsume_times))
        copy = OutgoingMessage(
            retry_topic(self._group),
            message.body,
            {**retry_properties(message), DELAY_TIME_LEVEL: level},
            message.flag,
            message.reconsume_times + 1,
            self.max_reconsume_times,
        )
        try:
            await self._producer.send(copy)
        except (RemotingError, BrokerError, ClientError) as error:
            self._instance.host.log.warning("sendMessageBack exception", group=self._group, error=str(error))
            return False
        return True

    async def _consumer_send_message_back(self, message: Message, delay_level: int, broker_name: str | None) -> None:
        address = message.store_host if broker_name is None else self._master(broker_name)
        header = headers.ConsumerSendMsgBackRequestHeader(
            message.commit_log_offset,
            self._group,
            delay_level,
            offset_message_id(message.store_host, message.commit_log_offset),
            message.properties.get(RETRY_TOPIC, message.topic),
            max_reconsume_times=self.max_reconsume_times,
            bname=broker_name,
        )
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        succeeded(await invoke(self._instance.rpc, address, code, header, timeout_ms=_TIMEOUT_MS))

    def _master(self, broker_name: str) -> str:
        address = self._instance.routes.find_broker_address_in_publish(broker_name)
        if address is None:
            raise BrokerNotExistError(broker_name)
        return address
