"""Rows of a trace, looked up by seq and by value; only matching rows are converted to Python.

Reading uses no threads of Arrow, since a cluster may be running in virtual time in this process.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.base.errors import UserError
from emulator.trace.schema import BELIEFS, CAUSES, FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP, RPC, ColumnType, TraceTable
from emulator.trace.stored import StoredTrace, integers, stored_trace
from nodes.units import NS_PER_S

_LIKELY_FIRST = (RPC, CAUSES, BELIEFS, OWNERSHIP, LIFECYCLE, FAULTS, MESSAGES)
"""Order in which tables are searched for a seq; messages cause nothing, so they are read last."""
_COLUMN_TYPES = {ColumnType.INT: pa.int64(), ColumnType.TEXT: pa.string()}


class UnreadableTraceError(UserError):
    """The files of a trace cannot be read; the text says in one line which, and why."""


@attrs.frozen
class TraceRow:
    """One row of one table."""

    table: TraceTable
    fields: dict[str, Any]

    @property
    def seq(self) -> int:
        """Number of the row in the run."""
        return int(self.fields["seq"])

    @property
    def t_ns(self) -> int:
        """Instant of the row, in ns since the run began."""
        return int(self.fields["t_ns"])

    @property
    def cause(self) -> int:
        """Seq of the row that caused it; 0: none."""
        return int(self.fields.get("cause", 0))

    def text(self, column: str) -> str:
        """The value of a text column."""
        return str(self.fields[column])

    def number(self, column: str) -> int:
        """The value of an integer column."""
        return int(self.fields[column])


class TraceRows:
    """The trace of a run, finished or under way; a table is read when it is first needed.

    Args:
        run: the run directory.

    Raises:
        UnreadableTraceError: the trace cannot be read.
    """

    def __init__(self, run: Path) -> None:
        try:
            self._trace: StoredTrace = stored_trace(run)
        except OSError as error:
            raise UnreadableTraceError(f"{run} has no readable trace: {error.strerror}") from None
        self.level = self._trace.level
        """Which rows the trace has."""
        self.head: Mapping[str, Any] = self._trace.head
        """What was run, as the index says: `scenario` and others."""
        self._tables: dict[str, Any] = {}
        self._seqs: dict[str, Sequence[int]] = {}

    def row(self, seq: int) -> TraceRow | None:
        """The row with a seq; None if the trace does not have it.

        Raises:
            UnreadableTraceError: a segment is not readable; all methods may raise it.
        """
        for table in _LIKELY_FIRST:
            seqs = self._seqs_of(table)
            place = bisect_left(seqs, seq)
            if place < len(seqs) and seqs[place] == seq:
                return next(_rows(table, self._read(table).slice(place, 1)))
        return None

    def select(
        self,
        table: TraceTable,
        /,
        *,
        until_seq: int | None = None,
        after_ns: int = -1,
        until_ns: int | None = None,
        **wanted: str | int | Sequence[str] | Sequence[int],
    ) -> list[TraceRow]:
        """The rows with these values, in order.

        Args:
            table: to search.
            until_seq: highest seq; None: any.
            after_ns: only rows after this instant.
            until_ns: latest instant; None: any.
            wanted: column = value, or a sequence of values.
        """
        return list(_rows(table, _filtered(self._between(table, until_seq, after_ns, until_ns), wanted)))

    def tuples(
        self,
        table: TraceTable,
        columns: Sequence[str],
        /,
        *,
        until_ns: int | None = None,
        **wanted: str | int | Sequence[str] | Sequence[int],
    ) -> Iterator[tuple[Any, ...]]:
        """Some columns of the rows that `select` finds, in order: for many rows, of which little is needed."""
        found = _filtered(self._between(table, None, -1, until_ns), wanted).select(list(columns))
        for batch in found.to_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def per_second(self, table: TraceTable, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """How many rows have the same values in each second: (second, *values, rows), in no particular order."""
        found = self._read(table)
        seconds = pc.divide(found["t_ns"], NS_PER_S)
        keys = ["second", *columns]
        same = found.select(list(columns)).append_column("second", seconds).group_by(keys, use_threads=False)
        counted = same.aggregate([("second", "count")]).select([*keys, "second_count"])
        yield from zip(*(column.to_pylist() for column in counted.columns), strict=True)

    def newest(self, table: TraceTable, /, **given: Any) -> TraceRow | None:
        """The last row that `select` finds."""
        found = self.select(table, **given)
        return found[-1] if found else None

    def values(self, table: TraceTable, column: str) -> tuple[str, ...]:
        """The distinct values of a column, sorted."""
        return tuple(sorted(map(str, pc.unique(self._read(table)[column]).to_pylist())))

    def end_ns(self) -> int:
        """The instant of the newest row."""
        return self._trace.end_ns

    def _between(self, table: TraceTable, until_seq: int | None, after_ns: int, until_ns: int | None) -> Any:
        """Slice a table; all tables are sorted by seq and by time."""
        times = self._times_of(table)
        begin = bisect_right(times, after_ns)
        end = len(times) if until_ns is None else bisect_right(times, until_ns)
        if until_seq is not None:
            end = min(end, bisect_right(self._seqs_of(table), until_seq))
        return self._read(table).slice(begin, max(0, end - begin))

    def _seqs_of(self, table: TraceTable) -> Sequence[int]:
        return self._numbers(table, "seq")

    def _times_of(self, table: TraceTable) -> Sequence[int]:
        return self._numbers(table, "t_ns")

    def _numbers(self, table: TraceTable, column: str) -> Sequence[int]:
        key = f"{table.name}.{column}"
        if key not in self._seqs:
            self._seqs[key] = integers(self._read(table)[column])
        return self._seqs[key]

    def _read(self, table: TraceTable) -> Any:
        if table.name not in self._tables:
            parts = [_segment(path) for path in self._trace.paths(table)]
            if self._trace.waiting[table.name]:
                parts.append(self._trace.waiting_table(table))
            self._tables[table.name] = pa.concat_tables(parts) if parts else _empty(table)
        return self._tables[table.name]


def _segment(path: Path) -> Any:
    try:
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False).read(use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise UnreadableTraceError(f"{path} is not a readable segment: {error}") from None


def _rows(table: TraceTable, found: Any) -> Iterator[TraceRow]:
    for fields in found.to_pylist():
        yield TraceRow(table, fields)


def _filtered(found: Any, wanted: Mapping[str, Any]) -> Any:
    """The rows with these values; numbers are compared faster than texts, so they are compared first."""
    for column, value in sorted(wanted.items(), key=lambda item: isinstance(_first(item[1]), str)):
        if found.num_rows:
            found = found.filter(_is(found[column], value))
    return found


def _is(column: Any, value: Any) -> Any:
    if isinstance(value, str | int):
        return pc.equal(column, value)
    return pc.is_in(column, value_set=pa.array(list(value), type=column.type))


def _first(value: object) -> object:
    return next(iter(value), 0) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _empty(table: TraceTable) -> Any:
    return pa.schema([pa.field(c.name, _COLUMN_TYPES[c.type]) for c in table.columns]).empty_table()
