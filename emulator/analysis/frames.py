"""The tables of runs as Spark DataFrames."""

from collections.abc import Sequence
from functools import reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.trace.reader import RunDirectory
from emulator.trace.schema import (
    BELIEFS,
    CAUSES,
    FAULTS,
    LIFECYCLE,
    MESSAGES,
    OWNERSHIP,
    RPC,
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


def table_ddl(table: Table) -> str:
    """The columns of a table in Spark's notation, in order."""
    return ", ".join(f"`{column.name}` {_SQL_TYPE[column.type]}" for column in table.columns)


def _read(spark: SparkSession, runs: Sequence[RunDirectory], table: Table) -> DataFrame:
    frames = [_read_one(spark, run, table) for run in runs]
    return reduce(lambda left, right: left.union(right), frames)


def _read_one(spark: SparkSession, run: RunDirectory, table: Table) -> DataFrame:
    ddl = table_ddl(table)
    folder = run.path / "trace" / table.name
    written = any(folder.glob("seg-*.parquet"))
    rows = spark.read.schema(ddl).parquet(f"file://{folder}") if written else spark.createDataFrame([], ddl)
    return rows.select(F.lit(run.run).alias("run"), "*")
