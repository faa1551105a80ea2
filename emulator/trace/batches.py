"""A batch of rows, in the forms in which it is digested, journalled and stored."""

from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import msgpack

from emulator.trace.schema import ColumnType, Table
from nodes.protocol.java import as_long

Row = tuple[int | str, ...]
Column: TypeAlias = "array[int] | list[str]"


@attrs.frozen
class Batch:
    """Consecutive rows of one table."""

    table: Table
    rows: list[Row]
    columns: tuple[Column, ...]
    """The same values by column; numbers as 64-bit integers."""
    packed: bytes
    """The rows as a msgpack array of arrays."""


def batch_of(table: Table, rows: list[Row]) -> Batch:
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


def unpacked(packed: bytes) -> list[Row]:
    """The rows of `Batch.packed`.

    Raises:
        ValueError: the bytes are not what was packed.
    """
    rows: list[Row] = msgpack.unpackb(packed, use_list=False)
    return list(rows)


def columns_of(table: Table, rows: Sequence[Row]) -> tuple[Column, ...]:
    """The values of rows by column; without rows, empty columns.

    Raises:
        OverflowError: a number has more than 64 bits.
    """
    values: Any = zip(*rows, strict=True) if rows else ((),) * len(table.columns)
    return tuple(
        array("q", column) if of.type is ColumnType.INT else list(column)
        for of, column in zip(table.columns, values, strict=True)
    )


def packed_columns(columns: Sequence[Column]) -> bytes:
    """The rows of columns, as in `Batch.packed`."""
    packed: bytes = msgpack.packb(list(zip(*columns, strict=True)))
    return packed


def _batch(table: Table, rows: list[Row]) -> Batch:
    columns = columns_of(table, rows)
    for column in columns:
        if not isinstance(column, array):
            "".join(column)  # raises TypeError for what is no text: the journal must never hold what no segment can
    return Batch(table, rows, columns, msgpack.packb(rows))


def _storable(value: int | str) -> int | str:
    return as_long(value) if isinstance(value, int) else value.encode(errors="replace").decode()
