"""The rows of all tables of a run as one stream, in the order in which they were recorded.

Columns: `number` counts the rows of a run from 1, without gaps; `table`, `seq` and `t_ns` are those of the trace; `row`
is a JSON array with the columns of the table. With the option `endOfRun`, a run that has ended has one row more, whose
table is empty: no row follows.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import orjson
from pyspark.sql.datasource import InputPartition

from emulator.dataset.source.columns import ROWS
from emulator.dataset.source.streaming import StreamReader, pack, unpack
from emulator.trace.batches import Row, columns_of
from emulator.trace.growing import GrowingTrace
from emulator.trace.row_ranges import segment_table
from emulator.trace.run_directory import DamagedRunError
from emulator.trace.schema import COUNTS, TABLES, TraceLevel, TraceTable
from emulator.trace.segments import arrow_table
from emulator.trace.stored import StoredTrace, closed_trace
from emulator.trace.tail import TracePlace

if TYPE_CHECKING:
    import pyarrow as pa

END_OF_RUN = ""
"""In place of a table: no row of the run follows."""
_ROWS_PER_TASK = 100_000
_SEQ, _UNTIL_SEQ = COUNTS.index("seq"), COUNTS.index("until_seq")


@attrs.frozen
class _Between:
    """The rows of a run between two places."""

    run: Path
    start: TracePlace
    stop: TracePlace
    waiting: Mapping[str, bytes]
    """Mapping table -> those of its rows that were in the journal when the batch was planned."""
    end_ns: int | None
    """Time of the last row of the run, if the row of its end is among the rows."""


class _RowsOfTask(InputPartition):
    """The rows that one task reads."""

    def __init__(self, rows: _Between) -> None:
        super().__init__(None)
        self.rows = rows


class RowStreamReader(StreamReader[TracePlace]):
    """Reads the rows of all tables.

    Args:
        paths: that the query names.
        columns: that the query reads.
        rows_per_batch: rows of a batch at most.
        end_of_run: whether the end of a run has a row.
    """

    def __init__(self, paths: tuple[Path, ...], columns: "pa.Schema", rows_per_batch: int, *, end_of_run: bool) -> None:
        super().__init__(paths, ROWS, columns, rows_per_batch)
        self._end_of_run = end_of_run

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one task."""
        assert isinstance(partition, _RowsOfTask)
        yield _spark_rows(partition.rows, self._columns)

    def _place(self, stored: Any) -> TracePlace:
        return TracePlace(**stored) if stored else TracePlace()

    def _stored(self, place: TracePlace) -> dict[str, int]:
        return attrs.asdict(place)

    def _rows_before(self, place: TracePlace) -> int:
        return place.rows

    def _available(self, trace: GrowingTrace) -> int:
        return _count(trace.trace) + (self._end_of_run and trace.ended)

    def _after(self, trace: GrowingTrace, place: TracePlace, rows: int) -> TracePlace:
        if trace.trace.level is TraceLevel.FULL:
            if (last_seq := trace.trace.last_seq) != (have := _count(trace.trace)):
                raise DamagedRunError(
                    (f"{trace.run} is damaged: {last_seq - have} rows before seq {last_seq} are missing",)
                )
            return TracePlace(place.rows + rows, min(place.seq + rows, last_seq))
        seq, counted = place.seq, place.counted
        for item in islice(_orders(trace.trace, place), rows):
            seq, counted = (seq, item[1]) if item[1] else (item[0], counted)
        return TracePlace(place.rows + rows, seq, counted)

    def _partitions(self, places: Mapping[GrowingTrace, tuple[TracePlace, TracePlace]]) -> list[InputPartition]:
        found: list[InputPartition] = []
        for trace, (start, stop) in places.items():
            begin = start
            while begin.rows < stop.rows:
                end = stop
                if stop.rows - begin.rows > _ROWS_PER_TASK:
                    end = self._after(trace, begin, _ROWS_PER_TASK)
                end_ns = trace.trace.end_ns if end.rows > _count(trace.trace) else None
                found.append(_RowsOfTask(_Between(trace.run, begin, end, _waiting(trace.trace, begin, end), end_ns)))
                begin = end
        return found


def _count(trace: StoredTrace) -> int:
    return sum(trace.counts().values())


def _waiting(trace: StoredTrace, start: TracePlace, stop: TracePlace) -> dict[str, bytes]:
    found = {}
    for table in TABLES:
        rows = trace.waiting[table.name]
        first, last = (bisect_right(rows, seq, key=itemgetter(_SEQ)) for seq in _bounds(table, start, stop))
        if first < last:
            found[table.name] = pack(arrow_table(table, columns_of(table, rows[first:last])))
    return found


def _orders(trace: StoredTrace, after: TracePlace) -> Iterator[tuple[int, int]]:
    """What orders the rows behind a place, see `_order`."""
    return merge(*(_orders_of(trace, table, after) for table in TABLES))


def _orders_of(trace: StoredTrace, table: TraceTable, after: TracePlace) -> Iterator[tuple[int, int]]:
    columns = ["seq", "until_seq"] if table is COUNTS else ["seq"]
    for entry in trace.segments[table.name]:
        if after.is_before(table.name, entry.last_seq):
            numbers = segment_table(trace, entry, columns)
            seqs = numbers["seq"].to_pylist()
            firsts = numbers["until_seq"].to_pylist() if table is COUNTS else seqs
            for first, seq in zip(firsts, seqs, strict=True):
                if after.is_before(table.name, seq):
                    yield (first, seq) if table is COUNTS else (seq, 0)
    for row in trace.waiting[table.name]:
        if after.is_before(table.name, int(row[0])):
            yield _order(table, row)


def _order(table: TraceTable, row: Row) -> tuple[int, int]:
    """Orders the rows of all tables as they were recorded; a row of `counts` follows the rows that it is about."""
    return (int(row[_UNTIL_SEQ]), int(row[_SEQ])) if table is COUNTS else (int(row[_SEQ]), 0)


def _rows_of(between: _Between) -> Iterator[tuple[tuple[int, int], TraceTable, Row]]:
    """The rows of a task, table by table."""
    import pyarrow.compute as pc

    trace = closed_trace(between.run)
    for table in TABLES:
        parts = [
            segment_table(trace, entry)
            for entry in trace.segments[table.name]
            if between.start.is_before(table.name, entry.last_seq)
            and not between.stop.is_before(table.name, entry.first_seq)
        ]
        if table.name in between.waiting:
            parts.append(unpack(between.waiting[table.name]))
        seen, last = _bounds(table, between.start, between.stop)
        for part in parts:
            # A segment that has closed meanwhile has rows that came with the plan, too: they are taken once.
            new = part.filter((pc.field("seq") > seen) & (pc.field("seq") <= last))
            for row in zip(*(column.to_pylist() for column in new.columns), strict=True):
                seen = row[_SEQ]
                yield _order(table, row), table, row


def _bounds(table: TraceTable, start: TracePlace, stop: TracePlace) -> tuple[int, int]:
    """Seqs of a table: of the last row before a place, and of the last row before another one."""
    return (start.counted, stop.counted) if table is COUNTS else (start.seq, stop.seq)


def _spark_rows(between: _Between, columns: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    every = sorted(_rows_of(between), key=itemgetter(0))
    rows = [(table.name, row[0], row[1], orjson.dumps(row).decode()) for _, table, row in every]
    if between.end_ns is not None:
        rows.append((END_OF_RUN, 0, between.end_ns, "[]"))
    expected = between.stop.rows - between.start.rows
    if len(rows) != expected:
        raise DamagedRunError((f"{between.run} is damaged: {expected - len(rows)} rows are missing",))
    values: dict[str, Sequence[Any]] = {
        "run": [between.run.name] * len(rows),
        "number": range(between.start.rows + 1, between.stop.rows + 1),
        **{name: [row[place] for row in rows] for place, name in enumerate(("table", "seq", "t_ns", "row"))},
    }
    return pa.RecordBatch.from_arrays([pa.array(values[field.name], field.type) for field in columns], schema=columns)
