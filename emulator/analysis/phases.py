"""Totals per phase: how much divergence there was between one disturbance and the next.

The measure is an integral: two queues without owner for 3 s are 6 orphan
seconds, whether at once or one after the other.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

MEASURES = ("view", "overlap", "orphan")


def phases(
    disturbances: DataFrame, views: DataFrame, overlaps: DataFrame, orphans: DataFrame, runs: DataFrame
) -> DataFrame:
    """Integrate each oracle over the phases of a run.

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
    # A phase begins at an instant of its own, so what lasts from one instant to the next lies within one phase.
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
