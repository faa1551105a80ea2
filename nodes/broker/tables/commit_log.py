"""The commit log of a broker: its messages as records in one file, and where each of them begins.

A record is an array in msgpack. What messages have in common is written once: the first message of a
shape carries topic, hosts, names of properties and those values that repeat, and later ones carry the number of the
shape. So the file can be read from its beginning alone, and a message of an emulated producer takes about 35 bytes.

Mirrors:
    `org.apache.rocketmq.store.CommitLog`, its `MappedFile`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import msgpack

from nodes.protocol.model import NO_TEXTS, Message
from nodes.protocol.properties import (
    CLUSTER,
    DELAY_TIME_LEVEL,
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    RETRY_TOPIC,
    TAGS,
    TRANSACTION_PREPARED,
    WAIT_STORE_MSG_OK,
    properties_length,
)

FRAME_BYTES = 100
"""Size of a stored message besides body and properties, so that commit log offsets differ."""
SHAPES_MAX = 4_096
"""Shapes with a number; messages of further ones carry their shape each."""

_REPEATED = frozenset(
    (
        CLUSTER,
        DELAY_TIME_LEVEL,
        PRODUCER_GROUP,
        REAL_QUEUE_ID,
        REAL_TOPIC,
        RETRY_TOPIC,
        TAGS,
        TRANSACTION_PREPARED,
        WAIT_STORE_MSG_OK,
    )
)
"""Properties whose values many messages share."""
_ID_DIGITS = 32
"""Hexadecimal digits of the ids that clients and brokers give to messages."""
_COMMIT_LOG_OFFSET = 3
"""Place of the offset in a record."""
_LOADED_BYTES = 1 << 16
"""Size of the pieces in which a file is read."""
_pack = msgpack.Packer().pack
_unpack = msgpack.unpackb

_ShapeKey = tuple[str | int, ...]
"""Topic, born host, store host; then name and value of each property, or instead of the value its place among those
that this message does not share with others."""


def size_bytes(message: Message) -> int:
    """Size of a message in the log, as offsets count it."""
    return FRAME_BYTES + len(message.body) + properties_length(message.properties)


@attrs.frozen
class _Shape:
    topic: str
    born_host: str
    store_host: str
    values: Mapping[str, str | int]
    has_own: bool

    def properties(self, own: list[str | bytes]) -> Mapping[str, str]:
        if not self.has_own:
            return self.values  # type: ignore[return-value]
        texts = list(map(_unpacked_value, own))
        return {name: texts[value] if value.__class__ is int else value for name, value in self.values.items()}  # type: ignore[misc]


class CommitLog:
    """The messages of one broker in the order of their offsets; each has a row, counted from 0.

    Args:
        records: content of the file, to which this log alone appends.
    """

    def __init__(self, records: bytearray) -> None:
        self._records = records
        self._ends = array("q", (0,))
        """Where the record of each row begins in the file, and where the last one ends."""
        self._offsets = array("q")
        """Commit log offset of each row, ascending."""
        self._is_deleted = bytearray()
        """1 for each row that was deleted."""
        self._newest: tuple[int, Message] | None = None
        """Row and message of the last append: who waits for a message reads it at once."""
        self._shapes: list[_Shape] = []
        self._numbers: dict[_ShapeKey, int] = {}

    def load(self) -> Iterator[int]:
        """Find the records of an earlier process; returns their rows."""
        unpacker = msgpack.Unpacker()
        for at in range(0, len(self._records), _LOADED_BYTES):
            unpacker.feed(self._records[at : at + _LOADED_BYTES])
            for record in unpacker:
                if record[0].__class__ is list:
                    self._learn(tuple(record[0]))
                yield self._add_row(unpacker.tell(), record[_COMMIT_LOG_OFFSET])

    def append(self, message: Message) -> int:
        """Append a message, whose offset is none before the end of the log; returns its row."""
        own: dict[str, int] = {}
        shape = _shape_key(message, own)
        number = self._numbers.get(shape)
        self._records += _pack(
            (
                shape if number is None else number,
                message.queue_id,
                message.queue_offset,
                message.commit_log_offset,
                message.born_timestamp,
                message.store_timestamp - message.born_timestamp,
                message.body,
                message.reconsume_times,
                message.sys_flag,
                message.flag,
                *map(_packed_value, own),
            )
        )
        if number is None:
            self._learn(shape)
        row = self._add_row(len(self._records), message.commit_log_offset)
        self._newest = row, message
        return row

    def message(self, row: int) -> Message:
        """The message of a row, deleted or not."""
        if self._newest is not None and self._newest[0] == row:
            return self._newest[1]
        ends = self._ends
        shape, queue_id, queue_offset, offset, born, age_ms, body, times, sys_flag, flag, *own = _unpack(
            self._records[ends[row] : ends[row + 1]]
        )
        known = self._shapes[shape] if shape.__class__ is int else _to_shape(tuple(shape))
        return Message(
            known.topic,
            queue_id,
            queue_offset,
            offset,
            born,
            born + age_ms,
            body,
            known.properties(own),
            times,
            sys_flag,
            flag,
            known.born_host,
            known.store_host,
        )

    def store_timestamp(self, row: int) -> int:
        """When the message of a row was stored, wall clock in ms."""
        return self.message(row).store_timestamp

    def row_at(self, offset: int) -> int | None:
        """The row of the message that begins at a commit log offset; None: there is none, or it is deleted."""
        row = bisect_left(self._offsets, offset)
        if row == len(self._offsets) or self._offsets[row] != offset or self._is_deleted[row]:
            return None
        return row

    def rows_from(self, offset: int) -> Iterator[int]:
        """The rows that begin at a commit log offset or behind it and are not deleted."""
        row = bisect_left(self._offsets, offset)
        while (row := self._is_deleted.find(0, row)) >= 0:
            yield row
            row += 1

    def delete(self, row: int) -> None:
        """Delete a message; an earlier process's file would still have it."""
        self._is_deleted[row] = 1

    def _add_row(self, end: int, offset: int) -> int:
        self._ends.append(end)
        self._offsets.append(offset)
        self._is_deleted.append(0)
        return len(self._offsets) - 1

    def _learn(self, shape: _ShapeKey) -> None:
        if len(self._shapes) < SHAPES_MAX:
            self._numbers[shape] = len(self._shapes)
            self._shapes.append(_to_shape(shape))


def _shape_key(message: Message, own: dict[str, int]) -> _ShapeKey:
    """The shape of a message; fills `own` with the values that are not part of it, and their places."""
    parts: list[str | int] = [message.topic, message.born_host, message.store_host]
    for name, value in message.properties.items():
        parts += name, value if name in _REPEATED else own.setdefault(value, len(own))
    return tuple(parts)


def _to_shape(key: tuple[Any, ...]) -> _Shape:
    topic, born_host, store_host, *pairs = key
    names, values = pairs[::2], pairs[1::2]
    has_own = any(value.__class__ is int for value in values)
    return _Shape(topic, born_host, store_host, dict(zip(names, values, strict=True)) or NO_TEXTS, has_own)


def _packed_value(value: str) -> str | bytes:
    """A value as it is written: an id as the bytes that its digits stand for."""
    if len(value) != _ID_DIGITS:
        return value
    try:
        packed = bytes.fromhex(value)
    except ValueError:
        return value
    return packed if _unpacked_value(packed) == value else value


def _unpacked_value(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.hex().upper()
