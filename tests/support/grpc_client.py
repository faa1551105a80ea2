"""A client of gRPC over one stream of bytes, as tests and probes need it; messages are bytes."""

from collections import deque
from collections.abc import Mapping

import trio

from emulator.guests.grpc.call_head import CallHead
from emulator.guests.grpc.connection import CallCancelled, CallEnded, ConnectionEnded, Event, MessageReceived
from emulator.guests.grpc.flow import ByteStream, ConnectionFlow, Timers
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.status import ConnectionLimitError, GrpcError, GrpcStatus
from nodes.host import Timer
from nodes.parking import park_among, unpark
from nodes.units import NS_PER_MS
from support.grpc_client_connection import ClientConnection

_NONE: Mapping[str, str] = {}


class ClientCall:
    """A call of this client."""

    def __init__(self, client: "GrpcClient", number: int) -> None:
        self.number = number
        self.deadline: Timer | None = None
        self._client = client
        self._received: deque[bytes] = deque()
        self._end: GrpcError | None = None
        """How it has ended; with status OK, too."""
        self._waiting: dict[trio.lowlevel.Task, None] = {}

    def send(self, message: bytes) -> None:
        """Queue a message."""
        self._client.send(self.number, message)

    async def until_ready(self) -> None:
        """Wait until the server has read most of what was sent."""
        await self._client.until_ready(self.number)

    def half_close(self) -> None:
        """Send no more messages."""
        self._client.half_close(self.number)

    async def receive(self) -> bytes | None:
        """The next message; None after the last one.

        Raises:
            GrpcError: the call has ended with a status other than OK.
        """
        while not self._received:
            if self._end is not None:
                if self._end.status is GrpcStatus.OK:
                    return None
                raise self._end
            await park_among(self._waiting)
        message = self._received.popleft()
        self._client.on_taken(self.number, message)
        return message

    def cancel(self) -> None:
        """End the call."""
        self._client.reset(self.number)
        self.on_end(GrpcStatus.CANCELLED, "")

    def on_message(self, message: bytes) -> None:
        """A message has arrived."""
        self._received.append(message)
        self._wake()

    def on_end(self, status: GrpcStatus, text: str) -> None:
        """The call has ended; only the first end counts."""
        self._end = self._end or GrpcError(status, text)
        if self.deadline is not None:
            self.deadline.cancel()
        self._wake()

    def _wake(self) -> None:
        for task in tuple(self._waiting):
            del self._waiting[task]
            unpark(task)


class GrpcClient(ConnectionFlow):
    """Makes calls over one connection, while `run` runs.

    Args:
        authority: the `host:port` that was dialed.
    """

    def __init__(self, timers: Timers, stream: ByteStream, authority: str, limits: GrpcLimits | None = None) -> None:
        self.connection = ClientConnection(limits or GrpcLimits(), timers.clock.monotonic_ns())
        super().__init__(timers, stream, self.connection)
        self._authority = authority
        self._calls: dict[int, ClientCall] = {}

    def open(self, path: str, metadata: Mapping[str, str] = _NONE, timeout_ms: float | None = None) -> ClientCall:
        """Begin a call.

        Raises:
            GrpcError: the connection has ended.
        """
        timeout_ns = None if timeout_ms is None else int(timeout_ms * NS_PER_MS)
        number = self.connection.start(CallHead(path, metadata, timeout_ns, authority=self._authority))
        call = self._calls[number] = ClientCall(self, number)
        if timeout_ms is not None:
            call.deadline = self._timers.call_later_ms(timeout_ms, lambda: self._on_deadline(call))
        self._wake_writer()
        return call

    async def unary(
        self, path: str, message: bytes, metadata: Mapping[str, str] = _NONE, timeout_ms: float | None = None
    ) -> bytes:
        """Make a call with one message each way.

        Raises:
            GrpcError: it has ended with another status, or without an answer.
        """
        call = self.open(path, metadata, timeout_ms)
        call.send(message)
        call.half_close()
        answer = await call.receive()
        if answer is None or await call.receive() is not None:
            raise GrpcError(GrpcStatus.INTERNAL, "not one answer")
        return answer

    def close(self) -> None:
        """End the connection."""
        self._on_event(ConnectionEnded("closed", is_fault=False))
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    # --- for calls ---------------------------------------------------------------

    def send(self, number: int, message: bytes) -> None:
        """Queue a message of a call."""
        try:
            self.connection.send_message(number, message)
        except ConnectionLimitError:
            self._begin_to_end()
        self._wake_writer()

    async def until_ready(self, number: int) -> None:
        """Wait until the server has read most of what a call has sent."""
        await self._until_ready(number)

    def half_close(self, number: int) -> None:
        """Send no more in a call."""
        self.connection.half_close(number)
        self._wake_writer()

    def on_taken(self, number: int, message: bytes) -> None:
        """A message of a call was taken."""
        self.connection.on_taken(number, message)
        self._wake_writer()

    def reset(self, number: int) -> None:
        """End a call."""
        self._calls.pop(number, None)
        self.connection.reset(number)
        self._wake_writer()

    # --- what the server does ----------------------------------------------------

    def _on_event(self, event: Event) -> None:
        match event:
            case MessageReceived(call=number, message=message):
                if number in self._calls:
                    self._calls[number].on_message(message)
            case CallEnded(call=number, status=status, text=text):
                if number in self._calls:
                    self._calls.pop(number).on_end(status, text)
            case CallCancelled(call=number, text=text):
                if number in self._calls:
                    self._calls.pop(number).on_end(GrpcStatus.CANCELLED, text)
            case ConnectionEnded(text=text):
                self._fail_all(text)

    def _on_end(self) -> None:
        self._fail_all(self.connection.ended.text if self.connection.ended is not None else "")

    def _fail_all(self, text: str) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.on_end(GrpcStatus.UNAVAILABLE, text)

    def _on_deadline(self, call: ClientCall) -> None:
        self.reset(call.number)
        call.on_end(GrpcStatus.DEADLINE_EXCEEDED, "")
