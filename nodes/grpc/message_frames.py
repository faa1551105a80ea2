"""Messages inside a call: a byte for compression, four for the length, and the message."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from nodes.grpc.status import GrpcError, GrpcStatus

_PREFIX = struct.Struct(">BI")
_COMPRESSED = 1
IDENTITY: Final = "identity"
GZIP: Final = "gzip"
_GZIP_WINDOW = 31


def framed(message: bytes) -> bytes:
    """A message as it is sent, not compressed."""
    return _PREFIX.pack(0, len(message)) + message


class MessageAssembler:
    """Puts the messages of one call together.

    Args:
        encoding: of compressed messages: `IDENTITY` or `GZIP`.
        message_bytes_max: a longer message is refused, compressed or not.
    """

    __slots__ = ("_begun", "_encoding", "_message_bytes_max")

    def __init__(self, encoding: str, message_bytes_max: int) -> None:
        self._encoding = encoding
        self._message_bytes_max = message_bytes_max
        self._begun = bytearray()

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the message that has not arrived completely, with its prefix."""
        return len(self._begun)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes of the call; yields the messages that are complete.

        Raises:
            GrpcError: they are malformed, or a message is too long.
        """
        self._begun += data
        while len(self._begun) >= _PREFIX.size:
            flags, length = _PREFIX.unpack_from(self._begun)
            self._require_readable(flags, length)
            end = _PREFIX.size + length
            if len(self._begun) < end:
                return
            message = bytes(memoryview(self._begun)[_PREFIX.size : end])
            del self._begun[:end]
            yield self._decompressed(message) if flags else message

    def _require_readable(self, flags: int, length: int) -> None:
        """Mirrors: `MessageDeframer`."""
        if flags & ~_COMPRESSED:
            raise GrpcError(GrpcStatus.INTERNAL, "gRPC frame header malformed: reserved bits not zero")
        if flags and self._encoding != GZIP:
            raise GrpcError(GrpcStatus.INTERNAL, "Can't decode compressed gRPC message as compression not configured")
        if length > self._message_bytes_max:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, _too_long(self._message_bytes_max, length))

    def _decompressed(self, message: bytes) -> bytes:
        limit = self._message_bytes_max
        gunzip = zlib.decompressobj(_GZIP_WINDOW)
        try:
            content = gunzip.decompress(message, limit + 1)
        except zlib.error as error:
            raise GrpcError(GrpcStatus.INTERNAL, f"a message is not gzip: {error}") from None
        if len(content) > limit:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, _too_long(limit, len(content)))
        if not gunzip.eof:
            raise GrpcError(GrpcStatus.INTERNAL, "a message is not gzip: it ends early")
        return content


def _too_long(limit_bytes: int, length: int) -> str:
    return f"gRPC message exceeds maximum size {limit_bytes}: {length}"
