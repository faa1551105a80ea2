"""The server's end of a connection."""

from collections.abc import Iterable
from typing import Final

from h2.errors import ErrorCodes

from emulator.guests.grpc.call_head import (
    CallRefusedError,
    metadata_bytes,
    read_call,
    refusal_headers,
    response_headers,
    too_much_metadata,
    trailers,
)
from emulator.guests.grpc.connection import CallStarted, CallState, Event, GrpcConnection, HalfClosed
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.message_frames import GZIP, IDENTITY, MessageAssembler
from emulator.guests.grpc.status import GrpcStatus

_LAST_CALL_MAX: Final = 2**31 - 1
_PING = b"draining"


class ServerConnection(GrpcConnection):
    """Events of calls that a client makes, and commands that answer them.

    Mirrors:
        `NettyServerHandler` of grpc-java.
    """

    def __init__(self, limits: GrpcLimits, now_ns: int) -> None:
        super().__init__(limits, now_ns, is_client=False)
        self.served_until_ns = now_ns
        """When the last call ended, or the connection began."""
        self._highest_call = 0
        self._last_call: int | None = None
        """Calls after it are refused; None: none is."""
        self._draining = ""

    @property
    def is_drained(self) -> bool:
        """Whether the client knows that it may begin no call, and all have ended."""
        return self._last_call is not None and self.is_idle

    def send_message(self, call: int, message: bytes) -> None:
        """Queue a message; dropped if the call or the connection has ended.

        Raises:
            ConnectionLimitError: the client has not read what was sent before; the connection has ended.
        """
        state = self.calls.get(call)
        if state is None:
            return
        if not state.has_answered:
            state.has_answered = True
            self._send_headers(call, response_headers())
        self._send(call, message)

    def end(self, call: int, status: GrpcStatus, text: str, now_ns: int) -> None:
        """End a call behind its messages; does nothing if it has ended."""
        state = self.calls.get(call)
        if state is not None:
            self._forget(call)
            self._queues.end(call, trailers(status, text, alone=not state.has_answered))
            self.served_until_ns = now_ns

    def drain(self, text: str) -> None:
        """Ask the client to begin no more calls; those that it has begun meanwhile are served."""
        if self.ended is None and not self._draining:
            self._draining = text
            self._go_away(_LAST_CALL_MAX, text)
            self._h2.ping(_PING)

    def refuse_calls(self) -> None:
        """Refuse calls from now on, whether the client knows or not."""
        if self.ended is None and self._last_call is None:
            self._last_call = self._highest_call
            self._go_away(self._last_call, self._draining)

    def _on_ping_answered(self) -> None:
        if self._draining:
            self.refuse_calls()

    def _on_leave(self, last_call: int, found: list[Event]) -> None:
        """Nothing: a server begins no calls."""

    def _on_headers(self, call: int, headers: Iterable[tuple[bytes, bytes]], found: list[Event]) -> None:
        if call <= self._highest_call:
            return  # trailers of a client have no meaning in gRPC
        self._highest_call = call
        if self._last_call is not None:
            self._refuse(call, ErrorCodes.REFUSED_STREAM)
        elif metadata_bytes(headers) > self.limits.header_list_bytes:
            self._send_headers(call, too_much_metadata(), is_end=True)
        else:
            self._start(call, headers, found)

    def _start(self, call: int, headers: Iterable[tuple[bytes, bytes]], found: list[Event]) -> None:
        try:
            head = read_call(headers)
        except CallRefusedError as refused:
            if refused.http_status is not None:
                self._send_headers(call, refusal_headers(refused))
            self._refuse(call, ErrorCodes.INTERNAL_ERROR)
            return
        if head.encoding not in (IDENTITY, GZIP):
            text = f"Can't find decompressor for {head.encoding}"
            self._send_headers(call, trailers(GrpcStatus.UNIMPLEMENTED, text, alone=True), is_end=True)
            return
        self.calls[call] = CallState(
            MessageAssembler(head.encoding, self.limits.message_bytes, self.limits.unpacked_bytes)
        )
        found.append(CallStarted(call, head))

    def _refuse(self, call: int, code: ErrorCodes) -> None:
        self._reset(call, code)
        self._guard.on_reset(self._now_ns)

    def _forget(self, call: int) -> bool:
        self.served_until_ns = self._now_ns
        return super()._forget(call)

    def _on_end_of_call(self, call: int, state: CallState, found: list[Event]) -> None:
        if state.assembler.unfinished_bytes:
            self._cancel(call, "Encountered end-of-stream mid-frame", found)
        else:
            found.append(HalfClosed(call))
