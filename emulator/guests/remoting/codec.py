"""Codecs for guests: bytes to commands and back, with addresses that a guest can dial."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import attrs

from emulator.guests.remoting import body_kinds
from emulator.guests.remoting.remoting_command import (
    HEADER_FIELDS_MAX,
    RemotingCommand,
    RemotingDecoder,
    SerializeType,
    encode_remoting,
    from_command,
)
from nodes.cause import NO_CAUSE
from nodes.protocol.acl_signature import SIGNATURE, TranslatedBody
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.errors import ProtocolError, UnreadableBody
from nodes.protocol.headers import SendMessageResponseHeader
from nodes.protocol.message_id import ADDRESS_DIGITS, address_digits, message_id_address
from nodes.protocol.registry import codes_where
from nodes.rpc.codec import Decoder, FrameError, encode
from nodes.rpc.msgpack_values import VALUES_MAX, has_many_values

_EMULATED = re.compile(r"\b127\.1\.\d{1,3}\.\d{1,3}:\d{1,5}\b")
_BEGIN = "127.1."


@attrs.define
class GuestAddresses:
    """Replaces emulated addresses in what one guest receives.

    Attributes:
        dialable: returns the address at which the guest reaches an emulated `ip:port`.
    """

    dialable: Callable[[str], str]
    _shown_digits: dict[str, str] = attrs.field(factory=dict, init=False, eq=False)

    def host(self, address: str) -> str:
        """Translate an `ip:port`; other text stays as it is."""
        return self.dialable(address) if address.startswith(_BEGIN) and ":" in address else address

    def in_text(self, text: str) -> str:
        """Translate each `ip:port` in a text."""
        return _EMULATED.sub(lambda found: self.dialable(found[0]), text) if _BEGIN in text else text

    def in_body(self, body: bytes) -> bytes:
        """Translate each `ip:port` in a body of text."""
        return self.in_text(body.decode("latin-1")).encode("latin-1") if _BEGIN.encode() in body else body

    def in_header(self, fields: dict[str, str]) -> dict[str, str]:
        """Translate each `ip:port` in the values of a header."""
        if _BEGIN not in "\n".join(fields.values()):
            return fields
        return {name: self.in_text(text) for name, text in fields.items()}

    def message_ids(self, ids: str) -> str:
        """Translate message ids, joined by commas: each begins with the broker's address, which tools dial.

        The id 0 of a reply that is not stored stays as it is.
        """
        return ids if len(ids) < ADDRESS_DIGITS else ",".join(map(self._message_id, ids.split(",")))

    def _message_id(self, message_id: str) -> str:
        """Translate the first half, an address; the second half is an offset in the log. There are few addresses."""
        digits = message_id[:ADDRESS_DIGITS]
        shown = self._shown_digits.get(digits)
        if shown is None:
            shown = self._shown_digits[digits] = address_digits(self.host(message_id_address(digits)))
        return shown + message_id[ADDRESS_DIGITS:]


REQUESTED_CODES_MAX = 1_000
"""Requests to a guest that wait for an answer; beyond that the oldest are forgotten."""
HEADER_CHARS_MAX = 128 * 1024
"""Most characters in the fields of a header; the properties of a message, by far the longest, have 32 KiB at most."""
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_NAMES_MESSAGES = codes_where(lambda exchange: exchange.response_header is SendMessageResponseHeader)
"""Codes of the requests whose answers name the messages that they stored."""


class GuestCodec(Protocol):
    """Translates the bytes of one connection to commands for nodes, and back."""

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        ...

    def decode(self, chunk: bytes) -> Iterator[Command]:
        """Take bytes; yields the commands that are complete.

        Raises:
            FrameError: the next bytes are not a command; the commands before them have been yielded.
        """
        ...

    def encode(self, command: Command) -> bytes:
        """One frame as bytes.

        Raises:
            FrameError: the command cannot be encoded.
        """
        ...


class EmulatorCodec:
    """The emulator's own msgpack frames."""

    def __init__(self) -> None:
        self._decoder = Decoder()

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        return self._decoder.unfinished_bytes

    def decode(self, chunk: bytes) -> Iterator[Command]:
        """Take bytes; yields the commands that are complete."""
        try:
            decoded = self._decoder.feed(chunk)
        except FrameError as error:
            yield from map(_lenient, error.commands_before)
            raise
        yield from map(_lenient, decoded)

    def encode(self, command: Command) -> bytes:
        """One frame as bytes."""
        return encode(command)


class RemotingCodec:
    """RocketMQ's own frames, with bodies as its programs write them and addresses that they can dial.

    An answer has the serialization of the request. A body that does not fit its code is passed on unchanged,
    and the node refuses it like any other.

    Mirrors:
        `RemotingCommand`.
    """

    def __init__(self, addresses: GuestAddresses) -> None:
        self._addresses = addresses
        self._decoder = RemotingDecoder()
        self._serialize_type = SerializeType.JSON
        self._requested: dict[int, int] = {}
        """Mapping opaque -> code, of requests to the guest."""

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the frame that has not arrived completely."""
        return self._decoder.unfinished_bytes

    def decode(self, chunk: bytes) -> Iterator[Command]:
        """Take bytes; yields the commands that are complete."""
        self._decoder.take(chunk)
        while (frame := self._decoder.next()) is not None:
            self._serialize_type = frame.serialize_type
            yield self._command(frame)

    def encode(self, command: Command) -> bytes:
        """One frame as bytes."""
        try:
            translated = self._answer(command) if command.is_response else self._request(command)
        except ProtocolError as error:
            raise FrameError(str(error)) from error
        return encode_remoting(from_command(translated, self._serialize_type))

    def _command(self, frame: RemotingCommand) -> Command:
        is_response = bool(frame.flag & CommandFlag.RESPONSE)
        code = self._requested.pop(frame.opaque, 0) if is_response else frame.code
        command = frame.to_command(code if is_response else 0)
        _require_usual_header(command.ext_fields)
        try:
            if is_response:
                body = body_kinds.response_from_wire(code, frame.body)
            else:
                body = body_kinds.request_from_wire(code, command.ext_fields, frame.body)
        except ProtocolError as error:
            return command._replace(body=UnreadableBody(frame.body or b"", str(error)))
        if body is command.body:
            return command
        if body is not None and SIGNATURE in command.ext_fields:
            body = TranslatedBody(body, frame.body or b"")
        return command._replace(body=body)

    def _answer(self, command: Command) -> Command:
        code = command.request_code
        body = body_kinds.response_to_wire(code, command.body, self._addresses.host)
        if body is not None and body_kinds.is_text_answer(code):
            body = self._addresses.in_body(body)
        fields = self._addresses.in_header(dict(command.ext_fields.items()))
        if code in _NAMES_MESSAGES and "msgId" in fields:
            fields["msgId"] = self._addresses.message_ids(fields["msgId"])
        return command.with_content(fields, body)

    def _request(self, command: Command) -> Command:
        if not command.is_oneway:
            if len(self._requested) >= REQUESTED_CODES_MAX:
                del self._requested[next(iter(self._requested))]
            self._requested[command.opaque] = int(command.code)
        return command._replace(body=body_kinds.request_to_wire(command.code, command.body, self._addresses.host))


def _fits(command: Command) -> bool:
    numbers = (command.code, command.flag, command.opaque, command.version, command.request_code)
    return all(_INT32_MIN <= number <= _INT32_MAX for number in numbers)


def _lenient(command: Command) -> Command:
    """The command as a node may rely on it: a header from text to text, and no cause.

    Raises:
        FrameError: a number does not fit into 32 bits, or the header is larger than any of RocketMQ's.
    """
    if not _fits(command):
        raise FrameError("not a command: a number is beyond 32 bits")
    if len(command.ext_fields) > HEADER_FIELDS_MAX:
        raise FrameError(f"header of more than {HEADER_FIELDS_MAX} fields")
    texts = {_text(name): _text(value) for name, value in command.ext_fields.items()}
    _require_usual_header(texts)
    return command._replace(ext_fields=texts, body=_readable(command), cause=NO_CAUSE)


def _readable(command: Command) -> bytes | None:
    """The body, which a node may read: of very many values it is unreadable."""
    body = command.body
    code = command.request_code if command.is_response else command.code
    if body is None or not body_kinds.is_of_values(code, is_response=command.is_response) or not has_many_values(body):
        return body
    return UnreadableBody(body, f"a body of {len(body)} bytes with more than {VALUES_MAX} values: no more are read")


def _require_usual_header(fields: Mapping[str, str]) -> None:
    """Refuse a header that is longer than any of RocketMQ's: parts of it are retained, and traced.

    Raises:
        FrameError: it is too long.
    """
    characters = len("".join(fields)) + len("".join(fields.values()))
    if characters > HEADER_CHARS_MAX:
        raise FrameError(f"header of {characters} characters; at most {HEADER_CHARS_MAX} are allowed")


def _text(value: object) -> str:
    """A header value as text, converted as RocketMQ does."""
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
