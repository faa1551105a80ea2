"""Disturbances, the time to agreement after each, and the phases between them."""

from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
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
    """Events that may disturb the agreement of views or ownership, one row per instant.

    Each begin and end of a fault counts; a lifecycle event counts only after the
    first agreement, so that start-up is left out.

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
    """Rows of `lifecycle` with an event of `DISTURBING` after the first agreement of their run."""
    return (
        lifecycle.where(F.col("event").isin([event.value for event in DISTURBING]))
        .join(F.broadcast(agreed), "run")
        .where("t_ns > agreed_ns")
    )


def fault_spans(faults: DataFrame, runs: DataFrame) -> DataFrame:
    """The faults, each from its begin to its end.

    Returns:
        run, fault_id, kind, subject, start_ns, end_ns, open (it was still active at the end of the run).
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
    """The first instant at which there are views and owners, and all agree.

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


class Layer(StrEnum):
    """The layers that must agree."""

    VIEWS = "views"
    OWNERSHIP = "ownership"


def layered(views: DataFrame, overlaps: DataFrame, orphans: DataFrame) -> DataFrame:
    """The divergent intervals of all layers as one frame: run, layer, start_ns, end_ns, open."""
    columns = ["run", "layer", "start_ns", "end_ns", "open"]
    of_views = views.withColumn("layer", F.lit(Layer.VIEWS.value)).select(columns)
    of_owners = [f.withColumn("layer", F.lit(Layer.OWNERSHIP.value)).select(columns) for f in (overlaps, orphans)]
    return of_views.union(of_owners[0]).union(of_owners[1])


def agreement(disturbances: DataFrame, divergent: DataFrame, runs: DataFrame) -> DataFrame:
    """Time to agreement per disturbance and layer.

    Args:
        disturbances: run, t_ns, what.
        divergent: as `layered` returns it.
        runs: run, end_ns.

    Returns:
        run, layer, t_ns, next_ns (next disturbance or end of the run), what, took_ns (up to next_ns where open), open.
    """
    by_time = Window.partitionBy("run").orderBy("t_ns")
    last = F.lead("t_ns").over(by_time).isNull()
    windows = (
        disturbances.join(F.broadcast(runs), "run")
        .select(
            "run",
            "t_ns",
            F.coalesce(F.lead("t_ns").over(by_time), "end_ns").alias("next_ns"),
            last.alias("last"),
            "what",
        )
        .crossJoin(F.broadcast(_layers(runs)))
    )
    reach = F.struct("end_ns", "open")
    # One running maximum answers all windows: at next_ns it is the latest end of the intervals that began before.
    # `asks` sorts a question before the intervals that begin at the same instant.
    questions = windows.select("run", "layer", F.col("next_ns").alias("at_ns"), F.lit(0).alias("asks"))
    questions = questions.withColumn("reach", F.lit(None).cast("struct<end_ns: bigint, open: boolean>"))
    answers = divergent.select("run", "layer", F.col("start_ns").alias("at_ns"), F.lit(1), reach.alias("reach"))
    so_far = Window.partitionBy("run", "layer").orderBy("at_ns", "asks")
    reached = (
        questions.union(answers)
        .withColumn("reached", F.max("reach").over(so_far))
        .where("asks = 0")
        .select("run", "layer", F.col("at_ns").alias("next_ns"), "reached")
    )
    # `least` would ignore the null of a layer that never diverged.
    rest_ns = F.coalesce("reached.end_ns", "t_ns")
    beyond = (~F.col("last") & (rest_ns >= F.col("next_ns"))) | F.coalesce("reached.open", F.lit(False))
    return windows.join(reached, ["run", "layer", "next_ns"], "left").select(
        "run",
        "layer",
        "t_ns",
        "next_ns",
        "what",
        F.greatest(F.least(rest_ns, "next_ns") - F.col("t_ns"), F.lit(0)).alias("took_ns"),
        ((rest_ns > F.col("t_ns")) & beyond).alias("open"),
    )


def _layers(runs: DataFrame) -> DataFrame:
    names = F.array(*[F.lit(layer.value) for layer in Layer])
    return runs.limit(1).select(F.explode(names).alias("layer"))


MEASURES = ("view", "overlap", "orphan")


def phases(
    disturbances: DataFrame, views: DataFrame, overlaps: DataFrame, orphans: DataFrame, runs: DataFrame
) -> DataFrame:
    """Total duration of the findings of each oracle in each phase of a run.

    Args:
        disturbances: run, t_ns, what; the first phase begins with the run and has an empty `what`.
        views, overlaps, orphans: run, start_ns, end_ns.

    Returns:
        run, start_ns, end_ns, what, view_ns, overlap_ns, orphan_ns; a disturbance at the very end begins no phase.
    """
    nothing = F.array().cast("array<string>")
    begins = (
        runs.select("run", F.lit(0).cast("bigint").alias("t_ns"), nothing.alias("what"))
        .union(disturbances.select("run", "t_ns", "what"))
        .groupBy("run", "t_ns")
        .agg(F.flatten(F.collect_list("what")).alias("what"))
        .join(F.broadcast(runs), "run")
        .where("t_ns < end_ns")
    )
    bounds = begins.select("run", "t_ns", "what", F.lit(1).alias("begins"), *_amounts()).union(
        runs.select("run", "end_ns", nothing, F.lit(0), *_amounts())
    )
    by_time = Window.partitionBy("run").orderBy("t_ns")
    levels = [F.sum(name).over(by_time).alias(name) for name in MEASURES]
    # Each phase begins at one of the instants, so a piece between two instants lies within one phase.
    pieces = (
        bounds.union(_steps(views, "view"))
        .union(_steps(overlaps, "overlap"))
        .union(_steps(orphans, "orphan"))
        .groupBy("run", "t_ns")
        .agg(*[F.sum(name).alias(name) for name in ("begins", *MEASURES)], F.max("what").alias("what"))
        .select(
            "run",
            "t_ns",
            "what",
            F.lead("t_ns").over(by_time).alias("until_ns"),
            F.sum("begins").over(by_time).alias("phase"),
            *levels,
        )
        .where("until_ns IS NOT NULL")
    )
    lasted = F.col("until_ns") - F.col("t_ns")
    return (
        pieces.groupBy("run", "phase")
        .agg(
            F.min("t_ns").alias("start_ns"),
            F.max("until_ns").alias("end_ns"),
            F.max("what").alias("what"),
            *[F.sum(F.col(name) * lasted).alias(f"{name}_ns") for name in MEASURES],
        )
        .select("run", "start_ns", "end_ns", "what", *[f"{name}_ns" for name in MEASURES])
    )


def _steps(intervals: DataFrame, measure: str) -> DataFrame:
    def step(at: str, by: int) -> DataFrame:
        what = F.array().cast("array<string>")
        return intervals.select("run", at, what, F.lit(0), *_amounts(**{measure: by}))

    return step("start_ns", 1).union(step("end_ns", -1))


def _amounts(**steps: int) -> list[Column]:
    return [F.lit(steps.get(name, 0)).alias(name) for name in MEASURES]
