"""The data source itself: what Spark asks by the name of the format."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from emulator.dataset.source.batch import RunsReader, TableReader
from emulator.dataset.source.columns import ROWS, RUNS, arrow_schema, columns_of, table_name, trace_table
from emulator.dataset.source.row_stream import RowStreamReader
from emulator.dataset.source.run_paths import SourceError, named_paths
from emulator.dataset.source.table_stream import TableStreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

FORMAT = "rmqemu"
ROWS_PER_BATCH = 20_000
"""Rows of a batch of a stream at most: a long run that is read from its beginning comes in many batches."""
_ROWS_PER_BATCH, _END_OF_RUN = "rowsPerBatch", "endOfRun"
_PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
_RAISED = re.compile(r"^(?:\w+\.)*\w+Error: (?P<text>.+)$", re.MULTILINE)
"""The last line of a traceback of Python."""


class TraceSource(DataSource):
    """The tables of run directories.

    Options: `table` names a table of the trace, `runs` (batch) or `rows` (stream); `path` or `paths` is what `load`
    gets: run directories, folders of runs or campaigns; `rowsPerBatch` limits the rows of a batch of a stream; with
    `endOfRun` (`true`), the stream `rows` has a row for the end of a run.
    """

    folder: ClassVar[Path | None] = None
    """Where relative paths begin; None: they are refused, since Spark's processes have folders of their own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)  # type: ignore[arg-type]
        self._name = table_name(options)
        self._paths = named_paths(options, self.folder)
        self._rows_per_batch = _whole_number(options)
        self._end_of_run = _flag(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the table."""
        return columns_of(self._name)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch query."""
        if self._name == ROWS:
            raise SourceError(f"the table {ROWS} is a stream: expected readStream, or a table of the trace")
        columns = arrow_schema(schema, self._name)
        if self._name == RUNS:
            return RunsReader(self._paths, columns)
        return TableReader(self._paths, trace_table(self._name), columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """The reader of a streaming query."""
        if self._name == RUNS:
            problem = SourceError(f"the table {RUNS} is no stream: expected read, or a table of the trace")
            return _RefusedStream(problem)
        try:
            columns = arrow_schema(schema, self._name)
        except SourceError as problem:
            return _RefusedStream(problem)
        if self._name == ROWS:
            return RowStreamReader(self._paths, columns, self._rows_per_batch, end_of_run=self._end_of_run)
        return TableStreamReader(self._paths, trace_table(self._name), columns, self._rows_per_batch)


class _RefusedStream(DataSourceStreamReader):
    """A stream that cannot be read. Spark loses an error that is raised before there is a reader."""

    def __init__(self, problem: SourceError) -> None:
        self._problem = problem

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Raise the error of a new query."""
        raise self._problem

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802 - Spark's
        """Raise the error of a query that has a checkpoint."""
        raise self._problem

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":  # noqa: ARG002 - Spark's
        """Not reached: there is no batch."""
        raise self._problem


def _whole_number(options: Mapping[str, str]) -> int:
    text = options.get(_ROWS_PER_BATCH, str(ROWS_PER_BATCH))
    if not (text.isascii() and text.isdigit()) or not int(text):
        raise SourceError(f"the option {_ROWS_PER_BATCH} is {text!r}: expected a whole number from 1")
    return int(text)


def _flag(options: Mapping[str, str]) -> bool:
    text = options.get(_END_OF_RUN, "false").lower()
    if text not in ("true", "false"):
        raise SourceError(f"the option {_END_OF_RUN} is {text!r}: expected true or false")
    return text == "true"


def register(spark: "SparkSession | Any") -> None:
    """Let a session read the format `rmqemu`; relative paths begin in the folder in which the caller is now.

    Args:
        spark: a classic session, or one of Spark Connect.
    """
    spark.dataSource.register(_source_in(Path.cwd()))
    spark.conf.set(_PUSH_DOWN, "true")


def _source_in(of: Path) -> type[TraceSource]:
    """The data source with a folder; it is pickled as it stands, since it belongs to no module."""

    class TraceSourceInFolder(TraceSource):
        """The tables of run directories; relative paths begin in a folder."""

        folder = of

    return TraceSourceInFolder


def reason(error: Exception) -> str:
    """Why the source refused a query, in one line, from the error that Spark raises with a traceback around it."""
    raised = _RAISED.findall(str(error))
    return raised[-1] if raised else str(error).partition("\n")[0]
