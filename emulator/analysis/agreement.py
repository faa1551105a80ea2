"""Time to agreement: after a disturbance, how long until a layer is at rest again.

The layer `views` is at rest while no view diverges; `ownership` while every
queue is owned exactly once (no overlap, no orphan). After a disturbance a
layer comes to rest at the end of the last divergent interval that begins
before the next disturbance and reaches beyond this one; after 0 s if there is
none. It stays open if that end does not come before the next disturbance, or
not before the end of the run.
"""

from enum import StrEnum

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


class Layer(StrEnum):
    """What has to agree."""

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
        divergent: as `layered` gives it.

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
    # One running maximum answers all windows: at next_ns it is the furthest end of what began before.
    # `asks` sorts a question before the intervals that begin at its instant.
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
    # `least` would skip the null of a layer in which nothing ever diverged.
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
