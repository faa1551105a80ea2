"""A server of gRPC for one stream of bytes: calls are handed to the handlers of their methods, a task each.

A handler whose call is cancelled, or whose deadline has come, is cancelled; what must go on all the same is a flow of
its host.
"""

from collections import deque
from functools import partial
from typing import Any, Final

import trio

from emulator.guests.grpc.call_head import CallHead
from emulator.guests.grpc.connection import (
    CallCancelled,
    CallStarted,
    ConnectionEnded,
    Event,
    HalfClosed,
    MessageReceived,
)
from emulator.guests.grpc.flow import ByteStream, ConnectionFlow, Timers
from emulator.guests.grpc.handlers import (
    BidirectionalMethod,
    CallContext,
    Method,
    Methods,
    Requests,
    Responses,
    ServerWatch,
    StreamMethod,
    UnaryMethod,
)
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server_connection import ServerConnection
from emulator.guests.grpc.status import ConnectionLimitError, GrpcError, GrpcStatus
from nodes.host import Timer
from nodes.parking import park_among, unpark
from nodes.units import NS_PER_MS

_DRAIN_MS: Final = 10_000
"""How long a client may take to answer that its connection drains; as in grpc-java."""


class _ServedCall(Requests, Responses):
    """A call between its connection and its handler."""

    def __init__(self, server: "GrpcServer", number: int, method: Method, context: CallContext) -> None:
        self.number = number
        self.method = method
        self.context = context
        self.scope = trio.CancelScope()
        self.deadline: Timer | None = None
        self.received: deque[bytes] = deque()
        """Messages that the handler has not taken."""
        self.is_half_closed = False
        self._server = server
        self._waiting: dict[trio.lowlevel.Task, None] = {}

    def wake(self) -> None:
        """A message has arrived, or the last one has."""
        for task in tuple(self._waiting):
            del self._waiting[task]
            unpark(task)

    async def take(self) -> Any:
        """The oldest message, as its handler gets it, when it is the turn of the connection."""
        await self._server.begin_turn(len(self.received[0]))
        message = self.received.popleft()
        self._server.on_taken(self.number, message)
        return self.method.serializer.request(message)

    async def receive(self) -> Any:
        while not self.received:
            if self.is_half_closed:
                return None
            await park_among(self._waiting)
        return await self.take()

    def send(self, response: Any, /) -> None:
        self._server.send(self.number, self.method.serializer.response(response))

    async def until_ready(self) -> None:
        await self._server.until_ready(self.number)


class GrpcServer(ConnectionFlow):
    """Serves the calls of one connection, until it ends or is idle for too long.

    Args:
        timers: of the host that serves.
        methods: that clients may call.
        watch: of the connection.

    Mirrors:
        `ServerImpl` and `ServerCalls` of grpc-java.
    """

    def __init__(
        self,
        timers: Timers,
        stream: ByteStream,
        methods: Methods,
        limits: GrpcLimits,
        watch: ServerWatch,
    ) -> None:
        self.connection = ServerConnection(limits, timers.clock.monotonic_ns())
        super().__init__(timers, stream, self.connection)
        self._methods = methods
        self._watch = watch
        self._calls: dict[int, _ServedCall] = {}
        self._idle: Timer | None = None
        self._refusal: Timer | None = None
        """Set while the connection drains."""

    async def serve(self) -> None:
        """Serve until the connection ends."""
        self._look_for_idleness()
        try:
            await self.run()
        finally:
            for timer in (self._idle, self._refusal):
                if timer is not None:
                    timer.cancel()

    def drain(self, text: str) -> None:
        """Let the client begin no more calls, and end when all have ended; the client gets the text."""
        if self._refusal is None:
            self.connection.drain(text)
            self._refusal = self._timers.call_later_ms(_DRAIN_MS, self._refuse_calls)
            self._wake_writer()

    def close(self, text: str) -> None:
        """End as soon as the calls have ended, of which no more begin, and the client has read their answers."""
        self.connection.drain(text)
        self.connection.refuse_calls()
        self._wake_writer()

    def end_at_fault(self, text: str) -> None:
        """End the connection, which uses too much."""
        self._watch.on_fault(self.connection.end_at_fault(text).text)
        self._begin_to_end()

    # --- for calls ---------------------------------------------------------------

    async def begin_turn(self, message_bytes: int) -> None:
        """Wait until a message may be handled."""
        await self._watch.begin_turn(message_bytes)

    def on_taken(self, number: int, message: bytes) -> None:
        """A handler has taken a message."""
        self.connection.on_taken(number, message)
        self._wake_writer()

    def send(self, number: int, message: bytes) -> None:
        """Queue a message of a call."""
        try:
            self.connection.send_message(number, message)
        except ConnectionLimitError as error:
            self._watch.on_fault(str(error))
            self._begin_to_end()
        self._watch.on_unsent(self.connection.unsent_bytes)
        self._wake_writer()

    async def until_ready(self, number: int) -> None:
        """Wait until the client has read most of what a call has sent."""
        await self._until_ready(number)

    # --- what the client does ----------------------------------------------------

    async def _give_way(self) -> None:
        await self._watch.begin_turn(0)

    def _on_event(self, event: Event) -> None:
        match event:
            case CallStarted(call=number, head=head):
                self._start(number, head)
            case MessageReceived(call=number, message=message):
                if number in self._calls:
                    self._on_message(self._calls[number], message)
            case HalfClosed(call=number):
                if number in self._calls:
                    self._on_half_closed(self._calls[number])
            case CallCancelled(call=number):
                if number in self._calls:
                    self._cancel(self._calls[number])
            case ConnectionEnded(text=text, is_fault=True):
                self._watch.on_fault(text)

    def _start(self, number: int, head: CallHead) -> None:
        method = self._methods.get(head.path)
        if method is None:
            self._end(number, GrpcStatus.UNIMPLEMENTED, f"Method not found: {head.path}")
            return
        now_ns = self.now_ns
        deadline_ns = None if head.timeout_ns is None else now_ns + head.timeout_ns
        context = CallContext(head, deadline_ns, self._timers.clock)
        call = self._calls[number] = _ServedCall(self, number, method, context)
        if head.timeout_ns is not None:
            call.deadline = self._timers.call_later_ms(head.timeout_ns / NS_PER_MS, partial(self._on_deadline, call))
        if isinstance(method, BidirectionalMethod):
            self._begin(call)

    def _on_message(self, call: _ServedCall, message: bytes) -> None:
        if call.received and not isinstance(call.method, BidirectionalMethod):
            self._finish(call, GrpcStatus.INTERNAL, "Too many requests")
            return
        call.received.append(message)
        call.wake()

    def _on_half_closed(self, call: _ServedCall) -> None:
        call.is_half_closed = True
        if isinstance(call.method, BidirectionalMethod):
            call.wake()
        elif call.received:
            self._begin(call)
        else:
            self._finish(call, GrpcStatus.INTERNAL, "Half-closed without a request")

    def _on_deadline(self, call: _ServedCall) -> None:
        """Reset the call without a status, as grpc-java does: the client has ended it by its own clock."""
        self.connection.reset(call.number)
        self._cancel(call)
        self._wake_writer()

    def _on_sent(self) -> None:
        super()._on_sent()
        self._watch.on_unsent(self.connection.unsent_bytes)

    def _on_end(self) -> None:
        for call in tuple(self._calls.values()):
            self._cancel(call)

    # --- calls -------------------------------------------------------------------

    def _begin(self, call: _ServedCall) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(self._handle, call)

    async def _handle(self, call: _ServedCall) -> None:
        with call.scope:
            status, text = await self._outcome(call)
            self._finish(call, status, text)

    async def _outcome(self, call: _ServedCall) -> tuple[GrpcStatus, str]:
        try:
            await self._run_handler(call)
        except GrpcError as error:
            return error.status, error.text
        except Exception as error:  # noqa: BLE001 - as RocketMQ's `GlobalExceptionInterceptor`
            self._watch.on_failed_handler(call.context.head.path, error)
            return GrpcStatus.INTERNAL, str(error)
        return GrpcStatus.OK, ""

    async def _run_handler(self, call: _ServedCall) -> None:
        match call.method:
            case UnaryMethod(handler=handle):
                call.send(await handle(call.context, await call.take()))
            case StreamMethod(handler=handle_stream):
                await handle_stream(call.context, await call.take(), call)
            case BidirectionalMethod(handler=handle_all):
                await handle_all(call.context, call, call)

    def _finish(self, call: _ServedCall, status: GrpcStatus, text: str) -> None:
        self._end(call.number, status, text)
        self._forget(call)

    def _end(self, number: int, status: GrpcStatus, text: str) -> None:
        self.connection.end(number, status, text, self.now_ns)
        self._wake_writer()

    def _cancel(self, call: _ServedCall) -> None:
        self._forget(call)
        call.scope.cancel()

    def _forget(self, call: _ServedCall) -> None:
        self._calls.pop(call.number, None)
        if call.deadline is not None:
            call.deadline.cancel()

    # --- the end of the connection -----------------------------------------------

    def _is_over(self) -> bool:
        return super()._is_over() or self.connection.is_drained

    def _look_for_idleness(self) -> None:
        """End a connection over which there has been no call for long enough; else look again when that may be."""
        connection, limit_ns = self.connection, self.connection.limits.idle_ms * NS_PER_MS
        idle_ns = self.now_ns - connection.served_until_ns if connection.is_idle else 0
        if idle_ns >= limit_ns:
            self.drain("max_idle")
        else:
            self._idle = self._timers.call_later_ms((limit_ns - idle_ns) / NS_PER_MS, self._look_for_idleness)

    def _refuse_calls(self) -> None:
        self.connection.refuse_calls()
        self._wake_writer()
