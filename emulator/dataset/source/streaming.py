"""What the streams of the source have in common: offsets over several runs, limited batches, the end of `availableNow`.

An offset is a mapping run -> place. What is on disk before a place never changes, so the same offsets give the same
rows, as often as Spark asks for them. A run that was not there before begins at its first row.
"""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from emulator.dataset.source.run_paths import SourceError, runs_of
from emulator.trace.growing import GrowingTrace
from emulator.trace.run_directory import DamagedRunError

if TYPE_CHECKING:
    import pyarrow as pa

_FORM = 1
"""Version of the form of an offset: another release may read a checkpoint."""
Place = TypeVar("Place")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[Place]):
    """Reads the rows of runs as they come; the process that plans batches calls all methods but `read`.

    Args:
        paths: that the query names.
        name: of the table.
        columns: that the query reads.
        rows_per_batch: rows of a batch at most.
    """

    def __init__(self, paths: tuple[Path, ...], name: str, columns: "pa.Schema", rows_per_batch: int) -> None:
        self._paths = paths
        self._name = name
        self._columns = columns
        self._rows_per_batch = rows_per_batch
        self._traces: dict[str, GrowingTrace] = {}
        self._goal: Mapping[str, int] | None = None
        """With `availableNow`, mapping run -> rows that were there when the query began; None: there is no end."""

    # --- places, by table -----------------------------------------------------------------

    @abstractmethod
    def _place(self, stored: Any) -> Place:
        """A place as an offset has it; None: before the first row."""

    @abstractmethod
    def _stored(self, place: Place) -> Any:
        """A place in the form of offsets."""

    @abstractmethod
    def _rows_before(self, place: Place) -> int:
        """How many rows lie before a place."""

    @abstractmethod
    def _available(self, trace: GrowingTrace) -> int:
        """How many rows a run has."""

    @abstractmethod
    def _after(self, trace: GrowingTrace, place: Place, rows: int) -> Place:
        """The place so many rows behind another one; they are there."""

    @abstractmethod
    def _partitions(self, places: Mapping[GrowingTrace, tuple[Place, Place]]) -> list[InputPartition]:
        """What tasks read, by run: the rows between two places."""

    def _accept(self, trace: GrowingTrace) -> None:
        """Check that a run can be read; it has been found now."""

    # --- what Spark asks ------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Before the first row of every run."""
        return self._offset({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """How many rows a batch has at most."""
        return ReadMaxRows(self._rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Note which rows are there: the query ends behind them."""
        self._goal = self._look()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's
        """The end of the next batch.

        Args:
            start: where it begins.
            limit: how many rows it may have.
        """
        places = self._places(start)
        available = self._look() if self._goal is None else self._goal
        new = {
            name: rows - before
            for name, rows in available.items()
            if rows > (before := self._rows_before(places.get(name, self._place(None))))
        }
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(new.values())
        if not isinstance(limit, ReadMaxRows | ReadAllAvailable):
            rows_max = min(rows_max, self._rows_per_batch)
        for name, rows in shares(new, rows_max).items():
            places[name] = self._after(self._traces[name], places.get(name, self._place(None)), rows)
        return self._offset(places)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """What the tasks of a batch read."""
        before, after = self._places(start), self._places(end)
        found: dict[GrowingTrace, tuple[Place, Place]] = {}
        for name, until in after.items():
            since = before.get(name, self._place(None))
            if since != until:
                found[self._trace_with(name, self._rows_before(until))] = (since, until)
        return self._partitions(found)

    def stop(self) -> None:
        """Close the journals."""
        for trace in self._traces.values():
            trace.close()

    # --- runs -----------------------------------------------------------------------------

    def _look(self) -> dict[str, int]:
        """Mapping run -> how many rows it has now."""
        for name, run in runs_of(self._paths).items():
            if name not in self._traces:
                trace = GrowingTrace(run)
                self._accept(trace)
                self._traces[name] = trace
            elif not self._traces[name].ended:
                self._traces[name].look()
        return {name: self._available(trace) for name, trace in sorted(self._traces.items())}

    def _trace_with(self, name: str, rows: int) -> GrowingTrace:
        """The run of an offset; a batch that a killed query has planned is planned again by another process."""
        trace = self._traces.get(name)
        if trace is None or self._available(trace) < rows:
            have = self._look()
            if name not in have:
                raise SourceError(f"{', '.join(map(str, self._paths))}: run {name} of the checkpoint is gone")
            if have[name] < rows:
                run = self._traces[name].run
                raise DamagedRunError(
                    (f"{run} has {have[name]} rows of {self._name}, the checkpoint {rows}: it is another run",)
                )
        return self._traces[name]

    # --- offsets --------------------------------------------------------------------------

    def _offset(self, places: Mapping[str, Place]) -> dict[str, Any]:
        stored = {name: self._stored(place) for name, place in sorted(places.items())}
        return {"form": _FORM, "table": self._name, "runs": stored}

    def _places(self, offset: Mapping[str, Any]) -> dict[str, Place]:
        if offset.get("form") != _FORM:
            raise SourceError("the checkpoint is of another release: expected an empty one")
        if offset["table"] != self._name:
            raise SourceError(f"the checkpoint is of table {offset['table']}: expected {self._name}")
        return {name: self._place(stored) for name, stored in offset["runs"].items()}


def shares(rows: Mapping[str, int], rows_max: int) -> dict[str, int]:
    """How many rows of each run come into a batch: a long run does not keep short ones waiting.

    Args:
        rows: mapping run -> how many new rows it has.
        rows_max: rows of the batch at most.

    Returns:
        Mapping run -> rows, without runs that get none; 10 rows of {a: 2, b: 20, c: 5} are {a: 2, b: 4, c: 4}.
    """
    found: dict[str, int] = {}
    left = rows_max
    for number, (name, new) in enumerate(sorted(rows.items(), key=lambda row: (row[1], row[0]))):
        share = min(new, left // (len(rows) - number))
        left -= share
        if share:
            found[name] = share
    return found


def pack(rows: "pa.Table") -> bytes:
    """Rows in bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def unpack(packed: bytes) -> "pa.Table":
    """The rows that were packed."""
    import pyarrow as pa

    return pa.ipc.open_stream(packed).read_all()
