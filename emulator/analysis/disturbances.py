"""The instants from which agreement is timed, and which divide a run into phases."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from nodes.beliefs import BeliefKind, LifecycleEvent, OwnershipEvent

DISTURBING = (
    LifecycleEvent.STARTED,
    LifecycleEvent.STOPPING,
    LifecycleEvent.CRASHED,
    LifecycleEvent.KILLED,
    LifecycleEvent.POWERED_OFF,
    LifecycleEvent.SUSPENDED,
    LifecycleEvent.RESUMED,
)


def disturbances(faults: DataFrame, lifecycle: DataFrame, agreed: DataFrame) -> DataFrame:
    """Everything that may bring views or ownership out of agreement, one row per instant.

    Each begin and end of a fault counts; a lifecycle event counts once
    everything was agreed for the first time, so that start-up does not.

    Args:
        agreed: run, agreed_ns, from `first_agreement`.

    Returns:
        run, t_ns, what (descriptions in order of seq).
    """
    of_faults = faults.select(
        "run", "seq", "t_ns", F.concat_ws(" ", "kind", "subject", F.concat("event", F.lit("s"))).alias("what")
    )
    of_life = lifecycle_disturbances(lifecycle, agreed).select(
        "run", "seq", "t_ns", F.concat_ws(" ", "node", "event").alias("what")
    )
    ordered = F.array_sort(F.collect_list(F.struct("seq", "what")))
    return (
        of_faults.union(of_life)
        .groupBy("run", "t_ns")
        .agg(ordered.alias("rows"))
        .select("run", "t_ns", F.col("rows.what").alias("what"))
    )


def lifecycle_disturbances(lifecycle: DataFrame, agreed: DataFrame) -> DataFrame:
    """The rows of `lifecycle` that disturb: those of `DISTURBING` after the first agreement of their run."""
    return (
        lifecycle.where(F.col("event").isin([event.value for event in DISTURBING]))
        .join(F.broadcast(agreed), "run")
        .where("t_ns > agreed_ns")
    )


def fault_spans(faults: DataFrame, runs: DataFrame) -> DataFrame:
    """Each fault from its begin to its end.

    Returns:
        run, fault_id, kind, subject, start_ns, end_ns, open (it was still there at the end of the run).
    """
    began = F.col("event") == "begin"
    spans = faults.groupBy("run", "fault_id").agg(
        F.first("kind").alias("kind"),
        F.first("subject").alias("subject"),
        F.min(F.when(began, F.col("t_ns"))).alias("start_ns"),
        F.max(F.when(~began, F.col("t_ns"))).alias("end_ns"),
    )
    ends = F.broadcast(runs.withColumnRenamed("end_ns", "run_end_ns"))
    return (
        spans.where("start_ns IS NOT NULL")
        .join(ends, "run")
        .select(
            "run",
            "fault_id",
            "kind",
            "subject",
            "start_ns",
            F.coalesce("end_ns", "run_end_ns").alias("end_ns"),
            F.col("end_ns").isNull().alias("open"),
        )
    )


def first_agreement(beliefs: DataFrame, ownership: DataFrame, divergent: DataFrame) -> DataFrame:
    """First instant at which there are views and owners, and nobody disagrees.

    Args:
        divergent: intervals of all layers; run, start_ns, end_ns, open.

    Returns:
        run, agreed_ns; no row for a run that never agreed.
    """
    views = beliefs.where(F.col("kind") == BeliefKind.VIEW.value).groupBy("run").agg(F.min("t_ns").alias("viewed_ns"))
    owned = (
        ownership.where(F.col("event") == OwnershipEvent.ACQUIRED.value)
        .groupBy("run")
        .agg(F.min("t_ns").alias("owned_ns"))
    )
    begun = views.join(owned, "run").select("run", F.greatest("viewed_ns", "owned_ns").alias("begun_ns"))
    busy = (
        divergent.join(F.broadcast(begun), "run")
        .where("end_ns > begun_ns")
        .select("run", F.greatest("start_ns", "begun_ns").alias("start_ns"), "end_ns", "open")
    )
    seed = begun.select(
        "run", F.col("begun_ns").alias("start_ns"), F.col("begun_ns").alias("end_ns"), F.lit(False).alias("open")
    )
    by_start = Window.partitionBy("run").orderBy("start_ns", "end_ns")
    reached = F.max(F.struct("end_ns", "open")).over(by_start)
    return (
        seed.union(busy)
        .withColumn("reached", reached)
        .withColumn("next_ns", F.lead("start_ns").over(by_start))
        .where("(next_ns IS NULL OR next_ns > reached.end_ns) AND NOT reached.open")
        .groupBy("run")
        .agg(F.min("reached.end_ns").alias("agreed_ns"))
    )
