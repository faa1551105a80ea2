"""The emulator's frames: a greeting, then 4-byte big-endian lengths and one msgpack value each.

The greeting's first byte never begins a msgpack value nor a frame of RocketMQ's
own protocol (0x00), so both can arrive on one port.
"""

import struct
from operator import attrgetter

import msgpack

from nodes.protocol.command import Command, new_tuple
from nodes.rpc.msgpack_values import VALUES_MAX, has_many_values

GREETING = b"\xc1\x01"
"""Magic byte and version of the framing."""
FRAME_BYTES_MAX = 16 * 1024 * 1024
"""As RocketMQ's `com.rocketmq.remoting.frameMaxLength`."""

_LENGTH = struct.Struct(">I")
_FIELDS = len(Command._fields)
_pack = msgpack.Packer(use_bin_type=True, default=attrgetter("carried")).pack
"""A header that no one has read yet is packed as its texts, and such a body as its bytes."""
_unpack = msgpack.unpackb


class FrameError(Exception):
    """The byte stream is malformed; framing is lost and the connection must be closed."""

    commands_before: tuple[Command, ...] = ()
    """From `Decoder.feed`: the commands before the bad frame."""


def encode(command: Command) -> bytes:
    """One frame.

    Raises:
        FrameError: the frame would be longer than `FRAME_BYTES_MAX`.
    """
    content: bytes = _pack(command)
    if len(content) > FRAME_BYTES_MAX:
        msg = f"frame of {len(content)} bytes; at most {FRAME_BYTES_MAX} are allowed"
        raise FrameError(msg)
    return _LENGTH.pack(len(content)) + content


def decode(content: bytes | memoryview) -> Command:
    """The command in one frame, without its length.

    Raises:
        FrameError: not msgpack, or not a command, or of very many values.
    """
    if has_many_values(content):
        raise FrameError(f"frame of {len(content)} bytes with more than {VALUES_MAX} values")
    try:
        fields = _unpack(content, use_list=False)
    except Exception as error:
        msg = f"not msgpack: {str(error) or type(error).__name__}"
        raise FrameError(msg) from error
    if type(fields) is not tuple or len(fields) != _FIELDS:
        msg = f"not a command: expected an array of {_FIELDS} fields"
        raise FrameError(msg)
    command: Command = new_tuple(Command, fields)
    if not _well_typed(command):
        msg = "not a command: a field has the wrong type"
        raise FrameError(msg)
    return command


def decode_trusted(content: bytes | memoryview) -> Command:
    """As `decode`, for bytes from `encode`, without checks."""
    return new_tuple(Command, _unpack(content, use_list=False))  # type: ignore[no-any-return]


class Decoder:
    """Splits the byte stream of one connection into commands.

    Args:
        trusted: the bytes come from `encode`, in this process.
    """

    __slots__ = ("_buffer", "_decode")

    def __init__(self, *, trusted: bool = False) -> None:
        self._buffer = bytearray()
        self._decode = decode_trusted if trusted else decode

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[Command]:
        """The commands that are complete now.

        Raises:
            FrameError: see `decode`; also a length above `FRAME_BYTES_MAX`.
        """
        if not self._buffer and len(chunk) >= 4 and _LENGTH.unpack_from(chunk)[0] == len(chunk) - 4:
            return [self._decode(chunk[4:])]
        buffer = self._buffer
        buffer += chunk
        commands: list[Command] = []
        try:
            self._split(commands)
        except FrameError as error:
            error.commands_before = tuple(commands)
            raise
        return commands

    def _split(self, commands: list[Command]) -> None:
        buffer = self._buffer
        start = 0
        while len(buffer) - start >= 4:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > FRAME_BYTES_MAX:
                msg = f"frame of {length} bytes announced; at most {FRAME_BYTES_MAX} are allowed"
                raise FrameError(msg)
            if len(buffer) - start - 4 < length:
                break
            commands.append(self._decode(bytes(buffer[start + 4 : start + 4 + length])))
            start += 4 + length
        del buffer[:start]


def _well_typed(c: Command) -> bool:
    return (
        type(c.code) is int
        and type(c.flag) is int
        and type(c.opaque) is int
        and type(c.version) is int
        and type(c.language) is str
        and (c.remark is None or type(c.remark) is str)
        and type(c.ext_fields) is dict
        and (c.body is None or type(c.body) is bytes)
        and type(c.cause) is int
        and type(c.request_code) is int
    )
