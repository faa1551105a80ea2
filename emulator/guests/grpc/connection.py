"""HTTP/2 with gRPC on one connection, without I/O: bytes in and events out, commands in and bytes out.

Time is passed in. A connection ends by one `ConnectionEnded`: the peer closes, or exceeds a limit or breaks the
protocol, and then the last bytes are a GOAWAY frame.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from h2 import events as h2_events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import HeaderTuple
from hyperframe.frame import Frame, GoAwayFrame

from emulator.guests.grpc.call_head import CallHead
from emulator.guests.grpc.floods import PREFACE, FloodGuard, FrameHeads
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.message_frames import MessageAssembler, framed
from emulator.guests.grpc.send_queues import SendQueues
from emulator.guests.grpc.status import ConnectionLimitError, GrpcError, GrpcStatus
from nodes.values import frozen

_BYTES_AT_ONCE = 65_536
"""Data that is made into frames before the earlier frames were sent."""
_READY_BYTES = 32_768
"""A call with less that waits takes more; as in grpc-java."""
_DEFAULT_WINDOW = 65_535


@frozen
class CallStarted:
    """A client has begun a call."""

    call: int
    """Its number on the connection, an odd one."""
    head: CallHead


@frozen
class MessageReceived:
    """A message of a call is complete; `GrpcConnection.on_taken` opens the windows for more."""

    call: int
    message: bytes


@frozen
class HalfClosed:
    """A client sends no more messages in a call."""

    call: int


@frozen
class CallEnded:
    """A server has ended a call."""

    call: int
    status: GrpcStatus
    text: str


@frozen
class CallCancelled:
    """A call is over: the peer has reset it, or what the peer has sent for it cannot be read."""

    call: int
    text: str


@frozen
class ConnectionEnded:
    """The peer closes the connection; or it must end, because the peer has exceeded a limit or broken the protocol."""

    text: str
    is_fault: bool
    """Whether the peer is to blame."""


Event = CallStarted | MessageReceived | HalfClosed | CallEnded | CallCancelled | ConnectionEnded
"""What the peer of a connection has done."""


class _CallsH2(H2Connection):
    """What gRPC needs otherwise than `h2` has it.

    It remembers few calls that were closed, since a frame for one of them is an error whether it is remembered or not;
    and calls outlive a GOAWAY frame.
    """

    MAX_CLOSED_STREAMS = 4_096

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[h2_events.Event]]:
        event = h2_events.ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        event.additional_data = frame.additional_data
        return [], [event]


class CallState:
    """What a connection knows of a call that has not ended."""

    __slots__ = ("assembler", "has_answered", "unacknowledged_bytes", "untaken_bytes")

    def __init__(self, assembler: MessageAssembler) -> None:
        self.assembler = assembler
        self.untaken_bytes = 0
        """Bytes of complete messages that no handler has taken."""
        self.unacknowledged_bytes = 0
        """Bytes by which the windows grow when all messages are taken."""
        self.has_answered = False
        """Whether the headers of the answer were sent, or have arrived."""


class GrpcConnection(ABC):
    """What the two ends of a connection have in common.

    Args:
        is_client: whether this end begins the calls.
        now_ns: reading of a monotonic clock, as in all methods.
    """

    def __init__(self, limits: GrpcLimits, now_ns: int, *, is_client: bool) -> None:
        self.limits = limits
        self.calls: dict[int, CallState] = {}
        """Calls that have not ended, in the order in which they began."""
        self.ended: ConnectionEnded | None = None
        """How the connection has ended, once it has."""
        self._received_bytes = 0
        self._now_ns = now_ns
        self._h2 = _CallsH2(H2Configuration(client_side=is_client, validate_outbound_headers=False))
        self._guard = FloodGuard(limits, now_ns)
        self._heads = FrameHeads(0 if is_client else len(PREFACE))
        self._queues = SendQueues(self._h2, self._guard)
        self._is_left = ""
        """Why the peer begins no more calls, and takes none; empty: it does."""
        self._arrived: deque[h2_events.Event] = deque()
        """What the peer has done and was not handled."""
        self._unpacked_bytes = 0
        """Bytes that compressed messages have become since handling went on."""
        self._made = bytearray()
        """Frames that were made and not sent."""
        self._begin(is_client=is_client)

    def _begin(self, *, is_client: bool) -> None:
        limits, h2 = self.limits, self._h2
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: limits.concurrent_calls,
            SettingCodes.INITIAL_WINDOW_SIZE: limits.window_bytes,
            SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_list_bytes,
        }
        if is_client:
            values[SettingCodes.ENABLE_PUSH] = 0
        h2.local_settings = Settings(client=is_client, initial_values=values)
        h2.decoder.max_header_list_size = limits.header_block_bytes
        h2.initiate_connection()
        if limits.window_bytes > _DEFAULT_WINDOW:
            h2.increment_flow_control_window(limits.window_bytes - _DEFAULT_WINDOW)

    # --- bytes -------------------------------------------------------------------

    @property
    def received_bytes(self) -> int:
        """Bytes that have arrived and that no handler has taken."""
        return self._received_bytes + self._heads.unfinished_bytes + self._guard.unfinished_bytes

    @property
    def is_idle(self) -> bool:
        """Whether no call is open, and none waits to be sent."""
        return not self.calls and self._queues.is_empty

    @property
    def unsent_bytes(self) -> int:
        """Bytes of messages that wait until the peer reads."""
        return self._queues.unsent_bytes

    @property
    def is_behind(self) -> bool:
        """Whether something that has arrived was not handled: `go_on` is to be called."""
        return bool(self._arrived)

    def receive(self, chunk: bytes, now_ns: int) -> list[Event]:
        """Take bytes of the peer; returns what it has done, in order. After `ConnectionEnded` nothing is read.

        Compressed messages are unpacked for a while only: see `is_behind`.
        """
        if self.ended is not None:
            return []
        self._now_ns = now_ns
        try:
            for head in self._heads.feed(chunk):
                self._guard.on_frame(head, now_ns)
            self._arrived.extend(self._h2.receive_data(chunk))
        except ConnectionLimitError as error:
            return [self.end_at_fault(str(error))]
        except ProtocolError as error:  # h2 has made a GOAWAY frame
            return [self._end(f"not HTTP/2: {type(error).__name__}: {error}", is_fault=True)]
        return self.go_on(now_ns)

    def go_on(self, now_ns: int) -> list[Event]:
        """Handle more of what has arrived; returns what the peer has done."""
        self._now_ns = now_ns
        self._unpacked_bytes = 0
        found: list[Event] = []
        try:
            while self._arrived and self._unpacked_bytes < self.limits.unpacked_bytes_at_once:
                self._on_event(self._arrived.popleft(), found)
            self._require_reading()
            if self._is_left and self.is_idle:
                found.append(self._end(self._is_left, is_fault=False))
        except ConnectionLimitError as error:
            found.append(self.end_at_fault(str(error)))
        except ProtocolError as error:
            found.append(self._end(f"not HTTP/2: {type(error).__name__}: {error}", is_fault=True))
        return found

    def on_stream_end(self) -> list[Event]:
        """The peer has closed the stream of bytes."""
        if self.ended is not None:
            return []
        return [self._end("the stream of bytes has ended", is_fault=self.received_bytes > 0)]

    def bytes_to_send(self) -> bytes:
        """The next bytes to send; empty: none until something else happens."""
        if self.ended is None and not self._arrived:  # `h2` may know already that a call has ended
            self._queues.pump(_BYTES_AT_ONCE)
        self._made += self._h2.data_to_send()
        made = bytes(self._made)
        self._made.clear()
        return made

    # --- commands ----------------------------------------------------------------

    def is_ready(self, call: int) -> bool:
        """Whether the peer has read most of what the call has sent, or never will."""
        return self._queues.unsent_of(call) < _READY_BYTES

    def on_taken(self, call: int, message: bytes) -> None:
        """A handler has taken a message; when it has taken all, the peer may send more."""
        state = self.calls.get(call)
        if state is not None:
            state.untaken_bytes -= len(message)
            self._received_bytes -= len(message)
            if not state.untaken_bytes:
                self._acknowledge(call, state.unacknowledged_bytes)
                state.unacknowledged_bytes = 0

    def reset(self, call: int) -> None:
        """End a call at once, without a status; does nothing if it has ended."""
        if call in self.calls:
            self._reset(call)

    def end_at_fault(self, text: str) -> ConnectionEnded:
        """End the connection: the peer is to blame."""
        if self.ended is None:
            with suppress(ProtocolError):
                self._h2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM, additional_data=text.encode())
        return self._end(text, is_fault=True)

    # --- what the two ends do differently ----------------------------------------

    @abstractmethod
    def _on_headers(self, call: int, headers: Iterable[tuple[bytes, bytes]], found: list[Event]) -> None:
        """The headers of a call or of an answer have arrived, or trailers."""

    @abstractmethod
    def _on_end_of_call(self, call: int, state: CallState, found: list[Event]) -> None:
        """The peer sends no more in a call."""

    @abstractmethod
    def _on_ping_answered(self) -> None:
        """The peer has answered a PING frame."""

    @abstractmethod
    def _on_leave(self, last_call: int, found: list[Event]) -> None:
        """The peer has sent GOAWAY: it serves no call after this one."""

    # --- for both ends -----------------------------------------------------------

    def _on_event(self, event: h2_events.Event, found: list[Event]) -> None:
        match event:
            case h2_events.DataReceived(stream_id=int(call)):
                self._on_data(call, event.data or b"", event.flow_controlled_length or 0, found)
            case (
                h2_events.RequestReceived(stream_id=int(call), headers=list(headers))
                | h2_events.ResponseReceived(stream_id=int(call), headers=list(headers))
                | h2_events.TrailersReceived(stream_id=int(call), headers=list(headers))
            ):
                self._on_headers(call, headers, found)
            case h2_events.StreamEnded(stream_id=int(call)):
                if call in self.calls:
                    self._on_end_of_call(call, self.calls[call], found)
            case h2_events.StreamReset(stream_id=int(call)):
                self._on_reset(call, found, is_ours=not event.remote_reset)
            case h2_events.WindowUpdated(stream_id=int(call)):
                self._queues.on_window(call)
            case h2_events.RemoteSettingsChanged():
                self._queues.on_windows()
            case h2_events.PingAckReceived():
                self._on_ping_answered()
            case h2_events.ConnectionTerminated():
                text = (event.additional_data or b"").decode(errors="replace")
                self._is_left = f"the peer has sent GOAWAY: {text}" if text else "the peer has sent GOAWAY"
                self._on_leave(event.last_stream_id or 0, found)
            case _:
                pass

    def _on_data(self, call: int, data: bytes, window_bytes: int, found: list[Event]) -> None:
        state = self.calls.get(call)
        if state is None:  # the call has ended here, and the peer does not know yet
            self._acknowledge(call, window_bytes)
            return
        state.unacknowledged_bytes += window_bytes
        self._received_bytes -= state.assembler.unfinished_bytes
        self._unpacked_bytes -= state.assembler.unpacked_bytes
        try:
            for message in state.assembler.feed(data):
                state.untaken_bytes += len(message)
                self._received_bytes += len(message)
                found.append(MessageReceived(call, message))
        except GrpcError as error:
            self._received_bytes += state.assembler.unfinished_bytes
            self._cancel(call, error.text, found)
            return
        finally:
            self._unpacked_bytes += state.assembler.unpacked_bytes
        self._received_bytes += state.assembler.unfinished_bytes
        if self._received_bytes > self.limits.received_bytes:
            raise ConnectionLimitError(f"more than {self.limits.received_bytes} bytes of messages wait")
        if not state.untaken_bytes:  # a message may be longer than a window
            self._acknowledge(call, state.unacknowledged_bytes)
            state.unacknowledged_bytes = 0

    def _on_reset(self, call: int, found: list[Event], *, is_ours: bool) -> None:
        if is_ours:  # `h2` answers frames that no open call may have
            self._guard.on_reset(self._now_ns)
        self._queues.drop(call)
        if self._forget(call):
            found.append(CallCancelled(call, "the peer has reset the call"))

    def _cancel(self, call: int, text: str, found: list[Event]) -> None:
        """Reset a call because of what the peer has sent for it."""
        self._reset(call)
        self._guard.on_reset(self._now_ns)
        found.append(CallCancelled(call, text))

    def _reset(self, call: int, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        self._queues.drop(call)
        self._forget(call)
        with suppress(ProtocolError):  # the peer may have closed it with its next frame
            self._h2.reset_stream(call, code)

    def _forget(self, call: int) -> bool:
        """The call is over for this end; returns whether it was not yet."""
        state = self.calls.pop(call, None)
        if state is None:
            return False
        self._received_bytes -= state.untaken_bytes + state.assembler.unfinished_bytes
        self._acknowledge(call, state.unacknowledged_bytes)
        return True

    def _acknowledge(self, call: int, window_bytes: int) -> None:
        if window_bytes and self.ended is None:
            with suppress(ProtocolError):  # as above
                self._h2.acknowledge_received_data(window_bytes, call)

    def _send(self, call: int, message: bytes) -> None:
        """Queue a message.

        Raises:
            ConnectionLimitError: the peer has not read what was sent before; the connection has ended.
        """
        if self._queues.unsent_bytes > self.limits.unsent_bytes:
            text = f"it has not read {self._queues.unsent_bytes} bytes"
            self.end_at_fault(text)
            raise ConnectionLimitError(text)
        self._queues.add(call, framed(message))

    def _go_away(self, last_call: int, text: str) -> None:
        """Ask the peer to begin no call after this one; `h2` would end all calls with it."""
        frame = GoAwayFrame(0)
        frame.last_stream_id = last_call
        frame.error_code = ErrorCodes.NO_ERROR
        frame.additional_data = text.encode()
        self._made += self._h2.data_to_send() + frame.serialize()

    def _send_headers(self, call: int, headers: Iterable[HeaderTuple], *, is_end: bool = False) -> None:
        with suppress(ProtocolError):  # as above
            self._h2.send_headers(call, headers, end_stream=is_end)

    def _require_reading(self) -> None:
        """Answers to frames, such as those to PING frames, wait for no window."""
        self._made += self._h2.data_to_send()
        if len(self._made) > self.limits.unread_bytes:
            raise ConnectionLimitError(f"it has not read {len(self._made)} bytes of answers to its frames")

    def _end(self, text: str, *, is_fault: bool) -> ConnectionEnded:
        if self.ended is None:
            self.ended = ConnectionEnded(text, is_fault)
            self.calls.clear()
            self._arrived.clear()
            self._queues.clear()
            self._received_bytes = 0
        return self.ended
