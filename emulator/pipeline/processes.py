"""Silver `processes`: when each process began and ended, and when it was suspended."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.history.processes import BEGINS, ENDS
from emulator.pipeline.bronze import PROCESS
from nodes.beliefs import LifecycleEvent

_SPAN = "array<struct<start_ns: bigint, end_ns: bigint>>"


def processes(lifecycle: DataFrame) -> DataFrame:
    """The lives of processes, from the table `lifecycle`.

    A process ends with its first row of an end; whether another row is of a process that has ended follows from `seq`,
    since several rows may have one instant.

    Returns:
        run, node, incarnation, role, begin_ns (null: no row records it), dead_ns and dead_seq (null: it lives), and
        asleep: spans in which it was suspended, in order; the end of the last one is null if it was suspended to the
        end.
    """
    ends, event = F.col("event").isin(*ENDS), F.col("event")
    in_order = Window.partitionBy(*PROCESS).orderBy("seq")
    asleep = F.when(event == LifecycleEvent.SUSPENDED, 1).when((event == LifecycleEvent.RESUMED) | ends, 0)
    before = F.last("asleep", ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    had_ended = F.max(ends).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins = event.isin(*BEGINS) & ~F.coalesce(had_ended, F.lit(False))
    rows = lifecycle.select(*PROCESS, "role", "seq", "t_ns", "event", asleep.alias("asleep"), begins.alias("begins"))
    rows = rows.withColumn("turns", F.col("asleep").isNotNull() & (F.col("asleep") != F.coalesce(before, F.lit(0))))
    turn = F.when(F.col("turns"), F.struct("seq", "t_ns", "asleep"))
    lives = rows.groupBy(*PROCESS).agg(
        F.min_by("role", "seq").alias("role"),
        F.min(F.when(F.col("begins"), F.col("t_ns"))).alias("begin_ns"),
        F.min(F.when(ends, F.col("t_ns"))).alias("dead_ns"),
        F.min(F.when(ends, F.col("seq"))).alias("dead_seq"),
        F.array_sort(F.collect_list(turn)).alias("turns"),
    )
    return lives.select(
        *PROCESS, "role", "begin_ns", "dead_ns", "dead_seq", _spans(F.col("turns")).cast(_SPAN).alias("asleep")
    )


def _spans(turns: Column) -> Column:
    """Spans from turns, which alternate: asleep, awake, asleep, ..."""
    ends = F.slice(turns, 2, F.greatest(F.size(turns), F.lit(1)))
    pairs = F.filter(F.arrays_zip(turns.alias("one"), ends.alias("next")), lambda pair: pair["one"]["asleep"] == 1)
    spans = F.transform(pairs, lambda pair: F.struct(pair["one"]["t_ns"].alias("s"), pair["next"]["t_ns"].alias("e")))
    return F.filter(spans, lambda span: span["e"].isNull() | (span["s"] < span["e"]))


def of_living(rows: DataFrame, lives: DataFrame) -> DataFrame:
    """The rows of processes that had not ended before, with dead_ns and asleep of each process.

    Args:
        rows: with run, node, incarnation and seq.
        lives: as `processes` returns them; there are few, so they are broadcast.
    """
    known = F.broadcast(lives.select(*PROCESS, "dead_ns", "dead_seq", "asleep"))
    joined = rows.join(known, list(PROCESS), "left")
    return joined.where(F.col("dead_seq").isNull() | (F.col("seq") <= F.col("dead_seq"))).drop("dead_seq")
