"""The client's end of a connection."""

from collections.abc import Iterable
from urllib.parse import unquote

from h2.exceptions import ProtocolError
from hpack import HeaderTuple

from emulator.guests.grpc.call_head import CONTENT_TYPE, CallHead, Headers
from emulator.guests.grpc.connection import CallEnded, CallState, Event, GrpcConnection
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.message_frames import IDENTITY, MessageAssembler
from emulator.guests.grpc.status import GrpcError, GrpcStatus


class ClientConnection(GrpcConnection):
    """Commands that make calls, and events of their answers."""

    def __init__(self, limits: GrpcLimits, now_ns: int) -> None:
        super().__init__(limits, now_ns, is_client=True)
        self._trailers: dict[int, Headers] = {}
        """The latest headers of each answer."""

    def start(self, head: CallHead) -> int:
        """Begin a call; returns its number.

        Raises:
            GrpcError: the connection has ended, or the server allows no more calls at a time.
        """
        if self.ended is not None or self._is_left:
            raise GrpcError(GrpcStatus.UNAVAILABLE, self.ended.text if self.ended is not None else self._is_left)
        try:
            call = self._h2.get_next_available_stream_id()
            self._h2.send_headers(call, call_headers(head))
        except ProtocolError as error:
            raise GrpcError(GrpcStatus.UNAVAILABLE, str(error)) from None
        self.calls[call] = CallState(MessageAssembler(IDENTITY, self.limits.message_bytes, self.limits.unpacked_bytes))
        return call

    def send_message(self, call: int, message: bytes) -> None:
        """Queue a message; dropped if the call or the connection has ended.

        Raises:
            ConnectionLimitError: the server has not read what was sent before; the connection has ended.
        """
        if call in self.calls:
            self._send(call, message)

    def half_close(self, call: int) -> None:
        """Send no more messages in a call."""
        if call in self.calls:
            self._queues.end(call, None)

    def _on_headers(self, call: int, headers: Iterable[tuple[bytes, bytes]], found: list[Event]) -> None:
        if call in self.calls:
            self._trailers[call] = headers

    def _on_end_of_call(self, call: int, state: CallState, found: list[Event]) -> None:
        if state.assembler.unfinished_bytes:
            self._cancel(call, "the answer has ended inside a message", found)
            return
        status, text = read_trailers(self._trailers.get(call, ()))
        self._forget(call)
        found.append(CallEnded(call, status, text))

    def _on_leave(self, last_call: int, found: list[Event]) -> None:
        for call in [call for call in self.calls if call > last_call]:
            self._forget(call)
            found.append(CallEnded(call, GrpcStatus.UNAVAILABLE, self._is_left))

    def _on_ping_answered(self) -> None:
        """A client sends none."""

    def _forget(self, call: int) -> bool:
        self._trailers.pop(call, None)
        return super()._forget(call)


def call_headers(head: CallHead) -> list[HeaderTuple]:
    """What a client sends before its messages."""
    timeout = [] if head.timeout_ns is None else [("grpc-timeout", _timeout_text(head.timeout_ns))]
    pairs = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/{head.path}"),
        (":authority", head.authority),
        ("te", "trailers"),
        ("content-type", CONTENT_TYPE),
        *timeout,
        *head.metadata.items(),
    ]
    return [HeaderTuple(name, value) for name, value in pairs]


def read_trailers(headers: Headers) -> tuple[GrpcStatus, str]:
    """How a call has ended, as its client reads it."""
    texts = {name.decode("ascii", "replace"): value.decode("ascii", "replace") for name, value in headers}
    code = texts.get("grpc-status", "")
    known = code.isascii() and code.isdecimal() and int(code) in tuple(GrpcStatus)
    return GrpcStatus(int(code)) if known else GrpcStatus.UNKNOWN, unquote(texts.get("grpc-message", ""))


_UNIT_NS = {"H": 3_600_000_000_000, "M": 60_000_000_000, "S": 1_000_000_000, "m": 1_000_000, "u": 1_000, "n": 1}


def _timeout_text(timeout_ns: int) -> str:
    """In the finest unit that leaves 8 digits."""
    for unit, unit_ns in reversed(_UNIT_NS.items()):
        if timeout_ns < unit_ns * 100_000_000:
            return f"{timeout_ns // unit_ns}{unit}"
    return "99999999H"
