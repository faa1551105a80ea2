"""A producer that sends one message, as the command `sendMessage` does."""

from collections.abc import Mapping

import attrs

from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import DefaultProducer, OutgoingMessage, SendResult
from nodes.config import ProducerConfig
from nodes.host import Host
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.model import ConsumerData, MessageQueue, ProducerData, TopicRouteData


class OneMessage:
    """Sends one message, with the retries of any producer, and leaves; a member of its own client instance.

    It is gone before a timer of the instance would fire, so the instance is not started. Its group is the time at
    which it starts.

    Mirrors:
        `org.apache.rocketmq.tools.command.message.SendMessageCommand`.
    """

    def __init__(self, host: Host, nameservers: tuple[str, ...], credentials: SessionCredentials | None = None) -> None:
        keys = {} if credentials is None else attrs.asdict(credentials, recurse=False)
        config = ProducerConfig(**keys)
        self._group = str(host.clock.now_ms())
        self._instance = ClientInstance(host, config, nameservers)
        self._producer = DefaultProducer(self._instance, config, self._group)

    async def send(
        self, topic: str, body: bytes, properties: Mapping[str, str], queue: MessageQueue | None
    ) -> SendResult:
        """Send the message to a queue, or to the one whose turn it is.

        Raises:
            RemotingError: no attempt was answered.
            BrokerError: the broker refused.
            ClientError: there is no queue to send to.
        """
        self._instance.register(self)
        try:
            message = OutgoingMessage(topic, body, properties)
            if queue is None:
                return await self._producer.send(message)
            return await self._producer.send_selected(message, lambda _queues, _key: queue, "")
        finally:
            await self._instance.unregister(self, self._group, is_consumer=False)
            self._instance.rpc.close_all()

    # --- called by the instance ----------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """The topic of its message."""
        return self._producer.topics()

    def consumer_data(self) -> ConsumerData | None:
        """None: this is a producer."""
        return None

    def producer_data(self) -> ProducerData:
        """Its group."""
        return self._producer.producer_data()

    def lacks_info(self, topic: str) -> bool:
        """Whether it knows no queue of the topic to send to."""
        return self._producer.lacks_info(topic)

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Store the queues to send to."""
        self._producer.update_topic_info(topic, route)

    def persist_offsets(self) -> None:
        """Do nothing: a producer has no offsets."""
