"""The first row in which two traces differ, found column by column, segment by segment."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from emulator.trace.schema import COUNTS, TraceTable
from emulator.trace.stored import StoredTrace

READING = {"use_threads": False, "pre_buffer": False}
"""No threads of Arrow: a cluster may be running in virtual time in this process."""


@attrs.frozen
class ComparedRow:
    """A row of a trace."""

    table: str
    fields: Mapping[str, Any]

    @property
    def seq(self) -> int:
        """Number of the row in the run."""
        return int(self.fields["seq"])


@attrs.frozen
class RowDifference:
    """The first row in which two traces differ."""

    first: ComparedRow | None
    """The row of the first trace; None: it has ended."""
    second: ComparedRow | None

    @property
    def seq(self) -> int:
        """Number of the row; all rows before it are equal."""
        return min(row.seq for row in (self.first, self.second) if row is not None)

    @property
    def t_ns(self) -> int:
        """The instant of the difference."""
        return min(int(row.fields["t_ns"]) for row in (self.first, self.second) if row is not None)


def first_difference(first: StoredTrace, second: StoredTrace) -> RowDifference | None:
    """The first row, in the order of seq, in which two traces differ; None if they are equal.

    Of traces of different levels only the tables are compared that are whole in both.

    Raises:
        OSError: a segment cannot be read.
    """
    # Up to the first seq that differs every table has the same rows, so one of the tables begins to differ there.
    found = [rows for table in _comparable(first, second) if (rows := _in_table(first, second, table)) is not None]
    if not found:
        return _in_table(first, second, COUNTS) if first.level is second.level else None
    seq = min(rows.seq for rows in found)
    sides = ([rows.first for rows in found], [rows.second for rows in found])
    return RowDifference(*(next((row for row in side if row is not None and row.seq == seq), None) for side in sides))


def _comparable(first: StoredTrace, second: StoredTrace) -> tuple[TraceTable, ...]:
    """The tables whose rows are ordered by the seq of the run."""
    if first.level is second.level:
        return tuple(table for table in first.level.tables if table is not COUNTS)
    return tuple(table for table in first.level.whole if table in second.level.whole)


def _in_table(first: StoredTrace, second: StoredTrace, table: TraceTable) -> RowDifference | None:
    """The first rows of one table that differ."""
    mine, others = _TableSegments(first.tables(table, **READING)), _TableSegments(second.tables(table, **READING))
    while True:
        a, b = mine.here(), others.here()
        length = min(len(a), len(b))
        if not length:
            return RowDifference(_row(table, a, 0), _row(table, b, 0)) if len(a) or len(b) else None
        same = _equal_rows(a.slice(0, length), b.slice(0, length))
        if same < length:
            return RowDifference(_row(table, a, same), _row(table, b, same))
        mine.take(length)
        others.take(length)


def _equal_rows(a: Any, b: Any) -> int:
    """The number of equal rows at the beginning of two Arrow tables of one length."""
    import pyarrow.compute as pc  # noqa: PLC0415 - opening a run must not wait for Arrow

    if a.equals(b):
        return len(a)
    places = (pc.index(pc.not_equal(a[name], b[name]), True).as_py() for name in a.column_names)
    return min(int(place) for place in places if place >= 0)


def _row(table: TraceTable, part: Any, place: int) -> ComparedRow | None:
    return ComparedRow(table.name, part.slice(place, 1).to_pylist()[0]) if place < len(part) else None


class _TableSegments:
    """The parts of a table, one after the other."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts = parts
        self._here: Any = ()

    def here(self) -> Any:
        """The rest of the current part; empty at the end."""
        while not len(self._here):
            following = next(self._parts, None)
            if following is None:
                break
            self._here = following
        return self._here

    def take(self, length: int) -> None:
        """Go on by a number of rows."""
        self._here = self._here.slice(length)
