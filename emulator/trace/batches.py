"""A batch of rows, in the forms in which it is digested, journalled and stored."""

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs
import msgpack

from emulator.trace.schema import BELIEFS, ColumnType, TraceTable
from nodes.protocol.java import as_long

Row = tuple[int | str, ...]
Column: TypeAlias = "array[int] | list[str]"
_VALUE = BELIEFS.index("value")


class Packed(NamedTuple):
    """Consecutive rows of one table in bytes."""

    rows: bytes
    """The rows as a msgpack array of arrays; those of beliefs have no value, for which its hash stands."""
    values: bytes
    """Of beliefs: a msgpack array of the different values, and the numbers of those of the rows; else empty. Many nodes
    believe the same, and a list of members is long."""


@attrs.frozen
class RowBatch:
    """Consecutive rows of one table."""

    table: TraceTable
    rows: list[Row]
    columns: tuple[Column, ...]
    """The same values by column; numbers as 64-bit integers."""
    packed: Packed


def batch_of(table: TraceTable, rows: list[Row]) -> RowBatch:
    """Make a batch of rows.

    A row that cannot be stored is repaired, as a last line of defence: what a
    guest or a node has recorded must not end the run. Numbers are wrapped to 64
    bits as Java's `long`, and text that is no Unicode has `?` in its place.

    Args:
        table: of the rows.
        rows: one or more; repaired in place.

    Raises:
        TypeError: a value is neither a number nor a text, or not what its column takes.
    """
    try:
        return _batch(table, rows)
    except (OverflowError, UnicodeEncodeError):
        rows[:] = [tuple(_storable(value) for value in row) for row in rows]
        return _batch(table, rows)


def unpacked(packed: Packed) -> list[Row]:
    """The rows that were packed.

    Raises:
        ValueError: the bytes are not what was packed.
    """
    rows: list[Row] = list(msgpack.unpackb(packed.rows, use_list=False))
    if packed.values:
        values, numbers = msgpack.unpackb(packed.values)
        return [(*row[:_VALUE], values[number], *row[_VALUE:]) for row, number in zip(rows, numbers, strict=True)]
    return rows


def columns_of(table: TraceTable, rows: Sequence[Row]) -> tuple[Column, ...]:
    """The values of rows by column; without rows, empty columns.

    Raises:
        OverflowError: a number has more than 64 bits.
    """
    values: Any = zip(*rows, strict=True) if rows else ((),) * len(table.columns)
    return tuple(
        array("q", column) if of.type is ColumnType.INT else list(column)
        for of, column in zip(table.columns, values, strict=True)
    )


def packed_columns(table: TraceTable, columns: Sequence[Column]) -> Packed:
    """The rows of columns in bytes."""
    if table is not BELIEFS:
        return Packed(msgpack.packb(list(zip(*columns, strict=True))), b"")
    values, numbers = numbered(columns[_VALUE])  # type: ignore[arg-type]
    rows = list(zip(*columns[:_VALUE], *columns[_VALUE + 1 :], strict=True))
    return Packed(msgpack.packb(rows), msgpack.packb((values, numbers.tolist())))


class _Numbers(dict[str, int]):
    """Texts, numbered in the order in which they are asked for first."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def numbered(texts: Sequence[str]) -> "tuple[list[str], array[int]]":
    """The different texts in the order of their first place, and the number of each text as a 32-bit integer."""
    numbers = _Numbers()
    of_each = array("i", map(numbers.__getitem__, texts))
    return list(numbers), of_each


def _batch(table: TraceTable, rows: list[Row]) -> RowBatch:
    columns = columns_of(table, rows)
    for column in columns:
        if not isinstance(column, array):
            "".join(column)  # raises TypeError for what is no text: the journal must never hold what no segment can
    # Only beliefs are packed from columns, which takes longer.
    packed = packed_columns(table, columns) if table is BELIEFS else Packed(msgpack.packb(rows), b"")
    return RowBatch(table, rows, columns, packed)


def _storable(value: int | str) -> int | str:
    return as_long(value) if isinstance(value, int) else value.encode(errors="replace").decode()
