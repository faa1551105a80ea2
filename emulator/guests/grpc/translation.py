"""Messages of `apache.rocketmq.v2` as values, and back, by their definitions.

A value has the name of its message, and its fields have the names of the message's. A duration or an instant is a
number of milliseconds, and its field ends in `_ms`. A field that may be None is None where the message has none; else
an absent message is an empty one.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

import attrs
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from emulator.guests.grpc.messages import message_class
from emulator.guests.grpc.request_cost import require_few_values
from emulator.guests.grpc.status import GrpcError, GrpcStatus
from nodes.protocol.v2.definition import Message as ReceivedMessage
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.service import ReceiveMessageResponse
from nodes.protocol.widths import without_none
from nodes.values import frozen

_MS: Final = "_ms"
_NANOS_PER_MS: Final = 1_000_000
_NANOS_MAX: Final = 999_999_999
_DURATION: Final = "google.protobuf.Duration"
_SECONDS = {
    _DURATION: (-315_576_000_000, 315_576_000_000),
    "google.protobuf.Timestamp": (-62_135_596_800, 253_402_300_799),
}
"""Mapping kind of time -> the smallest and the largest number of seconds."""
_Read = Callable[[Any], Any]
"""Makes a value of what a field of a message holds."""
_Write = Callable[[Any, Any], None]
"""Called with a message and a value: writes the value into a field of the message."""


class IllegalTimeError(Exception):
    """A message has a duration or an instant that Java's `Durations` or `Timestamps` refuse."""


@frozen
class _FieldTranslation:
    name: str
    wire_name: str
    has_presence: bool
    """Whether the value is None where the message has no such field."""
    read: _Read
    write: _Write


class Translation:
    """Messages of one class as values, and back.

    Args:
        kind: the class of the values.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self.message = message_class(kind.__name__)
        hints = get_type_hints(kind)
        fields = self.message.DESCRIPTOR.fields_by_name
        self._fields = tuple(_translated(field.name, hints[field.name], fields) for field in attrs.fields(kind))

    def to_value(self, message: Message) -> Any:
        """The value of a message; fields that values of this class lack are left out.

        Raises:
            IllegalTimeError: a duration or an instant is not valid.
        """
        return self._kind(
            *(
                None if field.has_presence and not message.HasField(field.wire_name) else field.read(message)
                for field in self._fields
            )
        )

    def to_message(self, value: Any) -> Message:
        """The message of a value."""
        message = self.message()
        self.write(message, value)
        return message

    def write(self, message: Any, value: Any) -> None:
        """Write a value into an empty message, which is there from then on."""
        message.SetInParent()
        for field in self._fields:
            content = getattr(value, field.name)
            if content or (field.has_presence and content is not None):  # else it is what an absent field stands for
                field.write(message, content)

    def from_bytes(self, content: bytes) -> Any:
        """Read a value.

        Raises:
            GrpcError: the bytes are no such message; the status is that of grpc-java.
            IllegalTimeError: a duration or an instant is not valid.
            TooManyValuesError: reading it would take too long.
        """
        require_few_values(self.message, content)
        try:
            message = self.message.FromString(content)
        except DecodeError:
            raise GrpcError(GrpcStatus.UNKNOWN) from None
        return self.to_value(message)

    def to_bytes(self, value: Any) -> bytes:
        """Write a value."""
        return self.to_message(value).SerializeToString()


@cache
def translation(kind: type) -> Translation:
    """The translation of values of a class, which has the name of their message.

    Raises:
        KeyError: there is no such message, or it has no field of that name.
    """
    return Translation(kind)


def receive_message_parts(value: ReceiveMessageResponse) -> Iterator[bytes]:
    """The messages of an answer to ReceiveMessage, in the order in which a proxy writes them.

    The status comes first, then what was received, then when all was written.

    Mirrors:
        `ReceiveMessageResponseStreamWriter`.
    """
    status, message = translation(Status), translation(ReceivedMessage)
    yield _received_part(lambda part: status.write(part.status, value.status))
    for item in value.messages:
        yield _received_part(lambda part, item=item: message.write(part.message, item))  # type: ignore[misc]
    delivery_timestamp_ms = value.delivery_timestamp_ms
    if delivery_timestamp_ms is not None:
        yield _received_part(lambda part: _write_milliseconds(part.delivery_timestamp, delivery_timestamp_ms))


def _received_part(write: Callable[[Any], None]) -> bytes:
    part = message_class("ReceiveMessageResponse")()
    write(part)
    return part.SerializeToString()


def _translated(name: str, hint: Any, fields: Any) -> _FieldTranslation:
    field = fields[name] if name in fields else fields[name.removesuffix(_MS)]
    inner = without_none(hint)
    has_presence = inner is not hint and field.has_presence
    if get_origin(inner) is Mapping:
        return _FieldTranslation(name, field.name, has_presence, *_texts(field.name))
    if get_origin(inner) is tuple:
        return _FieldTranslation(name, field.name, has_presence, *_repeated(field, get_args(inner)[0]))
    return _FieldTranslation(name, field.name, has_presence, *_single(field, inner))


def _texts(name: str) -> tuple[_Read, _Write]:
    def write(message: Any, texts: Mapping[str, str]) -> None:
        getattr(message, name).update({_writable(key): _writable(text) for key, text in texts.items()})

    return lambda message: dict(getattr(message, name)), write


def _single(field: FieldDescriptor, kind: Any) -> tuple[_Read, _Write]:
    name = field.name
    item = _item(field, kind)

    def read(message: Any) -> Any:
        return item.read(getattr(message, name))

    if field.message_type is not None:

        def write(message: Any, value: Any) -> None:
            item.write(getattr(message, name), value)
    else:

        def write(message: Any, value: Any) -> None:
            setattr(message, name, item.plain(value))

    return read, write


def _repeated(field: FieldDescriptor, kind: Any) -> tuple[_Read, _Write]:
    name = field.name
    item = _item(field, kind)

    def read(message: Any) -> Any:
        return tuple(map(item.read, getattr(message, name)))

    if field.message_type is not None:

        def write(message: Any, values: Any) -> None:
            add = getattr(message, name).add
            for value in values:
                item.write(add(), value)
    else:

        def write(message: Any, values: Any) -> None:
            getattr(message, name).extend(map(item.plain, values))

    return read, write


@frozen
class _Item:
    """One value of a field, alone or among others."""

    read: _Read
    write: _Write = lambda _message, _value: None
    """Of a message."""
    plain: Callable[[Any], Any] = lambda value: value
    """Of what is no message: the value as a message takes it."""


def _item(field: FieldDescriptor, kind: Any) -> _Item:
    if field.message_type is None:
        return _plain_item(kind)
    if field.message_type.full_name in _SECONDS:
        return _Item(_milliseconds, _write_milliseconds)
    inner = translation(kind)
    return _Item(inner.to_value, inner.write)


def _plain_item(kind: Any) -> _Item:
    if get_origin(kind) is None and isinstance(kind, type) and issubclass(kind, IntEnum):
        members = {int(member): member for member in kind}
        unspecified = members[0]
        # Java has `UNRECOGNIZED` for another number, which RocketMQ treats as it does the unspecified one.
        return _Item(lambda number: members.get(number, unspecified), plain=int)
    return _Item(lambda value: value, plain=_writable if kind is str else kind)


def _writable(text: str) -> str:
    """A text without lone surrogates, which Java replaces, too."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _milliseconds(time: Any) -> int:
    """Mirrors: `Durations.toMillis`, `Timestamps.toMillis` of `protobuf-java-util`."""
    kind, seconds, nanos = time.DESCRIPTOR, time.seconds, time.nanos
    first, last = _SECONDS[kind.full_name]
    nanos_min = (0 if seconds > 0 else -_NANOS_MAX) if kind.full_name == _DURATION else 0
    nanos_max = 0 if kind.full_name == _DURATION and seconds < 0 else _NANOS_MAX
    if not (first <= seconds <= last and nanos_min <= nanos <= nanos_max):
        raise IllegalTimeError(f"{kind.name} is not valid: seconds {seconds}, nanos {nanos}")
    return int(seconds * 1_000) + int(nanos / _NANOS_PER_MS)


def _write_milliseconds(time: Any, milliseconds: int) -> None:
    time.SetInParent()
    sign = -1 if milliseconds < 0 and time.DESCRIPTOR.full_name == _DURATION else 1
    seconds, rest_ms = divmod(sign * milliseconds, 1_000)
    time.seconds, time.nanos = sign * seconds, sign * rest_ms * _NANOS_PER_MS
