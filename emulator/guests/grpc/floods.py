"""Heads of HTTP/2 frames, and floods: frames that cost work and carry no call, counted against allowances.

An HTTP/2 peer may open and reset calls, change settings, ping, update windows of a byte, send empty frames and endless
metadata for as long as it likes; each is a known way to take a server's time. The heads of frames are counted before
anything is decoded.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from emulator.guests.grpc.limits import Allowance, GrpcLimits
from emulator.guests.grpc.status import ConnectionLimitError
from nodes.units import NS_PER_S

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes that a client sends."""
ACK: Final = 0x1
"""Flag of SETTINGS and PING frames that answer."""
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
_HEAD_BYTES = 9
_UPDATES_PER_DATA_FRAME = 4
"""A peer updates two windows for a frame, and some implementations do so twice."""


class FrameKind(IntEnum):
    """The kinds of frames that HTTP/2 knows."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class FrameHead(NamedTuple):
    """The head of a frame, whose content may not have arrived yet."""

    kind: int
    flags: int
    content_bytes: int


class FrameHeads:
    """Finds the heads of frames.

    Args:
        preface_bytes: that come before the first frame.
    """

    def __init__(self, preface_bytes: int) -> None:
        self._skip_bytes = preface_bytes
        self._begun = b""
        """The bytes of a head that has not arrived completely."""
        self._frame_bytes = preface_bytes

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        return len(self._begun) + (self._frame_bytes - self._skip_bytes if self._skip_bytes else 0)

    def feed(self, chunk: bytes) -> Iterator[FrameHead]:
        """Take the next bytes; yields the heads that are complete."""
        chunk = self._begun + chunk if self._begun else chunk
        place, end = self._skip_bytes, len(chunk) - _HEAD_BYTES
        while place <= end:
            content_bytes = int.from_bytes(chunk[place : place + 3])
            yield FrameHead(chunk[place + 3], chunk[place + 4], content_bytes)
            self._frame_bytes = _HEAD_BYTES + content_bytes
            place += self._frame_bytes
        self._begun = chunk[place:]
        self._skip_bytes = max(0, place - len(chunk))


class _Tokens:
    """What is left of an allowance; it fills up with time, and with frames that the peer must answer."""

    __slots__ = ("_as_of_ns", "_burst", "_left", "_per_ns", "_subject")

    def __init__(self, allowance: Allowance, subject: str, now_ns: int) -> None:
        self._burst = self._left = float(allowance.burst)
        self._per_ns = allowance.per_s / NS_PER_S
        self._subject = subject
        self._as_of_ns = now_ns

    def take(self, now_ns: int) -> None:
        self._left = min(self._burst, self._left + (now_ns - self._as_of_ns) * self._per_ns) - 1
        self._as_of_ns = now_ns
        if self._left < 0:
            raise ConnectionLimitError(f"too many {self._subject}")

    def give(self, number: int) -> None:
        self._left = min(self._burst, self._left + number)


class FloodGuard:
    """Counts the frames of one connection.

    Raises:
        ConnectionLimitError: from each method that counts: the peer has sent more than allowed.
    """

    def __init__(self, limits: GrpcLimits, now_ns: int) -> None:
        self._limits = limits
        self._resets = _Tokens(limits.resets, "calls that were reset", now_ns)
        self._pings = _Tokens(limits.pings, "PING frames", now_ns)
        self._settings = _Tokens(limits.settings, "SETTINGS frames", now_ns)
        self._window_updates = _Tokens(limits.window_updates, "WINDOW_UPDATE frames", now_ns)
        self._empty_data = _Tokens(limits.empty_data, "empty DATA frames", now_ns)
        self._other = _Tokens(limits.other_frames, "frames that carry no call", now_ns)
        self._header_frames = 0
        self._header_block_bytes = 0

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of metadata that have not arrived completely."""
        return self._header_block_bytes

    def on_frame(self, head: FrameHead, now_ns: int) -> None:
        """The peer has sent a frame."""
        match head.kind:
            case FrameKind.DATA:
                if not head.content_bytes and not head.flags & END_STREAM:
                    self._empty_data.take(now_ns)
            case FrameKind.HEADERS | FrameKind.CONTINUATION | FrameKind.PUSH_PROMISE:
                self._on_header_frame(head)
            case FrameKind.RST_STREAM:
                self._resets.take(now_ns)
            case FrameKind.SETTINGS:
                self._settings.take(now_ns)
            case FrameKind.PING:
                if not head.flags & ACK:
                    self._pings.take(now_ns)
            case FrameKind.WINDOW_UPDATE:
                self._window_updates.take(now_ns)
            case _:
                self._other.take(now_ns)

    def on_reset(self, now_ns: int) -> None:
        """A call was reset because of what the peer has sent for it."""
        self._resets.take(now_ns)

    def on_data_sent(self) -> None:
        """A DATA frame was sent: the peer may update windows, and measure how long that took by a ping."""
        self._window_updates.give(_UPDATES_PER_DATA_FRAME)
        self._pings.give(1)

    def _on_header_frame(self, head: FrameHead) -> None:
        if head.kind != FrameKind.CONTINUATION:
            self._header_frames = self._header_block_bytes = 0
        self._header_frames += 1
        self._header_block_bytes += head.content_bytes
        limits = self._limits
        if self._header_frames > limits.header_frames + 1:
            raise ConnectionLimitError(f"more than {limits.header_frames} CONTINUATION frames for one call")
        if self._header_block_bytes > limits.header_block_bytes:
            raise ConnectionLimitError(f"more than {limits.header_block_bytes} bytes of metadata for one call")
        if head.flags & END_HEADERS:
            self._header_frames = self._header_block_bytes = 0
