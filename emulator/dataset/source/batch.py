"""Batch queries: the tables of runs as they stand when the query is planned."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from emulator.dataset.source.columns import require_table, spark_batches
from emulator.dataset.source.filters import RowFilters, applied, is_applied
from emulator.dataset.source.run_paths import SourceError, runs_of
from emulator.trace.row_ranges import RowRange, closed_ranges, rows_between
from emulator.trace.run_directory import open_run, open_trace
from emulator.trace.schema import TraceTable
from emulator.trace.stored import stored_trace

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_TASK = 200_000
"""A task begins in some milliseconds, and a small run has some thousand rows: many of them share one."""
RUNS_PER_TASK = 200


class Ranges(InputPartition):
    """The rows that one task reads."""

    def __init__(self, ranges: Sequence[RowRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


class _TableReader(DataSourceReader):
    """What the readers of all tables do with runs and filters."""

    def __init__(self, paths: tuple[Path, ...], columns: "pa.Schema") -> None:
        self._paths = paths
        self._columns = columns
        self._filters = RowFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Take the filters that the reader applies; the others are returned."""
        self._filters = applied(filters)
        return [item for item in filters if not is_applied(item)]

    def _runs(self) -> dict[str, Path]:
        """The runs whose rows can pass; the others are not opened."""
        found = runs_of(self._paths)
        if not found:
            places = ", ".join(map(str, self._paths))
            raise SourceError(f"{places}: no run is there; expected a run directory, a folder of runs, or a campaign")
        return {name: run for name, run in found.items() if self._filters.has_run(name)}

    def _passing(self, rows: "pa.TraceTable") -> "pa.TraceTable":
        expression = self._filters.expression()
        return rows if expression is None else rows.filter(expression)


class TableReader(_TableReader):
    """Reads a table of the trace.

    Args:
        paths: that the query names.
        table: of the trace.
        columns: that the query reads.
    """

    def __init__(self, paths: tuple[Path, ...], table: TraceTable, columns: "pa.Schema") -> None:
        super().__init__(paths, columns)
        self._table = table

    def partitions(self) -> list[InputPartition]:
        """What each task reads: rows of several small runs, or a part of a large one."""
        ranges = [item for run in self._runs().values() for item in self._ranges(run)]
        return [Ranges(some) for some in grouped(ranges)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one task."""
        for item in partition.ranges if isinstance(partition, Ranges) else ():
            for rows in rows_between(stored_trace(item.run), self._table, item.start, item.stop):
                yield from spark_batches(item.run.name, self._passing(rows), self._columns)

    def _ranges(self, run: Path) -> Iterator[RowRange]:
        trace = open_trace(run)
        require_table(run, trace, self._table)
        stop, begins_ns = 0, 0
        for start, entry in closed_ranges(trace, self._table):
            stop = start + entry.rows
            if self._filters.has_segment(entry, begins_ns):
                yield RowRange(run, start, stop)
            begins_ns = entry.t_ns
        if waiting := len(trace.waiting[self._table.name]):
            yield RowRange(run, stop, stop + waiting)


class RunsReader(_TableReader):
    """Reads one row per run.

    Args:
        paths: that the query names.
        columns: that the query reads.
    """

    def partitions(self) -> list[InputPartition]:
        """The runs that each task opens."""
        runs = list(self._runs().values())
        return [
            Ranges([RowRange(run, 0, 1) for run in runs[begin : begin + RUNS_PER_TASK]])
            for begin in range(0, len(runs), RUNS_PER_TASK)
        ]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one task."""
        import pyarrow as pa

        rows = [_run_row(item.run) for item in partition.ranges] if isinstance(partition, Ranges) else []
        if rows:
            columns = [pa.array([row[field.name] for row in rows], field.type) for field in self._columns]
            table = pa.Table.from_arrays(columns, schema=self._columns)
            yield from self._passing(table).to_batches()


def grouped(ranges: Iterable[RowRange]) -> Iterator[list[RowRange]]:
    """Ranges in groups of about `ROWS_PER_TASK` rows; ranges of a run that follow each other become one."""
    group: list[RowRange] = []
    rows = 0
    for item in ranges:
        if group and (rows + item.rows > ROWS_PER_TASK or len(group) == RUNS_PER_TASK):
            yield group
            group, rows = [], 0
        last = group[-1] if group else None
        if last is not None and (last.run, last.stop) == (item.run, item.start):
            group[-1] = RowRange(item.run, last.start, item.stop)
        else:
            group.append(item)
        rows += item.rows
    if group:
        yield group


def _run_row(path: Path) -> dict[str, Any]:
    run = open_run(path)
    manifest = run.manifest
    return {
        "run": path.name,
        "scenario": manifest["scenario"]["scenario"]["name"],
        "seed": manifest["seed"],
        "mode": manifest["mode"],
        "level": run.level,
        "digest": manifest["digest"],
        "release": manifest.get("versions", {}).get("rocketmq-emulator", ""),
        "schema": manifest["schema_version"],
        "ended": run.ended.name,
        "end_ns": run.end_ns,
        "rows": sum(manifest["rows"].values()),
        "rows_of": list(manifest["rows"].items()),
    }
