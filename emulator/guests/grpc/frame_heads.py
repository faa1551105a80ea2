"""The heads of HTTP/2 frames in a stream of bytes: kind, flags and length, before anything is decoded."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes that a client sends."""
_HEAD_BYTES = 9


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


ACK: Final = 0x1
"""Flag of SETTINGS and PING frames that answer."""
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4


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
