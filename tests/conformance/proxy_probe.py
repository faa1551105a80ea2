"""A client that asks a proxy, real or ours, and writes its answers down as plain values."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Protocol

import attrs

from nodes.protocol.codes import RequestCode
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
from nodes.protocol.v2.enums import (
    AddressScheme,
    ClientType,
    Encoding,
    FilterType,
    TransactionResolution,
    TransactionSource,
)
from support.proxy_guest import GrpcFailure

BROKER = "broker-a"
ENDPOINTS = Endpoints(AddressScheme.IPv4, (Address("127.0.0.1", 8_081),))
TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION")
DAY_MS = 86_400_000
SIMPLE, PUSH = ClientType.SIMPLE_CONSUMER, ClientType.PUSH_CONSUMER
_FRAME = re.compile(r"\. [a-z][\w.$/]+\([^()]*\)$")
_ADDRESS = re.compile(r"/?\d+\.\d+\.\d+\.\d+:\d+")
_TIMES = ("store_timestamp_ms", "born_timestamp_ms", "delivery_timestamp_ms")
_HOSTS = ("store_host", "born_host")


class ProxyCalls(Protocol):
    """A connection to two proxies, real or ours."""

    async def call(
        self, code: RequestCode, request: Any, proxy: int, client_id: str, language: str, version: str, timeout_ms: int
    ) -> Any:
        """Call a method of a proxy; returns its answer, or how gRPC failed."""

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass."""

    def now_ms(self) -> int:
        """Wall clock of the proxies."""


@attrs.define
class Probe:
    """One question, which names its clients, topics and groups."""

    calls: ProxyCalls
    name: str
    answers: dict[str, Any] = attrs.Factory(dict)

    @property
    def topic(self) -> str:
        """A topic of normal messages with one queue."""
        return f"{self.name}-NORMAL"

    @property
    def group(self) -> str:
        """A group of its own."""
        return f"group-{self.name}"

    def note(self, name: str, answer: Any) -> None:
        """Write an answer down."""
        assert name not in self.answers, name
        self.answers[name] = plain(answer)

    async def call(
        self,
        code: RequestCode,
        request: Any,
        *,
        proxy: int = 0,
        client_id: str | None = None,
        language: str = "JAVA",
        version: str = "5.0.8",
        timeout_ms: int = 30_000,
    ) -> Any:
        """Call a method."""
        client = f"client-{self.name}" if client_id is None else client_id
        return await self.calls.call(code, request, proxy, client, language, version, timeout_ms)

    async def report(self, settings: Settings, **metadata: Any) -> Any:
        """Report settings."""
        return await self.call(RequestCode.V2_TELEMETRY, service.TelemetryCommand(settings=settings), **metadata)

    async def come(self, topic: str | None = None, kind: ClientType = SIMPLE, **metadata: Any) -> Any:
        """Come as a consumer."""
        return await self.report(consumer(self.group, topic or self.topic, kind), **metadata)

    async def heartbeat(self, group: str | None = None, **metadata: Any) -> Any:
        """A heartbeat."""
        request = service.HeartbeatRequest(Resource(group or self.group), SIMPLE)
        return await self.call(RequestCode.V2_HEARTBEAT, request, **metadata)

    async def send(self, *messages: Message, **metadata: Any) -> service.SendMessageResponse:
        """Send messages."""
        answer: service.SendMessageResponse = await self.call(
            RequestCode.V2_SEND_MESSAGE, service.SendMessageRequest(messages), **metadata
        )
        return answer

    async def receive(self, topic: str | None = None, **options: Any) -> service.ReceiveMessageResponse:
        """Receive messages."""
        group = options.pop("group", self.group)
        broker = options.pop("broker", BROKER)
        expression = options.pop("expression", FilterExpression(FilterType.TAG, "*"))
        request = service.ReceiveMessageRequest(
            Resource(group),
            MessageQueue(Resource(topic or self.topic), options.pop("queue_id", -1), broker=Broker(broker)),
            expression,
            options.pop("maximum", 16),
            options.pop("invisible_ms", 10_000),
            options.pop("auto_renew", False),
            options.pop("poll_ms", 5_000),
            options.pop("attempt_id", None),
        )
        answer: service.ReceiveMessageResponse = await self.call(RequestCode.V2_RECEIVE_MESSAGE, request, **options)
        return answer

    async def ack(self, handle: str, message_id: str = "id", **options: Any) -> Any:
        """Acknowledge a message by its handle."""
        group, topic = options.pop("group", self.group), options.pop("topic", self.topic)
        request = service.AckMessageRequest(
            Resource(group), Resource(topic), (service.AckMessageEntry(message_id, handle),)
        )
        return await self.call(RequestCode.V2_ACK_MESSAGE, request, **options)

    async def change(self, handle: str, invisible_ms: int, **options: Any) -> Any:
        """Hide a message for a time from now on."""
        group, topic = options.pop("group", self.group), options.pop("topic", self.topic)
        request = service.ChangeInvisibleDurationRequest(Resource(group), Resource(topic), handle, invisible_ms, "id")
        return await self.call(RequestCode.V2_CHANGE_INVISIBLE_DURATION, request, **options)

    async def forward(self, handle: str, **options: Any) -> Any:
        """Make a message a dead letter."""
        group, topic = options.pop("group", self.group), options.pop("topic", self.topic)
        request = service.ForwardMessageToDeadLetterQueueRequest(Resource(group), Resource(topic), handle, "id", 1, 1)
        return await self.call(RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE, request, **options)

    async def end(self, transaction_id: str, topic: str, **options: Any) -> Any:
        """Commit a transaction."""
        request = service.EndTransactionRequest(
            Resource(topic),
            "id",
            transaction_id,
            TransactionResolution.COMMIT,
            options.pop("source", TransactionSource.SOURCE_CLIENT),
        )
        return await self.call(RequestCode.V2_END_TRANSACTION, request, **options)

    def message(self, topic: str | None = None, body: bytes = b"x", **given: Any) -> Message:
        """A message to send."""
        user = given.pop("user", {})
        system = {
            "message_id": "id",
            "born_timestamp_ms": self.calls.now_ms(),
            "body_encoding": Encoding.IDENTITY,
            **given,
        }
        return Message(Resource(topic or self.topic), user, SystemProperties(**system), body)

    async def one_message(self, **given: Any) -> Message:
        """Come as a consumer, send a message, and receive it."""
        await self.come()
        await self.receive()
        await self.send(self.message(**given))
        (message,) = (await self.receive()).messages
        return message


def consumer(group: str, topic: str, kind: ClientType = SIMPLE) -> Settings:
    """The settings of a consumer."""
    entry = SubscriptionEntry(Resource(topic), FilterExpression(FilterType.TAG, "*"))
    return Settings(kind, request_timeout_ms=3_000, subscription=Subscription(Resource(group), (entry,)))


def producer(*topics: str) -> Settings:
    """The settings of a producer."""
    return Settings(ClientType.PRODUCER, publishing=Publishing(tuple(Resource(topic) for topic in topics)))


# --- plain values ----------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value as JSON, without what differs from run to run: instants, hosts, ids of transactions, places in logs."""
    if isinstance(value, Status):
        return f"{int(value.code)} {text_of(value.message)}"
    if isinstance(value, GrpcFailure):
        return f"gRPC {value.grpc_status} {text_of(value.text)}"
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in sorted(value.items())}
    if attrs.has(type(value)):
        fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
        return {name: _field(name, item) for name, item in fields.items() if _is_shown(item)}
    return value


def _is_shown(value: Any) -> bool:
    is_empty_value = attrs.has(type(value)) and value == type(value)()
    return value not in (None, "", (), {}) and not is_empty_value


def _field(name: str, value: Any) -> Any:
    if name in _TIMES:
        return "an instant"
    if name in _HOSTS:
        return "a host"
    if name in ("transaction_id", "recall_handle"):
        return "given"
    if name == "receipt_handle":
        words = value.split(" ")
        if len(words) == 1:
            return value
        return f"{len(words)} words, first {min(int(words[0]), 1) if words[0].isdigit() else words[0]}, mark {words[4]}"
    return plain(value)


def text_of(text: str) -> str:
    """A text without the place in the source of Java, and without addresses."""
    return _ADDRESS.sub("ADDRESS", _FRAME.sub("", text))
