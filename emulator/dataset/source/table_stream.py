"""A table of the trace as a stream: tasks read closed segments, rows of the journal come with the plan of a batch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import InputPartition

from emulator.dataset.source.batch import grouped
from emulator.dataset.source.columns import require_table, spark_batches
from emulator.dataset.source.streaming import StreamReader, pack, unpack
from emulator.trace.batches import columns_of
from emulator.trace.growing import GrowingTrace
from emulator.trace.row_ranges import RowRange, rows_between
from emulator.trace.schema import TraceTable
from emulator.trace.segments import arrow_table
from emulator.trace.stored import closed_trace

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_RANGE = 50_000
"""A range of more rows is read by several tasks."""


@attrs.frozen
class _JournalRows:
    """Rows of the journal of a run."""

    run: str
    rows: bytes


class _TableRowsOfTask(InputPartition):
    """The rows that one task reads."""

    def __init__(self, ranges: Sequence[RowRange], waiting: Sequence[_JournalRows] = ()) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)
        self.waiting = tuple(waiting)


class TableStreamReader(StreamReader[int]):
    """Reads a table of the trace; a place is a number of rows.

    Args:
        paths: that the query names.
        table: of the trace.
        columns: that the query reads.
        rows_per_batch: rows of a batch at most.
    """

    def __init__(self, paths: tuple[Path, ...], table: TraceTable, columns: "pa.Schema", rows_per_batch: int) -> None:
        super().__init__(paths, table.name, columns, rows_per_batch)
        self._table = table

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one task."""
        assert isinstance(partition, _TableRowsOfTask)
        for item in partition.ranges:
            for rows in rows_between(closed_trace(item.run), self._table, item.start, item.stop):
                yield from spark_batches(item.run.name, rows, self._columns)
        for waiting in partition.waiting:
            yield from spark_batches(waiting.run, unpack(waiting.rows), self._columns)

    def _place(self, stored: Any) -> int:
        return stored or 0

    def _stored(self, place: int) -> int:
        return place

    def _rows_before(self, place: int) -> int:
        return place

    def _available(self, trace: GrowingTrace) -> int:
        return trace.rows(self._table)

    def _after(self, trace: GrowingTrace, place: int, rows: int) -> int:  # noqa: ARG002 - other tables need the trace
        return place + rows

    def _accept(self, trace: GrowingTrace) -> None:
        require_table(trace.run, trace.trace, self._table)

    def _partitions(self, places: Mapping[GrowingTrace, tuple[int, int]]) -> list[InputPartition]:
        ranges: list[RowRange] = []
        waiting: list[_JournalRows] = []
        for trace, (start, stop) in places.items():
            rows = trace.trace.waiting[self._table.name]
            closed = trace.rows(self._table) - len(rows)
            ranges += [
                RowRange(trace.run, begin, min(begin + _ROWS_PER_RANGE, stop, closed))
                for begin in range(start, min(stop, closed), _ROWS_PER_RANGE)
            ]
            if stop > closed:
                new = columns_of(self._table, rows[max(start - closed, 0) : stop - closed])
                waiting.append(_JournalRows(trace.run.name, pack(arrow_table(self._table, new))))
        parts: list[InputPartition] = [_TableRowsOfTask(some) for some in grouped(ranges)]
        return [*parts, _TableRowsOfTask((), waiting)] if waiting else parts
