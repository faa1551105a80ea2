"""Totals per phase: how much divergence there was between one disturbance and the next.

The measure is an integral: two queues without owner for 3 s are 6 orphan
seconds, whether at once or one after the other.
"""

from pyspark.sql import DataFrame, Window
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
    by_time = Window.partitionBy("run").orderBy("t_ns")
    steps = (
        begins.select("run", "t_ns", *[F.lit(0).alias(name) for name in MEASURES])
        .union(runs.select("run", F.col("end_ns"), *[F.lit(0) for _ in MEASURES]))
        .union(_steps(views, "view"))
        .union(_steps(overlaps, "overlap"))
        .union(_steps(orphans, "orphan"))
        .groupBy("run", "t_ns")
        .agg(*[F.sum(name).alias(name) for name in MEASURES])
    )
    for name in MEASURES:
        steps = steps.withColumn(name, F.sum(name).over(by_time))
    # The area up to an instant: each level times how long it lasted, summed over what came before.
    lasted = F.col("t_ns") - F.lag("t_ns", 1, 0).over(by_time)
    for name in MEASURES:
        steps = steps.withColumn(f"{name}_piece", F.lag(name, 1, 0).over(by_time) * lasted)
    area = [F.sum(f"{name}_piece").over(by_time).alias(f"{name}_area") for name in MEASURES]
    areas = steps.select("run", "t_ns", *area)
    ends = F.lead("t_ns").over(by_time)
    bounded = begins.select("run", F.col("t_ns").alias("start_ns"), F.coalesce(ends, "end_ns").alias("end_ns"), "what")
    at_start = areas.select(
        "run", F.col("t_ns").alias("start_ns"), *[F.col(f"{name}_area").alias(f"{name}_before") for name in MEASURES]
    )
    at_end = areas.withColumnRenamed("t_ns", "end_ns")
    return (
        bounded.join(at_start, ["run", "start_ns"])
        .join(at_end, ["run", "end_ns"])
        .select(
            "run",
            "start_ns",
            "end_ns",
            "what",
            *[(F.col(f"{name}_area") - F.col(f"{name}_before")).alias(f"{name}_ns") for name in MEASURES],
        )
    )


def _steps(intervals: DataFrame, measure: str) -> DataFrame:
    def step(at: str, by: int) -> DataFrame:
        amounts = [F.lit(by if name == measure else 0).alias(name) for name in MEASURES]
        return intervals.select("run", F.col(at).alias("t_ns"), *amounts)

    return step("start_ns", 1).union(step("end_ns", -1))
