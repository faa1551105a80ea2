"""A client of RocketMQ 5 as a test writes it: calls to a proxy, each with the metadata of a client."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import BrokerSpec, Scenario, TopicSpec
from emulator.testing import Caller, Stage, Trace, a_scenario, execute
from nodes.config.proxy import ProxyConfig
from nodes.protocol.acl_signature import SessionCredentials, authorization_of, date_time_of
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import (
    Address,
    Broker,
    Endpoints,
    FilterExpression,
    Message,
    MessageQueue,
    Publishing,
    Resource,
    Settings,
    Status,
    Subscription,
    SubscriptionEntry,
    SystemProperties,
)
from nodes.protocol.v2.enums import AddressScheme, ClientType, Code, FilterType, MessageType

TOPIC, GROUP, PROXY, BROKER = "orders", "g", "proxy-1", "broker-a"
INVISIBLE_MS = 10_000
BORN_MS = 1_735_689_600_000
"""The instant at which emulated time begins."""
ENDPOINTS = Endpoints(AddressScheme.IPv4, (Address("127.0.0.1", 18_081), Address("127.0.0.2", 18_083)))


@attrs.frozen
class GrpcFailure:
    """A call that failed as a call of gRPC."""

    grpc_status: int
    text: str


class ProxyGuest(Caller):
    """Such a client; each call names its client id, so that one guest can stand for several clients."""

    client_id = "client-1"
    signs: SessionCredentials | None = None
    """With which it signs its calls; None: it does not."""
    claims: str | None = None
    """`x-mq-authorization-ak` of its calls; None: they have none."""

    def address(self, node: str) -> str:
        """The address of a proxy; of other nodes as a caller has it."""
        proxies = {spec.name: spec for spec in self.stage.cluster.scenario.proxies}
        if node in proxies:
            return f"{self.stage.cluster.addresses[node]}:{proxies[node].config.grpc_server_port}"
        return super().address(node)

    async def call(
        self,
        code: RequestCode,
        request: Any,
        proxy: str = PROXY,
        *,
        client_id: str | None = None,
        language: str = "JAVA",
        version: str = "5.0.8",
        remaining_ms: int | None = 30_000,
    ) -> Any:
        """Call a method; returns its answer, or how gRPC failed."""
        metadata = CallMetadataHeader(
            self.client_id if client_id is None else client_id, language, version, remaining_ms, *self._signature()
        )
        metadata = attrs.evolve(metadata, authorization_ak=self.claims)
        answer = await self.ask(proxy, code, metadata, request, timeout_ms=max(60_000, remaining_ms or 0))
        if answer.code == ResponseCode.GRPC_ERROR:
            return GrpcFailure(decode_header(GrpcErrorHeader, answer.ext_fields).grpc_status, answer.remark or "")
        kind = EXCHANGES[code].response_body
        assert kind is not None
        return decode_body(kind, answer.body)

    def _signature(self) -> tuple[str, str] | tuple[()]:
        date_time = date_time_of(BORN_MS)
        return () if self.signs is None else (authorization_of(self.signs, date_time), date_time)

    # --- clients -------------------------------------------------------------------------

    async def report(self, settings: Settings, proxy: str = PROXY, **metadata: Any) -> Any:
        """Report settings."""
        return await self.call(RequestCode.V2_TELEMETRY, service.TelemetryCommand(settings=settings), proxy, **metadata)

    async def come(self, proxy: str = PROXY, *, group: str = GROUP, topic: str = TOPIC, **metadata: Any) -> Settings:
        """Come as a simple consumer; returns the merged settings."""
        answer = await self.report(consumer_settings(group, topic), proxy, **metadata)
        assert answer.status == Status(Code.OK, "OK")
        settings: Settings = answer.settings
        return settings

    async def heartbeat(self, proxy: str = PROXY, *, group: str | None = GROUP, **metadata: Any) -> Status:
        """A heartbeat."""
        request = service.HeartbeatRequest(None if group is None else Resource(group), ClientType.SIMPLE_CONSUMER)
        status: Status = (await self.call(RequestCode.V2_HEARTBEAT, request, proxy, **metadata)).status
        return status

    async def terminate(self, proxy: str = PROXY, *, group: str | None = GROUP, **metadata: Any) -> Status:
        """The end of a client."""
        request = service.NotifyClientTerminationRequest(None if group is None else Resource(group))
        status: Status = (await self.call(RequestCode.V2_NOTIFY_CLIENT_TERMINATION, request, proxy, **metadata)).status
        return status

    # --- routes --------------------------------------------------------------------------

    async def route(self, topic: str = TOPIC, proxy: str = PROXY) -> service.QueryRouteResponse:
        """The route of a topic."""
        request = service.QueryRouteRequest(Resource(topic), ENDPOINTS)
        answer: service.QueryRouteResponse = await self.call(RequestCode.V2_QUERY_ROUTE, request, proxy)
        return answer

    async def assignment(
        self, topic: str = TOPIC, group: str = GROUP, proxy: str = PROXY
    ) -> service.QueryAssignmentResponse:
        """The assignments of a group."""
        request = service.QueryAssignmentRequest(Resource(topic), Resource(group), ENDPOINTS)
        answer: service.QueryAssignmentResponse = await self.call(RequestCode.V2_QUERY_ASSIGNMENT, request, proxy)
        return answer

    # --- messages ------------------------------------------------------------------------

    async def send(self, *messages: Message, proxy: str = PROXY) -> service.SendMessageResponse:
        """Send messages."""
        answer: service.SendMessageResponse = await self.call(
            RequestCode.V2_SEND_MESSAGE, service.SendMessageRequest(messages), proxy
        )
        return answer

    async def receive(
        self,
        proxy: str = PROXY,
        *,
        topic: str = TOPIC,
        group: str = GROUP,
        broker: str = BROKER,
        queue_id: int = -1,
        maximum: int = 16,
        invisible_ms: int | None = INVISIBLE_MS,
        poll_ms: int | None = 5_000,
        auto_renew: bool = False,
        attempt_id: str | None = None,
        expression: str = "*",
        **metadata: Any,
    ) -> service.ReceiveMessageResponse:
        """Receive messages."""
        queue = MessageQueue(Resource(topic), queue_id, broker=Broker(broker))
        expressed = FilterExpression(FilterType.TAG, expression)
        request = service.ReceiveMessageRequest(
            Resource(group), queue, expressed, maximum, invisible_ms, auto_renew, poll_ms, attempt_id
        )
        answer: service.ReceiveMessageResponse = await self.call(
            RequestCode.V2_RECEIVE_MESSAGE, request, proxy, **metadata
        )
        return answer

    async def ack(self, message: Message, proxy: str = PROXY, *, group: str = GROUP, **metadata: Any) -> Status:
        """Acknowledge a message; returns the status of its entry."""
        system = message.system_properties
        entry = service.AckMessageEntry(system.message_id, system.receipt_handle or "")
        request = service.AckMessageRequest(Resource(group), message.topic, (entry,))
        answer = await self.call(RequestCode.V2_ACK_MESSAGE, request, proxy, **metadata)
        status: Status = answer.entries[0].status
        return status

    async def change(
        self, message: Message, invisible_ms: int, proxy: str = PROXY, *, group: str = GROUP
    ) -> service.ChangeInvisibleDurationResponse:
        """Hide a message for a time from now on."""
        system = message.system_properties
        request = service.ChangeInvisibleDurationRequest(
            Resource(group), message.topic, system.receipt_handle or "", invisible_ms, system.message_id
        )
        answer: service.ChangeInvisibleDurationResponse = await self.call(
            RequestCode.V2_CHANGE_INVISIBLE_DURATION, request, proxy
        )
        return answer

    async def forward(self, message: Message, proxy: str = PROXY, *, group: str = GROUP) -> Status:
        """Make a message a dead letter."""
        system = message.system_properties
        request = service.ForwardMessageToDeadLetterQueueRequest(
            Resource(group), message.topic, system.receipt_handle or "", system.message_id, 1, 1
        )
        code = RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE
        status: Status = (await self.call(code, request, proxy)).status
        return status


def a_message(
    body: bytes = b"x",
    *,
    topic: str = TOPIC,
    message_id: str = "id-1",
    user: dict[str, str] | None = None,
    **system: Any,
) -> Message:
    """A message to send."""
    properties = SystemProperties(message_id=message_id, born_timestamp_ms=BORN_MS, **system)
    return Message(Resource(topic), user or {}, properties, body)


def producer_settings(*topics: str) -> Settings:
    """The settings that a producer reports."""
    return Settings(ClientType.PRODUCER, publishing=Publishing(tuple(Resource(topic) for topic in topics or (TOPIC,))))


def consumer_settings(
    group: str = GROUP, topic: str = TOPIC, kind: ClientType = ClientType.SIMPLE_CONSUMER
) -> Settings:
    """The settings that a consumer reports."""
    entry = SubscriptionEntry(Resource(topic), FilterExpression(FilterType.TAG, "*"))
    return Settings(kind, request_timeout_ms=3_000, subscription=Subscription(Resource(group), (entry,)))


def proxies(
    *names: str,
    brokers: tuple[str, ...] | tuple[BrokerSpec, ...] = (BROKER,),
    topics: tuple[TopicSpec, ...] | None = None,
    queues: int = 4,
    config: ProxyConfig | None = None,
) -> Scenario:
    """A small cluster with proxies."""
    specs = tuple(ProxySpec(name, config or ProxyConfig()) for name in names or (PROXY,))
    return attrs.evolve(a_scenario(brokers=brokers, topics=topics, queues=queues), proxies=specs)


def runs(scenario: Scenario, script: Callable[[Stage, ProxyGuest], Awaitable[None]], *, number: int = 0) -> Trace:
    """Run a script with such a client."""

    async def main(stage: Stage) -> None:
        caller = await stage.probe(number)
        await script(stage, ProxyGuest(stage, caller.host, caller.node))

    return execute(scenario, main)


FIFO, DELAY, TRANSACTION = MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION
