"""The tables of one run as Spark DataFrames, also while it is under way; `landed` opens many runs."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from emulator.dataset.spark import session_for, spark_session
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import (
    TABLES,
    ColumnType,
    TraceTable,
)

_SQL_TYPE = {ColumnType.INT: "BIGINT", ColumnType.TEXT: "STRING"}


def table_ddl(table: TraceTable) -> str:
    """The columns of a table in Spark's DDL, in order."""
    return ", ".join(f"`{column.name}` {_SQL_TYPE[column.type]}" for column in table.columns)


def _read(spark: SparkSession, run: RunDirectory, table: TraceTable) -> DataFrame:
    """The rows of a table that are on disk: closed segments, each by its name, and what waits for one."""
    ddl = table_ddl(table)
    paths = [f"file://{path}" for path in run.trace.paths(table)]
    frame = spark.read.schema(ddl).parquet(*paths) if paths else spark.createDataFrame([], ddl)
    if run.trace.waiting[table.name]:
        frame = frame.union(spark.createDataFrame(run.trace.waiting_table(table), ddl))
    return frame


class TraceFrames(Mapping[str, DataFrame]):
    """The tables of a run at the time of construction: `trace.beliefs` or `trace["beliefs"]`.

    Args:
        run: the run.
        spark: session to use; None: a local session is started.
    """

    def __init__(self, run: RunDirectory, spark: SparkSession | None = None) -> None:
        self._rows = run.trace.counts()
        session = session_for(spark or spark_session(), sum(self._rows.values()))
        self._frames: dict[str, DataFrame] = {table.name: _read(session, run, table) for table in TABLES}

    def __getitem__(self, table: str) -> DataFrame:
        return self._frames[table]

    def __getattr__(self, table: str) -> DataFrame:
        if table.startswith("_") or table not in self._frames:
            raise AttributeError(f"a trace has no table {table}; it has {', '.join(t.name for t in TABLES)}")
        return self._frames[table]

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._frames])

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __repr__(self) -> str:
        width = max(len(table.name) for table in TABLES)
        return "\n".join(f"{t.name:<{width}}  {self._rows[t.name]:>8,} rows  {t.doc}" for t in TABLES)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        rows = "".join(
            f"<tr><td style='text-align:left'><code>{escape(t.name)}</code></td><td>{self._rows[t.name]:,}</td>"
            f"<td style='text-align:left'>{escape(t.doc)}</td></tr>"
            for t in TABLES
        )
        head = "<tr><th style='text-align:left'>table</th><th>rows</th><th style='text-align:left'>what</th></tr>"
        return {"text/plain": repr(self), "text/html": f"<table>{head}{rows}</table>"}
