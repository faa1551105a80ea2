"""A simple consumer of RocketMQ 5, under an application that receives, works and acknowledges in turn.

Mirrors:
    `org.apache.rocketmq.client.java.impl.consumer.SimpleConsumerImpl`.
"""

import trio

from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import Lifecycle, LifecycleEvent, Ownership, OwnershipEvent
from nodes.client5.client import Client5
from nodes.client5.consumed import Listener5, Settlements
from nodes.client5.grpc_channel import CallFailedError
from nodes.client5.subscriptions import Consumer5Setup, believe_subscriptions, subscription_settings
from nodes.client5.tables.publishing import readable
from nodes.config.client5 import SimpleConsumer5Config
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.definition import Endpoints, MessageQueue, Resource, Settings
from nodes.protocol.v2.enums import ClientType, Code
from nodes.protocol.v2.service import ReceiveMessageRequest, ReceiveMessageResponse, TelemetryCommand

_PAUSE_MS = 1_000
"""How long the application waits after a receive that failed."""
_INT_RANGE = 2**31
_NO_OFFSET = -1


class SimpleConsumer5:
    """A simple consumer of one group: a message whose work fails comes again when its time is over."""

    def __init__(self, host: Host, setup: Consumer5Setup, config: SimpleConsumer5Config) -> None:
        self._host = host
        self._setup = setup
        self._config = config
        self._client = Client5(
            host,
            setup.endpoints,
            config,
            setup.group,
            ClientType.SIMPLE_CONSUMER,
            self._settings,
            _ignore,
            _ignore_settings,
            readable,
        )
        self._listener = Listener5(host, self._client.client_id, setup.group, setup.consume_ms, setup.fail_times)
        self._settlements = Settlements(self._client, setup.group)
        self._index = host.rng("subscription").randrange(_INT_RANGE)
        self._received_from: dict[tuple[str, str], None] = {}
        """(topic, brokerName) of each receive so far."""
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start, consume, shut down."""
        believe_subscriptions(self._host, self._setup)
        if not await self._client.start(self._setup.topics):
            return
        self._host.record(Lifecycle(LifecycleEvent.READY, self._setup.group))
        self._host.start_soon(self._application, name="application")
        await self._stopping.wait()
        await self._client.shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    def _settings(self) -> Settings:
        return subscription_settings(
            ClientType.SIMPLE_CONSUMER, self._client.access_point, self._config.request_timeout, self._setup
        )

    async def _application(self) -> None:
        turn = 0
        while not self._stopping.is_set():
            topic = self._setup.topics[turn % len(self._setup.topics)]
            turn += 1
            if not await self._receive_and_work(topic):
                await self._host.sleep_ms(_PAUSE_MS)

    async def _receive_and_work(self, topic: str) -> bool:
        """Receive once from the next queue, and work on what is found; returns whether the receive worked."""
        queues = self._client.queues[topic]
        queue = queues[self._index % len(queues)]
        self._index += 1
        self._receives_from(topic, queue.broker.name)
        answer = await self._receive(queue, topic)
        if answer is None or answer.status.code not in (Code.OK, Code.MESSAGE_NOT_FOUND):
            return False
        for message in answer.messages:
            if await self._listener.consume(message):
                await self._settlements.ack(queue.broker.endpoints, message, is_repeated=False)
        return True

    def _receives_from(self, topic: str, broker_name: str) -> None:
        if (topic, broker_name) not in self._received_from:
            self._received_from[topic, broker_name] = None
            place = (self._setup.group, topic, broker_name, ALL_QUEUES, _NO_OFFSET)
            self._host.record(Ownership(OwnershipEvent.POP_ACQUIRED, *place))

    async def _receive(self, queue: MessageQueue, topic: str) -> ReceiveMessageResponse | None:
        request = ReceiveMessageRequest(
            Resource(self._setup.group),
            queue,
            self._setup.expression(topic),
            self._config.max_message_num,
            invisible_duration_ms=self._config.invisible_duration,
            long_polling_timeout_ms=self._config.await_duration,
        )
        timeout_ms = self._config.await_duration + self._config.request_timeout
        try:
            return await self._client.call(
                queue.broker.endpoints, RequestCode.V2_RECEIVE_MESSAGE, request, ReceiveMessageResponse, timeout_ms
            )
        except CallFailedError as error:
            self._host.log.warning("receive failed", topic=topic, error=str(error))
            return None


def _ignore(_endpoints: Endpoints, _command: TelemetryCommand) -> None:
    """A proxy in cluster mode never sends commands to consumers."""


def _ignore_settings(_settings: Settings) -> None:
    """Its application decides what a push consumer leaves to the proxy."""
