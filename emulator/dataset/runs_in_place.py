"""Run directories as bronze, read where they lie: nothing is copied to judge a few large runs."""

import functools
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from emulator.dataset.workers import prepare
from emulator.lake.layout import RUN, RUNS_SCHEMA, STORED
from emulator.lake.run_rows import run_row
from emulator.lake.sources import RunSource
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.sweep_tasks import findings, rows_per_share
from emulator.trace.run_directory import RunDirectory, RunEnd
from emulator.trace.schema import TABLES, TraceTable

ROWS_MIN = 250_000
"""Of each run. To land a run takes 2 us for each of its rows, and to plan the scans of its tables half a second."""
RUNS_MAX = 8


def are_read_in_place(runs: Sequence[RunDirectory]) -> bool:
    """Whether runs are few, large and whole, with all rows in segments: those that were killed may have others."""
    return len(runs) <= RUNS_MAX and all(
        sum(run.trace.counts().values()) >= ROWS_MIN
        and run.ended is not RunEnd.UNDER_WAY
        and not any(run.trace.waiting.values())
        for run in runs
    )


def heads_of(runs: Sequence[RunDirectory]) -> pa.Table:
    """The table `runs` about run directories.

    Raises:
        UserError: a scenario cannot be read by this release.
    """
    return pa.Table.from_pylist([run_row(run, RunSource(run.path)) for run in runs], schema=RUNS_SCHEMA)


def findings_in_place(spark: SparkSession, runs: Sequence[RunDirectory], heads: pa.Table) -> DataFrame:
    """What is found in runs, as `LandedRuns.findings` has it.

    Args:
        spark: a session whose tasks see the files of this machine.
        runs: with different names.
        heads: as `heads_of` returns them.

    Raises:
        OSError: a segment is missing, or no regular file.
    """
    prepare(spark)
    tables = {table.name: _table(spark, runs, table) for table in TABLES}
    bronze = Bronze(spark.createDataFrame(heads, from_arrow_schema(RUNS_SCHEMA)), tables)
    return findings(bronze, rows_per_share=rows_per_share(heads))


def _table(spark: SparkSession, runs: Sequence[RunDirectory], table: TraceTable) -> DataFrame:
    schema = from_arrow_schema(STORED[table.name].schema)
    reader = spark.read.schema(StructType(schema.fields[1:]))
    segments = {run.run: [str(path) for path in run.trace.paths(table)] for run in runs}
    parts = [reader.parquet(*paths).select(F.lit(run).alias(RUN), "*") for run, paths in segments.items() if paths]
    return functools.reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], schema)
