"""Messages inside a call: a byte for compression, four for the length, and the message."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from emulator.guests.grpc.status import GrpcError, GrpcStatus

_PREFIX = struct.Struct(">BI")
_COMPRESSED = 1
IDENTITY: Final = "identity"
GZIP: Final = "gzip"
_GZIP_WINDOW = 31


def framed(message: bytes) -> bytes:
    """A message as it is sent, not compressed."""
    return _PREFIX.pack(0, len(message)) + message


class _Unpacking:
    """A message that is unpacked while its bytes arrive."""

    __slots__ = ("_gunzip", "_left_bytes", "content")

    def __init__(self, packed_bytes: int) -> None:
        self._gunzip = zlib.decompressobj(_GZIP_WINDOW)
        self._left_bytes = packed_bytes
        self.content = bytearray()

    def take(self, received: bytearray, content_bytes_max: int) -> bool:
        """Unpack what has arrived, and remove it from there; returns whether it was all."""
        with memoryview(received) as view, view[: self._left_bytes] as packed:
            taken = len(packed)
            try:
                self.content += self._gunzip.decompress(packed, content_bytes_max + 1 - len(self.content))
            except zlib.error as error:
                raise GrpcError(GrpcStatus.INTERNAL, f"a message is not gzip: {error}") from None
        if len(self.content) > content_bytes_max:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, _too_long(content_bytes_max, len(self.content)))
        del received[:taken]
        self._left_bytes -= taken
        if not self._left_bytes and not self._gunzip.eof:
            raise GrpcError(GrpcStatus.INTERNAL, "a message is not gzip: it ends early")
        return not self._left_bytes


class MessageAssembler:
    """Puts the messages of one call together.

    Args:
        encoding: of compressed messages: `IDENTITY` or `GZIP`.
        message_bytes_max: a longer message is refused, compressed or not.
        unpacked_bytes_max: a compressed message that becomes longer is refused.
    """

    __slots__ = ("_begun", "_encoding", "_message_bytes_max", "_unpacked_bytes_max", "_unpacking", "unpacked_bytes")

    def __init__(self, encoding: str, message_bytes_max: int, unpacked_bytes_max: int) -> None:
        self._encoding = encoding
        self._message_bytes_max = message_bytes_max
        self._unpacked_bytes_max = min(message_bytes_max, unpacked_bytes_max)
        self._begun = bytearray()
        self._unpacking: _Unpacking | None = None
        self.unpacked_bytes = 0
        """Bytes that the compressed messages so far have become."""

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the message that has not arrived completely, with its prefix; unpacked, if it is compressed."""
        return len(self._begun) + (len(self._unpacking.content) + 1 if self._unpacking is not None else 0)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes of the call; yields the messages that are complete.

        Raises:
            GrpcError: they are malformed, or a message is too long.
        """
        self._begun += data
        while True:
            if self._unpacking is not None:
                before = len(self._unpacking.content)
                is_whole = self._unpacking.take(self._begun, self._unpacked_bytes_max)
                self.unpacked_bytes += len(self._unpacking.content) - before
                if not is_whole:
                    return
                content, self._unpacking = bytes(self._unpacking.content), None
                yield content
            if len(self._begun) < _PREFIX.size:
                return
            flags, length = _PREFIX.unpack_from(self._begun)
            self._require_readable(flags, length)
            if flags:
                del self._begun[: _PREFIX.size]
                self._unpacking = _Unpacking(length)
                continue
            end = _PREFIX.size + length
            if len(self._begun) < end:
                return
            message = bytes(memoryview(self._begun)[_PREFIX.size : end])
            del self._begun[:end]
            yield message

    def _require_readable(self, flags: int, length: int) -> None:
        """Mirrors: `MessageDeframer`."""
        if flags & ~_COMPRESSED:
            raise GrpcError(GrpcStatus.INTERNAL, "gRPC frame header malformed: reserved bits not zero")
        if flags and self._encoding != GZIP:
            raise GrpcError(GrpcStatus.INTERNAL, "Can't decode compressed gRPC message as compression not configured")
        if length > self._message_bytes_max:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, _too_long(self._message_bytes_max, length))


def _too_long(limit_bytes: int, length: int) -> str:
    return f"gRPC message exceeds maximum size {limit_bytes}: {length}"
