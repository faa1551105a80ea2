"""The tables of runs as Spark DataFrames."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.trace.reader import NotARunError, RunDirectory
from emulator.trace.schema import (
    BELIEFS,
    CAUSES,
    FAULTS,
    LIFECYCLE,
    MESSAGES,
    OWNERSHIP,
    RPC,
    TABLES,
    ColumnType,
    Table,
)

_SQL_TYPE = {ColumnType.INT: "BIGINT", ColumnType.TEXT: "STRING"}


@attrs.frozen
class Frames:
    """The tables of one or more runs; every frame has a column `run`, so runs never mix."""

    runs: DataFrame
    """run, end_ns: one row per run."""
    beliefs: DataFrame
    rpc: DataFrame
    ownership: DataFrame
    messages: DataFrame
    faults: DataFrame
    lifecycle: DataFrame
    causes: DataFrame


def read_frames(spark: SparkSession, runs: Sequence[RunDirectory]) -> Frames:
    """Open the tables of runs; nothing is read before a query asks.

    Args:
        runs: at least one run; two runs must not have the same name.

    Returns:
        One frame per table; a table that a run did not write is empty.
    """
    ends = [(run.run, run.end_ns) for run in runs]
    return Frames(
        runs=spark.createDataFrame(ends, "run STRING, end_ns BIGINT"),
        beliefs=_read(spark, runs, BELIEFS),
        rpc=_read(spark, runs, RPC),
        ownership=_read(spark, runs, OWNERSHIP),
        messages=_read(spark, runs, MESSAGES),
        faults=_read(spark, runs, FAULTS),
        lifecycle=_read(spark, runs, LIFECYCLE),
        causes=_read(spark, runs, CAUSES),
    )


def segment_rows(run: RunDirectory) -> dict[str, int]:
    """How many rows of each table are on disk, by the footers of its segments.

    Raises:
        NotARunError: a segment is damaged.
    """
    return {table.name: sum(_rows_in(segment) for segment in _segments(run, table)) for table in TABLES}


def _segments(run: RunDirectory, table: Table) -> list[Path]:
    return sorted((run.path / "trace" / table.name).glob("seg-*.parquet"))


def _rows_in(segment: Path) -> int:
    try:
        return int(pq.read_metadata(segment).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise NotARunError(f"{segment} is no whole segment: {error}") from None


def table_ddl(table: Table) -> str:
    """The columns of a table in Spark's notation, in order."""
    return ", ".join(f"`{column.name}` {_SQL_TYPE[column.type]}" for column in table.columns)


def _read(spark: SparkSession, runs: Sequence[RunDirectory], table: Table) -> DataFrame:
    frames = [_read_one(spark, run, table) for run in runs]
    return reduce(lambda left, right: left.union(right), frames)


def _read_one(spark: SparkSession, run: RunDirectory, table: Table) -> DataFrame:
    ddl = table_ddl(table)
    folder = run.path / "trace" / table.name
    written = bool(_segments(run, table))
    rows = spark.read.schema(ddl).parquet(f"file://{folder}") if written else spark.createDataFrame([], ddl)
    return rows.select(F.lit(run.run).alias("run"), "*")
