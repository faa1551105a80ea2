"""Intervals by windows: at which instants something comes and goes, and from when to when a condition holds.

An edge is an instant with a step: +1 where something begins, -1 where it ends. The sum of the steps up to an instant is
how many there are after all rows of this instant, so each question about intervals is a running sum over sorted edges,
whose cost grows with their number. No interval is compared with another one.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F


def edges(start_ns: Column, end_ns: Column) -> Column:
    """The edges of an interval.

    Args:
        start_ns: its begin.
        end_ns: its end; null: it goes on to the end of the run.

    Returns:
        An array of structs t_ns, step.
    """
    begins = F.struct(start_ns.alias("t_ns"), F.lit(1).alias("step"))
    ends = F.struct(end_ns.alias("t_ns"), F.lit(-1).alias("step"))
    return F.when(end_ns.isNull(), F.array(begins)).otherwise(F.array(begins, ends))


def edges_awake(start_ns: Column, end_ns: Column, asleep: Column) -> Column:
    """The edges of an interval, and of the parts of it in which a process was awake.

    Args:
        start_ns, end_ns: as of `edges`.
        asleep: spans in which the process was suspended, as `processes` has them; null: none.

    Returns:
        An array of structs t_ns, step, awake: the step of those that are awake.
    """
    plain = F.transform(edges(start_ns, end_ns), lambda edge: _edge(edge["t_ns"], edge["step"], edge["step"]))
    touched = F.filter(
        F.coalesce(asleep, F.array()),
        lambda span: (
            (end_ns.isNull() | (span["start_ns"] < end_ns)) & (span["end_ns"].isNull() | (span["end_ns"] > start_ns))
        ),
    )
    turns = F.transform(
        touched,
        lambda span: F.array(
            _edge(F.greatest(span["start_ns"], start_ns), F.lit(0), F.lit(-1)),
            _edge(F.least(span["end_ns"], end_ns), F.lit(0), F.lit(1)),
        ),
    )
    return F.concat(plain, F.filter(F.flatten(turns), lambda edge: edge["t_ns"].isNotNull()))


def _edge(t_ns: Column, step: Column, awake: Column) -> Column:
    return F.struct(t_ns.alias("t_ns"), step.alias("step"), awake.alias("awake"))


def in_order(*keys: str) -> WindowSpec:
    """The edges of a key up to an instant, with all edges of this instant."""
    return Window.partitionBy(*keys).orderBy("t_ns").rangeBetween(Window.unboundedPreceding, Window.currentRow)


def before(*keys: str) -> WindowSpec:
    """The edges of a key before an instant."""
    return Window.partitionBy(*keys).orderBy("t_ns").rangeBetween(Window.unboundedPreceding, -1)


def level(step: str, window: WindowSpec) -> Column:
    """How many there are, by the steps in a window."""
    return F.coalesce(F.sum(step).over(window), F.lit(0))


def united(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The edges of the union of intervals: from when to when at least one of a key was there.

    Args:
        rows: edges: the keys, t_ns, step.
        keys: columns.

    Returns:
        The keys, t_ns, step.
    """
    at_instants = rows.groupBy(*keys, "t_ns").agg(F.sum("step").alias("step")).where(F.col("step") != 0)
    there = F.sum("step").over(in_order(*keys))
    levels = at_instants.withColumn("there", there)
    step = (F.col("there") > 0).cast("int") - (F.col("there") > F.col("step")).cast("int")
    return levels.select(*keys, "t_ns", step.alias("step")).where(F.col("step") != 0)


def lasting(rows: DataFrame, keys: Sequence[str], condition: Column) -> DataFrame:
    """The maximal intervals in which a condition holds.

    Args:
        rows: one per key and instant at which the condition may change.
        keys: columns.
        condition: over the columns of a row.

    Returns:
        The keys, start_ns, end_ns (null: to the end of the run).
    """
    order = Window.partitionBy(*keys).orderBy("t_ns")
    known = rows.select(*keys, "t_ns", condition.alias("holds"))
    was = F.coalesce(F.lag("holds").over(order), F.lit(False))
    turns = known.withColumn("was", was).where(F.col("holds") != F.col("was"))
    ended = turns.withColumn("end_ns", F.lead("t_ns").over(order)).where("holds")
    return ended.select(*keys, F.col("t_ns").alias("start_ns"), "end_ns")


def with_run_end(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Rows with `run_end_ns`: when their run ended."""
    ends = F.broadcast(runs.select("run", F.col("end_ns").alias("run_end_ns")))
    return rows.join(ends, "run")


def until_the_end(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Intervals with their ends: those that go on end with the run, and are censored.

    Args:
        rows: with run, start_ns and end_ns (null: it goes on).
        runs: the table.

    Returns:
        The columns, with end_ns never null, and censored.
    """
    known = with_run_end(rows, runs).withColumn("censored", F.col("end_ns").isNull())
    ended = known.withColumn("end_ns", F.coalesce("end_ns", "run_end_ns")).drop("run_end_ns")
    return ended.where(F.col("start_ns") < F.col("end_ns"))
