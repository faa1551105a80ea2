"""The client's end of a connection."""

from collections.abc import Iterable

from h2.exceptions import ProtocolError

from emulator.guests.grpc.call_head import CallHead, Headers, call_headers, read_trailers
from emulator.guests.grpc.connection import CallState, GrpcConnection
from emulator.guests.grpc.events import CallEnded, Event
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
