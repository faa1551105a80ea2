"""How many values the bytes of a request make, counted before anything is made of them.

Two bytes of a request, an empty entry of a list, may become a value with thirty fields. The count walks over the wire
form, from one field to the next, and stops at its limit.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import attrs
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

VALUES_MAX: Final = 100_000
"""Most fields, entries and parts of a request; a message of a batch counts as about fifty, and takes 30 us."""
_FIELD_BYTES_MIN = 2
_MORE = 0x80
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_ALONE = (FieldDescriptor.CPPTYPE_MESSAGE, FieldDescriptor.CPPTYPE_STRING)
_FIXED_BYTES = {_FIXED_64: 8, _FIXED_32: 4}


class TooManyValuesError(Exception):
    """A request has more values than are read."""

    def __init__(self, length: int, values_max: int) -> None:
        super().__init__(f"a request of {length} bytes with more than {values_max} values: no more are read")


@attrs.frozen(eq=False)
class _Shape:
    """What a message consists of."""

    weight: int
    """Values that an empty message of the kind makes."""
    parts: Mapping[int, "_Shape"]
    """Mapping number of a field -> the shape of its messages."""
    lists: Mapping[int, None]
    """Numbers of the fields with several messages."""
    packed: Mapping[int, None]
    """Numbers of the fields that may hold several numbers in one piece."""

    @property
    def weight_max(self) -> int:
        """The most that a message inside has."""
        return max((self.weight, *(part.weight_max for part in self.parts.values())))


def require_few_values(kind: type[Message], content: bytes, values_max: int = VALUES_MAX) -> None:
    """Require that reading a message makes few values.

    Bytes that are no message may pass: who reads them refuses them.

    Args:
        kind: class of the message.

    Raises:
        TooManyValuesError: it makes more.
    """
    definition: Any = kind.DESCRIPTOR
    if len(content) > _few_bytes(definition, values_max) and _exceeds(_shape(definition), content, values_max):
        raise TooManyValuesError(len(content), values_max)


@cache
def _few_bytes(definition: Descriptor, values_max: int) -> int:
    """A message of so many bytes makes few values, whatever it holds."""
    return values_max * _FIELD_BYTES_MIN // (_shape(definition).weight_max + 1)


@cache
def _shape(definition: Descriptor) -> _Shape:
    parts = {field.number: _shape(field.message_type) for field in definition.fields if field.message_type is not None}
    lists = {number: None for number in parts if not definition.fields_by_number[number].has_presence}
    alone = sum(part.weight for number, part in parts.items() if number not in lists)
    packed = {field.number: None for field in definition.fields if field.cpp_type not in _ALONE}
    return _Shape(1 + len(definition.fields) + alone, parts, lists, packed)


def _exceeds(whole: _Shape, content: bytes, values_max: int) -> bool:
    values = 0
    left = [(whole, 0, len(content))]
    try:
        while left:
            shape, at, end = left.pop()
            while at < end:
                key, at = _varint(content, at)
                wire_type = key & 7
                values += 1
                if wire_type == _BYTES:
                    length, at = _varint(content, at)
                    if length > end - at:
                        return False
                    number = key >> 3
                    if number in shape.parts:
                        part = shape.parts[number]
                        values += part.weight if number in shape.lists else 0
                        left.append((part, at, at + length))
                    elif number in shape.packed:
                        values += length
                    at += length
                elif wire_type == _VARINT:
                    _, at = _varint(content, at)
                else:
                    at += _FIXED_BYTES.get(wire_type, 0)  # the ends of groups, which no message has, hold nothing
                if values > values_max:
                    return True
    except IndexError:  # it ends inside a field
        pass
    return False


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next field begins."""
    byte = content[at]
    if byte < _MORE:
        return byte, at + 1
    number, shift = 0, 0
    while byte >= _MORE:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        byte = content[at]
    return number | byte << shift, at + 1
