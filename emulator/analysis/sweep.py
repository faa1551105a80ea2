"""The two linear sweeps from which all oracles are built.

`sweep` runs a state machine over the rows of each key in order of time, in
Python, streaming through Arrow. `islands` does the same for a condition over
running sums, in the JVM only. Neither compares rows pairwise, so the cost grows
with the number of rows. Two rules hold in both: the state at an instant is the
state after all rows of that instant, and an interval has a positive length.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

BATCH_ROWS = 4096

Key = tuple[Any, ...]
Instants = Iterator[tuple[int, list[tuple[Any, ...]]]]
"""Per instant, ascending: t_ns and the rows of that instant in order of seq."""
Machine = Callable[[Instants], Iterable[tuple[Any, ...]]]
"""A state machine: reads the rows of one key, yields result rows without the key."""


def sweep(rows: DataFrame, key: Sequence[str], columns: Sequence[str], result: str, machine: Machine) -> DataFrame:
    """Run a state machine over the rows of each key in order of time.

    Args:
        rows: has the columns of `key`, t_ns, seq and `columns`.
        key: columns of the key.
        columns: columns that the machine sees, in this order.
        result: columns that the machine yields, in Spark's DDL; the key is put in front.
        machine: the state machine; Spark's workers must be able to import it.
    """
    ordered = (
        rows.select(*key, "t_ns", "seq", *columns)
        .repartition(*[F.col(name) for name in key])
        .sortWithinPartitions(*key, "t_ns", "seq")
    )
    schema = StructType([ordered.schema[name] for name in key] + _struct(result).fields)
    width = len(key)

    def walk(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = to_arrow_schema(schema)
        stream = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        found: list[tuple[Any, ...]] = []
        for of_key, group in groupby(stream, key=itemgetter(slice(0, width))):
            found.extend((*of_key, *answer) for answer in machine(_instants(group, width)))
            if len(found) >= BATCH_ROWS:
                yield _batch(found, arrow)
                found = []
        if found:
            yield _batch(found, arrow)

    return ordered.mapInArrow(walk, schema)


def _instants(group: Iterable[tuple[Any, ...]], width: int) -> Instants:
    for t_ns, rows in groupby(group, key=itemgetter(width)):
        yield t_ns, [row[width + 2 :] for row in rows]


def _batch(found: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*found, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _struct(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    assert isinstance(parsed, StructType)
    return parsed


def running_levels(steps: DataFrame, key: Sequence[str], sums: Sequence[str]) -> DataFrame:
    """Turn steps (+1, -1) into levels after each instant.

    Args:
        steps: the columns of `key`, t_ns and one step column per name in `sums`.
        key: columns of the key.
        sums: names of the step columns.

    Returns:
        One row per key and instant; the columns in `sums` hold the level from then on.
    """
    by_time = Window.partitionBy(*key).orderBy("t_ns")
    return (
        steps.groupBy(*key, "t_ns")
        .agg(*[F.sum(name).alias(name) for name in sums])
        .select(*key, "t_ns", *[F.sum(name).over(by_time).alias(name) for name in sums])
    )


def islands(levels: DataFrame, key: Sequence[str], inside: Column, peak: str, peak_as: str) -> DataFrame:
    """Maximal intervals in which a condition holds.

    Args:
        levels: one row per key and instant, as `running_levels` returns them.
        key: columns of the key.
        inside: condition over the levels.
        peak: level of which the result has the maximum in the interval.
        peak_as: name of the maximum in the result.

    Returns:
        key, start_ns, end_ns (null: open), `peak_as`.
    """
    by_time = Window.partitionBy(*key).orderBy("t_ns")
    marked = levels.select(
        *key,
        "t_ns",
        F.lead("t_ns").over(by_time).alias("until_ns"),
        F.col(peak).alias("peak"),
        inside.alias("inside"),
        F.lag(inside, 1, False).over(by_time).alias("inside_before"),
    )
    begins = F.when(F.col("inside") & ~F.col("inside_before"), 1).otherwise(0)
    return (
        marked.withColumn("island", F.sum(begins).over(by_time))
        .where("inside")
        .groupBy(*key, "island")
        .agg(
            F.min("t_ns").alias("start_ns"),
            F.when(F.bool_or(F.col("until_ns").isNull()), None).otherwise(F.max("until_ns")).alias("end_ns"),
            F.max("peak").alias(peak_as),
        )
        .drop("island")
    )


def close_at_end(intervals: DataFrame, runs: DataFrame) -> DataFrame:
    """Close open intervals at the end of their run, and mark them.

    Args:
        intervals: run, start_ns, end_ns (null: open) and further columns.
        runs: run, end_ns.

    Returns:
        The same columns and `open`, without intervals that began at the end of the run.
    """
    ends = runs.select("run", F.col("end_ns").alias("run_end_ns"))
    return (
        intervals.join(F.broadcast(ends), "run")
        .withColumn("open", F.col("end_ns").isNull())
        .withColumn("end_ns", F.coalesce("end_ns", "run_end_ns"))
        .where("start_ns < end_ns")
        .drop("run_end_ns")
    )
