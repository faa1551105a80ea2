"""The tables of runs as Spark DataFrames: one read per table, however many runs there are."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.dataset.spark import session_for, spark_session
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import (
    ADMIN,
    BELIEFS,
    CAUSES,
    COUNTS,
    FAULTS,
    LIFECYCLE,
    MESSAGES,
    OWNERSHIP,
    PASSES,
    RPC,
    TABLES,
    ColumnType,
    Table,
)

_SQL_TYPE = {ColumnType.INT: "BIGINT", ColumnType.TEXT: "STRING"}
_RUN_IN_PATH = r"/([^/]+)/trace/[^/]+/[^/]+$"


@attrs.frozen
class Frames:
    """The tables of one or more runs; every frame has a column `run`, so runs never mix."""

    runs: DataFrame
    """run, end_ns: one row per run."""
    beliefs: DataFrame
    rpc: DataFrame
    ownership: DataFrame
    passes: DataFrame
    messages: DataFrame
    faults: DataFrame
    lifecycle: DataFrame
    causes: DataFrame
    admin: DataFrame
    counts: DataFrame


def read_frames(spark: SparkSession, runs: Sequence[RunDirectory]) -> Frames:
    """Open the tables of runs lazily.

    Args:
        spark: session to use.
        runs: one or more runs with different names.

    Returns:
        One frame per table; a table without rows is empty.
    """
    ends = [(run.run, run.end_ns) for run in runs]
    return Frames(
        runs=spark.createDataFrame(ends, "run STRING, end_ns BIGINT"),
        beliefs=_read(spark, runs, BELIEFS),
        rpc=_read(spark, runs, RPC),
        ownership=_read(spark, runs, OWNERSHIP),
        passes=_read(spark, runs, PASSES),
        messages=_read(spark, runs, MESSAGES),
        faults=_read(spark, runs, FAULTS),
        lifecycle=_read(spark, runs, LIFECYCLE),
        causes=_read(spark, runs, CAUSES),
        admin=_read(spark, runs, ADMIN),
        counts=_read(spark, runs, COUNTS),
    )


def table_ddl(table: Table) -> str:
    """The columns of a table in Spark's DDL, in order."""
    return ", ".join(f"`{column.name}` {_SQL_TYPE[column.type]}" for column in table.columns)


def _read(spark: SparkSession, runs: Sequence[RunDirectory], table: Table) -> DataFrame:
    """All runs in one read: a union of a frame per run takes longer to plan than to run."""
    ddl = table_ddl(table)
    # Each by its name: a kill may have left a segment that the index does not know, and whose rows wait in the journal.
    paths = [path for run in runs for path in run.trace.paths(table)]
    frame = spark.createDataFrame([], f"run STRING, {ddl}")
    if paths:
        frame = _segments(spark, paths, ddl)
    for run in runs:
        if run.trace.waiting[table.name]:
            waiting = spark.createDataFrame(run.trace.waiting_table(table), ddl)
            frame = frame.union(waiting.select(F.lit(run.run).alias("run"), "*"))
    return frame


def _segments(spark: SparkSession, paths: Sequence[Path], ddl: str) -> DataFrame:
    rows = spark.read.schema(ddl).parquet(*(f"file://{path}" for path in paths))
    # The name of a run may hold characters that a URL escapes.
    name = F.regexp_extract(F.url_decode(F.replace(F.input_file_name(), F.lit("+"), F.lit("%2B"))), _RUN_IN_PATH, 1)
    return rows.select(name.alias("run"), "*")


class TraceFrames(Mapping[str, DataFrame]):
    """The tables of a run at the time of construction: `trace.beliefs` or `trace["beliefs"]`.

    Args:
        run: the run.
        spark: session to use; None: a local session is started.
    """

    def __init__(self, run: RunDirectory, spark: SparkSession | None = None) -> None:
        self._rows = run.trace.counts()
        self._run = run.run
        frames = read_frames(session_for(spark or spark_session(), sum(self._rows.values())), [run])
        self._frames: dict[str, DataFrame] = {table.name: getattr(frames, table.name).drop("run") for table in TABLES}

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
