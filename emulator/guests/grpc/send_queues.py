"""What waits to be sent, call by call, until the windows of HTTP/2 let it pass."""

from collections import deque
from collections.abc import Sequence

from h2.connection import H2Connection
from hpack import HeaderTuple

from emulator.guests.grpc.floods import FloodGuard

_FRAME_BYTES = 16_384
"""Longest DATA frame that is sent, as every peer accepts it."""
_USUAL_BYTES = 1_024
"""A shorter frame, unless it ends a message, is due to a tiny window."""


class _Queue:
    """Messages of one call, and its end."""

    __slots__ = ("ending", "is_ending", "messages", "offset", "unsent_bytes")

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque()
        self.offset = 0
        """Bytes of the first message that were sent."""
        self.unsent_bytes = 0
        self.is_ending = False
        self.ending: Sequence[HeaderTuple] | None = None
        """Trailers, if the call ends with some."""

    def take(self, bytes_max: int) -> bytes:
        """The next bytes of the first message."""
        message = self.messages[0]
        end = self.offset + bytes_max
        piece = message[self.offset : end] if self.offset or end < len(message) else message
        self.offset = end
        if end >= len(message):
            self.messages.popleft()
            self.offset = 0
        self.unsent_bytes -= len(piece)
        return piece


class SendQueues:
    """The queues of a connection; calls take turns, a frame each.

    Args:
        h2: turns frames into bytes.
        guard: learns of DATA frames.
    """

    def __init__(self, h2: H2Connection, guard: FloodGuard) -> None:
        self._h2 = h2
        self._guard = guard
        self._queues: dict[int, _Queue] = {}
        self._sendable: dict[int, None] = {}
        """Calls that have something to send, and whose own windows are not known to be empty."""
        self.unsent_bytes = 0
        """Of all calls."""

    @property
    def is_empty(self) -> bool:
        """Whether no call waits."""
        return not self._queues

    def unsent_of(self, call: int) -> int:
        """Bytes of a call that wait."""
        queue = self._queues.get(call)
        return queue.unsent_bytes if queue is not None else 0

    def add(self, call: int, message: bytes) -> None:
        """Queue a message, with its prefix."""
        queue = self._queues.setdefault(call, _Queue())
        queue.messages.append(message)
        queue.unsent_bytes += len(message)
        self.unsent_bytes += len(message)
        self._sendable[call] = None

    def end(self, call: int, ending: Sequence[HeaderTuple] | None) -> None:
        """Queue the end of a call, with these trailers."""
        queue = self._queues.setdefault(call, _Queue())
        queue.is_ending = True
        queue.ending = ending
        self._sendable[call] = None

    def drop(self, call: int) -> None:
        """Forget a call that was reset."""
        queue = self._queues.pop(call, None)
        self._sendable.pop(call, None)
        if queue is not None:
            self.unsent_bytes -= queue.unsent_bytes

    def clear(self) -> None:
        """Forget all calls."""
        self._queues.clear()
        self._sendable.clear()
        self.unsent_bytes = 0

    def on_window(self, call: int) -> None:
        """The window of a call has grown."""
        if call in self._queues:
            self._sendable[call] = None

    def on_windows(self) -> None:
        """The windows of all calls may have grown."""
        self._sendable.update(dict.fromkeys(self._queues))

    def pump(self, bytes_max: int) -> None:
        """Make frames of what the windows let pass, until about so many bytes."""
        passed_bytes = 0
        while self._sendable and passed_bytes < bytes_max:
            call = next(iter(self._sendable))
            queue = self._queues[call]
            if queue.messages and self._h2.outbound_flow_control_window <= 0:
                return
            del self._sendable[call]
            if queue.messages:
                window_bytes = self._h2.local_flow_control_window(call)
                if window_bytes <= 0:
                    continue
                passed_bytes += self._send_piece(call, queue, min(window_bytes, _FRAME_BYTES))
            if queue.messages:
                self._sendable[call] = None
            else:
                del self._queues[call]
                if queue.is_ending:
                    self._end(call, queue.ending)

    def _send_piece(self, call: int, queue: _Queue, bytes_max: int) -> int:
        piece = queue.take(bytes_max)
        self.unsent_bytes -= len(piece)
        self._h2.send_data(call, piece)
        if not queue.offset or len(piece) >= _USUAL_BYTES:  # a peer that opens its window byte by byte gains nothing
            self._guard.on_data_sent()
        return len(piece)

    def _end(self, call: int, ending: Sequence[HeaderTuple] | None) -> None:
        if ending is None:
            self._h2.end_stream(call)
        else:
            self._h2.send_headers(call, ending, end_stream=True)
