"""The commit log of a broker: its messages as records in files, and where each of them begins.

A record is an array in msgpack. What messages have in common is written once: the first message of a
shape carries topic, hosts, names of properties and those values that repeat, and later ones carry the number of the
shape. So a file can be read from its beginning alone, and a message of an emulated producer takes about 35 bytes.

Mirrors:
    `org.apache.rocketmq.store.CommitLog`, its `MappedFileQueue` and `MappedFile`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from nodes.broker.tables.store.index_file import IndexFile
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
from nodes.values import frozen

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
_NEWEST_MAX = 64
"""Messages that need not be made again."""
_LOADED_BYTES = 1 << 16
"""Size of the pieces in which a file is read."""
_pack = msgpack.Packer().pack
_unpack = msgpack.unpackb

_ShapeKey = tuple[str | int, ...]
"""Topic, born host, store host; then name and value of each property, or instead of the value its place among those
that this message does not share with others."""

COMMIT_LOG_FILE = "commitlog"


class QueueBegin(NamedTuple):
    """Where a queue begins, after messages were deleted."""

    topic: str
    queue_id: int
    min_offset: int
    """Offset of its first message."""


class QueueEnd(NamedTuple):
    """What a queue is when a file is begun."""

    topic: str
    queue_id: int
    max_offset: int
    """Offset of its next message."""


def size_bytes(message: Message) -> int:
    """Size of a message in the log, as offsets count it."""
    properties = message.properties
    return FRAME_BYTES + len(message.body) + (properties_length(properties) if properties else 0)


@frozen
class _RecordShape:
    topic: str
    born_host: str
    store_host: str
    values: Mapping[str, str | int]
    has_own: bool

    def properties(self, own: list[str | bytes]) -> Mapping[str, str]:
        if not self.has_own:
            return self.values  # type: ignore[return-value]
        texts = [_unpacked_id(value) if value.__class__ is bytes else value for value in own]
        return {name: texts[value] if value.__class__ is int else value for name, value in self.values.items()}  # type: ignore[misc]


class MappedFile:
    """One file of the log; it can be read without the others.

    The first file begins with its first record. A later one begins with an array of topic, queue id and next offset of
    every queue: what the queues were when it was begun, for a process that finds the files before it deleted.

    Args:
        base: commit log offset of its first message.
        first_row: row of that message.
        records: content of the file.
    """

    def __init__(self, base: int, first_row: int, records: bytearray) -> None:
        self.base = base
        self.first_row = first_row
        self.index = IndexFile()
        """Its messages by key."""
        self._records = records
        self._ends = array("q", (len(records),))
        """Where the record of each row begins in the file, and where the last one ends."""
        self.offsets = array("q")
        """Commit log offset of each row, ascending."""
        self.is_deleted = bytearray()
        """1 for each row that was deleted."""
        self._shapes: list[_RecordShape] = []
        self._numbers: dict[_ShapeKey, int] = {}

    @property
    def next_row(self) -> int:
        """The row behind its last one."""
        return self.first_row + len(self.offsets)

    def load(self) -> list[QueueEnd]:
        """Find the records of an earlier process; returns what the queues were when the file was begun."""
        unpacker, begun = msgpack.Unpacker(), None if self.base else ()
        queues: list[QueueEnd] = []
        self._ends[0] = 0
        for at in range(0, len(self._records), _LOADED_BYTES):
            unpacker.feed(self._records[at : at + _LOADED_BYTES])
            for record in unpacker:
                if begun is None:
                    queues = [QueueEnd(*end) for end in record]
                    begun = self._ends[0] = unpacker.tell()
                    continue
                if record[0].__class__ is list:
                    self._learn(tuple(record[0]))
                self._add_row(unpacker.tell(), record[_COMMIT_LOG_OFFSET])
        return queues

    def append(self, message: Message) -> int:
        """Append a message; returns its row."""
        topic, queue_id, queue_offset, offset, born, stored, body, properties = message[:8]
        times, sys_flag, flag, born_host, store_host = message[8:]
        shape: list[str | int] = [topic, born_host, store_host]
        own: dict[str, int] = {}
        for name, value in properties.items():
            shape += name, value if name in _REPEATED else own.setdefault(value, len(own))
        key = tuple(shape)
        number = self._numbers.get(key)
        self._records += _pack(
            (
                key if number is None else number,
                queue_id,
                queue_offset,
                offset,
                born,
                stored - born,
                body,
                times,
                sys_flag,
                flag,
                *[_packed_id(value) if len(value) == _ID_DIGITS else value for value in own],
            )
        )
        if number is None:
            self._learn(key)
        row = self.first_row + len(self.offsets)
        self._add_row(len(self._records), offset)
        return row

    def message(self, row: int) -> Message:
        """The message of a row."""
        ends, place = self._ends, row - self.first_row
        shape, queue_id, queue_offset, offset, born, age_ms, body, times, sys_flag, flag, *own = _unpack(
            self._records[ends[place] : ends[place + 1]]
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

    def _add_row(self, end: int, offset: int) -> None:
        self._ends.append(end)
        self.offsets.append(offset)
        self.is_deleted.append(0)

    def _learn(self, shape: _ShapeKey) -> None:
        if len(self._shapes) < SHAPES_MAX:
            self._numbers[shape] = len(self._shapes)
            self._shapes.append(_to_shape(shape))


class CommitLog:
    """The messages of one broker in the order of their offsets; each has a row, counted from 0.

    Args:
        contents: mapping commit log offset of the first message -> content of the file; this log alone changes it.
        file_bytes: how far the offsets of one file go.
    """

    def __init__(self, contents: dict[int, bytearray], file_bytes: int) -> None:
        self._contents = contents
        self._file_bytes = file_bytes
        self.files: list[MappedFile] = []
        """The files that are there, the oldest first; the last one grows."""
        self._first_rows: list[int] = []
        self._bases: list[int] = []
        self._next_base = 0
        """From this offset on a message begins a file."""
        self._newest: dict[int, Message] = {}
        """Row -> message of the last appends: who waits for a message reads it at once, the timer soon after."""

    def load(self) -> list[QueueEnd]:
        """Find the files of an earlier process; returns what the queues were when the oldest one was begun."""
        queues: list[QueueEnd] = []
        for base in sorted(self._contents):
            found = self._add_file(base, self._contents[base]).load()
            queues = queues if len(self.files) > 1 else found
        return queues

    @property
    def min_offset(self) -> int:
        """Where the oldest file begins, a multiple of the bytes of a file; 0 where there is none."""
        return self.files[0].base // self._file_bytes * self._file_bytes if self.files else 0

    def rows(self) -> Iterator[int]:
        """All rows that are there."""
        return iter(range(self.files[0].first_row, self.files[-1].next_row) if self.files else ())

    @property
    def next_row(self) -> int:
        """The row behind the last one."""
        return self.files[-1].next_row if self.files else 0

    def count_between(self, begin_ms: int, end_ms: int) -> int:
        """How many messages were stored from an instant on and before another one, by the clock of the broker."""
        rows = range(self.files[0].first_row if self.files else 0, self.next_row)
        begin, end = (bisect_left(rows, instant_ms, key=self.store_timestamp) for instant_ms in (begin_ms, end_ms))
        return end - begin

    def append(self, message: Message, queues: Callable[[], Sequence[QueueEnd]]) -> int:
        """Append a message, whose offset is none before the end of the log; returns its row.

        Args:
            message: with its offsets.
            queues: says what the queues are, where the message begins a file.
        """
        if message.commit_log_offset >= self._next_base or not self.files:
            self._begin_file(message.commit_log_offset, queues)
        row = self.files[-1].append(message)
        self._newest[row] = message
        self._newest.pop(row - _NEWEST_MAX, None)
        return row

    def message(self, row: int) -> Message:
        """The message of a row, deleted or not."""
        newest = self._newest.get(row)
        return self.file_of(row).message(row) if newest is None else newest

    def file_of(self, row: int) -> MappedFile:
        """The file with a row."""
        last = self.files[-1]
        return last if row >= last.first_row else self.files[bisect_right(self._first_rows, row) - 1]

    def store_timestamp(self, row: int) -> int:
        """When the message of a row was stored, wall clock in ms."""
        return self.message(row).store_timestamp

    def row_at(self, offset: int) -> int | None:
        """The row of the message that begins at a commit log offset; None: there is none, or it is deleted."""
        file = self.files[max(0, self._place_of(offset))] if self.files else None
        if file is None:
            return None
        place = bisect_left(file.offsets, offset)
        if place == len(file.offsets) or file.offsets[place] != offset or file.is_deleted[place]:
            return None
        return file.first_row + place

    def rows_from(self, offset: int) -> Iterator[int]:
        """The rows that begin at a commit log offset or behind it and are not deleted."""
        for file in self.files[max(0, self._place_of(offset)) :]:
            place = bisect_left(file.offsets, offset)
            while (place := file.is_deleted.find(0, place)) >= 0:
                yield file.first_row + place
                place += 1

    def delete(self, row: int) -> None:
        """Delete a message; an earlier process's file would still have it."""
        file = self.file_of(row)
        file.is_deleted[row - file.first_row] = 1

    def delete_oldest_file(self) -> int:
        """Delete the oldest file, which must not be the last one; returns the first row that is left."""
        file = self.files.pop(0)
        del self._first_rows[0], self._bases[0]
        del self._contents[file.base]
        return self._first_rows[0]

    def _place_of(self, offset: int) -> int:
        """Place of the file in which a message with an offset would be; -1: before all of them."""
        return bisect_right(self._bases, offset) - 1

    def _begin_file(self, base: int, queues: Callable[[], Sequence[QueueEnd]]) -> None:
        records = self._contents[base] = bytearray(_pack(queues()) if base else b"")
        self._add_file(base, records)

    def _add_file(self, base: int, records: bytearray) -> MappedFile:
        file = MappedFile(base, self.files[-1].next_row if self.files else 0, records)
        self.files.append(file)
        self._first_rows.append(file.first_row)
        self._bases.append(base)
        self._next_base = (base // self._file_bytes + 1) * self._file_bytes
        return file


def _to_shape(key: tuple[Any, ...]) -> _RecordShape:
    topic, born_host, store_host, *pairs = key
    names, values = pairs[::2], pairs[1::2]
    has_own = any(value.__class__ is int for value in values)
    return _RecordShape(topic, born_host, store_host, dict(zip(names, values, strict=True)) or NO_TEXTS, has_own)


def _packed_id(value: str) -> str | bytes:
    """A value as long as an id, as it is written: an id as the bytes that its digits stand for."""
    try:
        packed = bytes.fromhex(value)
    except ValueError:
        return value
    return packed if _unpacked_id(packed) == value else value


def _unpacked_id(packed: bytes) -> str:
    return packed.hex().upper()
