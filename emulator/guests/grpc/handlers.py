"""What a server calls: the handlers of methods, and what they are called with."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from emulator.guests.grpc.call_head import CallHead
from emulator.guests.grpc.flow import MonotonicClock
from nodes.units import NS_PER_MS
from nodes.values import frozen


@frozen
class CallContext:
    """A call, as its handler sees it.

    Mirrors:
        `Context` and `Metadata` of grpc-java, as far as `ProxyContext` reads them.
    """

    head: CallHead
    deadline_ns: int | None
    """When the client gives up, by the clock of the host; None: never."""
    clock: MonotonicClock
    """Of the host."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Mapping name, in lower case -> value."""
        return self.head.metadata

    def remaining_ms(self) -> float | None:
        """How long the client waits from now on; None: without end."""
        return None if self.deadline_ns is None else (self.deadline_ns - self.clock.monotonic_ns()) / NS_PER_MS


class Requests(Protocol):
    """The messages of a client in one call."""

    async def receive(self) -> Any:
        """The next message; None after the last one."""


class Responses(Protocol):
    """The messages of a server in one call."""

    def send(self, response: Any, /) -> None:
        """Queue a message; dropped if the call has ended."""

    async def until_ready(self) -> None:
        """Wait until the client has read most of what was sent; what is sent without waiting takes memory."""


class UnaryHandler(Protocol):
    """Answers one message with one."""

    async def __call__(self, context: CallContext, request: Any, /) -> Any:
        """The response.

        Raises:
            GrpcError: the call ends with this status; with INTERNAL after any other exception.
        """


class StreamHandler(Protocol):
    """Answers one message with many."""

    async def __call__(self, context: CallContext, request: Any, responses: Responses, /) -> None:
        """Send the responses; the call ends when it returns."""


class BidirectionalHandler(Protocol):
    """Receives and sends messages as it likes."""

    async def __call__(self, context: CallContext, requests: Requests, responses: Responses, /) -> None:
        """Receive and send; the call ends when it returns."""


@frozen
class Serializer:
    """How messages of a method are read and written."""

    request: Callable[[bytes], Any]
    """Raises `GrpcError`: the bytes are none."""
    response: Callable[[Any], bytes]


@frozen
class UnaryMethod:
    """A method with one message each way."""

    serializer: Serializer
    handler: UnaryHandler


@frozen
class StreamMethod:
    """A method with one request and many responses."""

    serializer: Serializer
    handler: StreamHandler


@frozen
class BidirectionalMethod:
    """A method with many messages each way, such as Telemetry."""

    serializer: Serializer
    handler: BidirectionalHandler


Method = UnaryMethod | StreamMethod | BidirectionalMethod
Methods = Mapping[str, Method]
"""Mapping path, such as `apache.rocketmq.v2.MessagingService/QueryRoute` -> method."""


class ServerWatch(Protocol):
    """Learns of what happens to a connection."""

    def on_fault(self, text: str) -> None:
        """The client has exceeded a limit or broken the protocol; the connection ends."""

    async def begin_turn(self, message_bytes: int) -> None:
        """Wait until something that the client has sent may be handled."""

    def on_unsent(self, unsent_bytes: int) -> None:
        """So many bytes of messages wait now until the client reads."""

    def on_failed_handler(self, path: str, error: Exception) -> None:
        """A handler has raised something else than `GrpcError`."""
