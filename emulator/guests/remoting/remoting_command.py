"""Frames of RocketMQ's remoting protocol: four bytes of length, a header in one of two encodings, a body.

    length | encoding of the header, and its length in 24 bits | header | body

A decoded frame has the values of RocketMQ's class, including nulls; `to_command` converts it for nodes.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.RemotingCommand`, `RocketMQSerializable`,
    `org.apache.rocketmq.remoting.netty.NettyDecoder`.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple, cast

from emulator.guests.remoting.fastjson import JsonError, read_json_bytes, text_of, write_json_bytes
from nodes.cause import NO_CAUSE
from nodes.protocol.command import LANGUAGE, VERSION, Command, new_tuple
from nodes.rpc.codec import FRAME_BYTES_MAX, FrameError

FIRST_BYTE = b"\x00"
"""First byte of every frame within the size limit, and so of every connection."""


HEADER_BYTES_MAX = 1024 * 1024
"""Longest header that is read; properties of messages, by far the longest part, have 32 KiB at most."""
HEADER_FIELDS_MAX = 4_096
"""Most fields of a header: in the encoding ROCKETMQ they have six bytes at least, in JSON eight."""
_TOO_MANY_FIELDS = f"header of more than {HEADER_FIELDS_MAX} fields"


class SerializeType(IntEnum):
    """The two encodings of a header."""

    JSON = 0
    ROCKETMQ = 1


class LanguageCode(IntEnum):
    """The language of a program.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.LanguageCode`.
    """

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


_LANGUAGES = {language.name: language for language in LanguageCode}
_NAMES = {language: name for name, language in _LANGUAGES.items()}
_CODES = {int(language): language for language in LanguageCode}
_JSON = SerializeType.JSON


class HeaderError(FrameError):
    """A whole frame arrived, but its header cannot be read."""


class BadLengthError(HeaderError):
    """A length inside the frame exceeds the frame."""


class EndsEarlyError(HeaderError):
    """The header ends before its last field."""


class NoHeaderError(HeaderError):
    """The header is missing, or has an unknown encoding."""


class RemotingCommand(NamedTuple):
    """One request or response of the remoting protocol."""

    code: int
    language: LanguageCode | None = LanguageCode.PYTHON
    """None: unknown to this version."""
    version: int = VERSION
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    ext_fields: Mapping[str | None, str | None] | None = None
    body: bytes | None = None
    serialize_type: SerializeType = SerializeType.JSON

    def to_command(self, request_code: int) -> Command:
        """Convert to the command of a node; fields without name or value are dropped.

        Args:
            request_code: in a response, the code of the request that it answers.
        """
        fields = self.ext_fields or {}
        if None in fields.values() or None in fields or "" in fields:
            fields = {name: value for name, value in fields.items() if name and value is not None}
        language = _NAMES[LanguageCode.OTHER if self.language is None else self.language]
        begin = (self.code, self.flag, self.opaque, self.version, language, self.remark)
        return new_tuple(Command, (*begin, fields, self.body, NO_CAUSE, request_code))  # type: ignore[no-any-return]


def from_command(command: Command, serialize_type: SerializeType) -> RemotingCommand:
    """Convert the command of a node for the remoting protocol."""
    fields = command.ext_fields
    return RemotingCommand(
        command.code,
        _LANGUAGES.get(command.language, _LANGUAGES[LANGUAGE]),
        command.version,
        command.opaque,
        command.flag,
        command.remark,
        cast("Mapping[str | None, str | None]", fields if fields.__class__ is dict else dict(fields.items())) or None,
        command.body,
        serialize_type,
    )


def encode_remoting(command: RemotingCommand) -> bytes:
    """One frame.

    Raises:
        FrameError: it would exceed the size limit.
    """
    form = _json_header if command.serialize_type is _JSON else _rocketmq_header
    header, body = form(command), command.body or b""
    length = 4 + len(header) + len(body)
    if length + 4 > FRAME_BYTES_MAX:
        raise FrameError(f"frame of {length + 4} bytes; at most {FRAME_BYTES_MAX} are allowed")
    return struct.pack(">II", length, command.serialize_type << 24 | len(header)) + header + body


def decode_remoting(content: bytes) -> RemotingCommand:
    """The command in one frame, without its first length.

    Raises:
        HeaderError: it contains no valid command.
    """
    if len(content) < 4:
        raise EndsEarlyError(f"frame of {len(content)} bytes: too short for a header")
    (marked,) = struct.unpack_from(">I", content)
    form, length = marked >> 24, marked & 0xFFFFFF
    if length > len(content) - 4:
        raise BadLengthError(f"header of {length} bytes announced in a frame of {len(content)}")
    if length > HEADER_BYTES_MAX:
        raise HeaderError(f"header of {length} bytes; at most {HEADER_BYTES_MAX} are allowed")
    if form == _JSON:
        return _read_json_header(content[4 : 4 + length], content[4 + length :] or None)
    if form == SerializeType.ROCKETMQ:
        read, end = _Fields(content, length).command()
        body_length = len(content) - 4 - length
        if len(content) - end < body_length:
            raise EndsEarlyError(f"header of {length} bytes announced, it has {end - 4}")
        return read._replace(body=content[end : end + body_length] or None)
    raise NoHeaderError(f"header of unknown form {form}; 0 is JSON, 1 is ROCKETMQ")


class RemotingDecoder:
    """Splits the byte stream of one connection into commands."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        return len(self._buffer)

    def take(self, chunk: bytes) -> None:
        """Append received bytes."""
        self._buffer += chunk

    def next(self) -> RemotingCommand | None:
        """The next command; None if it is not complete yet.

        Raises:
            FrameError: the next bytes are no frame; framing is lost.
        """
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        (length,) = struct.unpack_from(">I", buffer)
        if length + 4 > FRAME_BYTES_MAX:
            raise FrameError(f"frame of {length + 4} bytes announced; at most {FRAME_BYTES_MAX} are allowed")
        if len(buffer) - 4 < length:
            return None
        content = bytes(buffer[4 : 4 + length])
        del buffer[: 4 + length]
        return decode_remoting(content)


# --- the header as JSON -----------------------------------------------------------


def _json_header(command: RemotingCommand) -> bytes:
    header: dict[str, Any] = {"code": command.code}
    fields = command.ext_fields
    if fields is not None:
        if None in fields.values():
            fields = {name: value for name, value in fields.items() if value is not None}
        header["extFields"] = fields
    header["flag"] = command.flag
    if command.language is not None:
        header["language"] = _NAMES[command.language]
    header["opaque"] = command.opaque
    if command.remark is not None:
        header["remark"] = command.remark
    header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = command.version
    return write_json_bytes(header)


def _read_json_header(raw: bytes, body: bytes | None) -> RemotingCommand:
    if not raw:
        raise NoHeaderError("no header")
    try:
        header = read_json_bytes(raw)
    except JsonError as error:
        raise HeaderError(f"header is no JSON: {error}") from error
    if header is None:
        raise NoHeaderError("no header")
    if not isinstance(header, dict):
        raise HeaderError("header is no JSON object")
    fields = header.get("extFields")
    if fields is not None and not isinstance(fields, dict):
        raise HeaderError("extFields of the header is no JSON object")
    if fields is not None and len(fields) > HEADER_FIELDS_MAX:
        raise HeaderError(_TOO_MANY_FIELDS)
    remark = header.get("remark")
    return RemotingCommand(
        _number(header, "code"),
        _language(header.get("language", "JAVA")),
        _number(header, "version"),
        _number(header, "opaque"),
        _number(header, "flag"),
        None if remark is None else text_of(remark),
        None
        if fields is None
        else {name: v if v is None or v.__class__ is str else text_of(v) for name, v in fields.items()},
        body,
    )


def _number(header: Mapping[str, Any], name: str) -> int:
    """A number as Java reads a field of 32 bits."""
    value = header.get(name)
    if value.__class__ is int and -(2**31) <= value < 2**31:
        return value
    try:
        number = int(value) if value not in (None, "") else 0
    except (TypeError, ValueError, OverflowError) as error:
        raise HeaderError(f"{name} of the header is no number: {value!r}") from error
    if not -(2**31) <= number < 2**31:
        raise HeaderError(f"{name} of the header is beyond 32 bits: {number}")
    return number


def _language(value: object) -> LanguageCode | None:
    """A language by its number, or by its name in any case; None: it is unknown, which harms no one."""
    return _CODES.get(value) if isinstance(value, int) else _LANGUAGES.get(str(value).upper())


# --- the header in the encoding ROCKETMQ -----------------------------------------------

_FIXED = struct.Struct(">hbhii")


def _rocketmq_header(command: RemotingCommand) -> bytes:
    """Encode a header; codes and versions have 16 bits: larger ones are truncated, as in RocketMQ."""
    language = command.language if command.language is not None else LanguageCode.OTHER
    remark = (command.remark or "").encode("utf-8", "replace")
    fields = b"".join(
        _short_text(name) + _text(value)
        for name, value in (command.ext_fields or {}).items()
        if name is not None and value is not None
    )
    fixed = _FIXED.pack(_short(command.code), language, _short(command.version), command.opaque, command.flag)
    return fixed + struct.pack(">i", len(remark)) + remark + struct.pack(">i", len(fields)) + fields


def _short(number: int) -> int:
    return (number + 0x8000) % 0x10000 - 0x8000


def _short_text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return struct.pack(">H", len(raw) & 0xFFFF) + raw


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return struct.pack(">i", len(raw)) + raw


class _Fields:
    """Reads field after field; like RocketMQ it checks the length of the header only for single fields."""

    def __init__(self, content: bytes, header_length: int) -> None:
        self._content = content
        self._header_length = header_length
        self._at = 4

    def command(self) -> tuple[RemotingCommand, int]:
        """The command, and the end of its header."""
        code, language, version, opaque, flag = self._unpack(_FIXED)
        remark = self._string(_INT, self._header_length)
        (fields_length,) = self._unpack(_INT)
        if fields_length > self._header_length:
            raise BadLengthError(f"fields of {fields_length} bytes announced in a header of {self._header_length}")
        fields: dict[str | None, str | None] | None = None
        if fields_length > 0:
            fields, end, number = {}, self._at + fields_length, 0
            while self._at < end:
                number += 1
                if number > HEADER_FIELDS_MAX:
                    raise HeaderError(_TOO_MANY_FIELDS)
                name = self._string(_SHORT, fields_length)
                fields[name] = self._string(_INT, fields_length)
        read = RemotingCommand(
            code,
            _CODES.get(language),
            version,
            opaque,
            flag,
            remark,
            fields,
            serialize_type=SerializeType.ROCKETMQ,
        )
        return read, self._at

    def _unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        if len(self._content) - self._at < form.size:
            raise EndsEarlyError(f"the header ends inside a field, after {len(self._content) - 4} bytes")
        values = form.unpack_from(self._content, self._at)
        self._at += form.size
        return values

    def _string(self, form: struct.Struct, limit: int) -> str | None:
        (length,) = self._unpack(form)
        if length == 0:
            return None
        if length > limit:
            raise BadLengthError(f"a text of {length} bytes announced where {limit} are left")
        if length < 0 or len(self._content) - self._at < length:
            raise EndsEarlyError(f"the header ends inside a text of {length} bytes")
        raw = self._content[self._at : self._at + length]
        self._at += length
        return raw.decode("utf-8", "replace")


_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
