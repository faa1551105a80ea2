"""Parts of a table of a run: rows by their number, which never changes, whether the run is under way or has ended.

The rows of a table are numbered from 0 in the order of seq. A closed segment never changes, and the
journal has the rows that follow it, so a range of numbers names the same rows whenever it is read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from emulator.trace.batches import columns_of
from emulator.trace.index import SegmentEntry
from emulator.trace.run_directory import DamagedRunError
from emulator.trace.schema import TraceTable
from emulator.trace.segments import arrow_table
from emulator.trace.stored import DamagedSegmentError, StoredTrace


@attrs.frozen
class RowRange:
    """Rows of one table of one run that follow each other."""

    run: Path
    """The run directory."""
    start: int
    stop: int
    """Number of the first row that is not in the range."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


def closed_ranges(trace: StoredTrace, table: TraceTable) -> Iterator[tuple[int, SegmentEntry]]:
    """The closed segments of a table in order, each with the number of its first row."""
    start = 0
    for entry in trace.segments[table.name]:
        yield start, entry
        start += entry.rows


def rows_between(trace: StoredTrace, table: TraceTable, start: int, stop: int) -> Iterator[Any]:
    """The rows of a range as Arrow tables, in order.

    Args:
        trace: of the run.
        table: of the schema.
        start: number of the first row.
        stop: number of the first row that is left out.

    Raises:
        DamagedRunError: a segment is missing or was changed, or the run has fewer rows.
    """
    closed = 0
    for first, entry in closed_ranges(trace, table):
        closed = first + entry.rows
        if first < stop and start < closed:
            begin = max(start - first, 0)
            yield segment_table(trace, entry).slice(begin, min(stop, closed) - first - begin)
    waiting = trace.waiting[table.name]
    if stop > closed + len(waiting):
        folder = trace.folder.parent
        raise DamagedRunError((f"{folder} has {closed + len(waiting)} rows of {table.name}: expected {stop} or more",))
    if stop > closed:
        yield arrow_table(table, columns_of(table, waiting[max(start - closed, 0) : stop - closed]))


def segment_table(trace: StoredTrace, entry: SegmentEntry, columns: list[str] | None = None) -> Any:
    """A closed segment as an Arrow table, after a look whether it is as it was written.

    Args:
        trace: that has the segment.
        entry: the segment.
        columns: to read; None: all.

    Raises:
        DamagedRunError: it is missing or was changed.
    """
    import pyarrow as pa  # noqa: PLC0415 - opening a run must not wait for Arrow
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        content = trace.content(entry)
    except DamagedSegmentError as error:
        raise DamagedRunError((str(error),)) from None
    return pq.read_table(pa.BufferReader(content), columns=columns)
