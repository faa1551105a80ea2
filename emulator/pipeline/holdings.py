"""Silver `holdings`: which node held which value of a subject, from when to when."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.inputs.holdings import ViewPart
from emulator.pipeline.bronze import SUBJECT
from emulator.pipeline.processes import of_living
from nodes.beliefs import BeliefKind
from nodes.protocol.assigning import RebalanceMode

_CHANGE = (*SUBJECT, "node", "incarnation", "seq", "t_ns", "hash", "value")


def changes_of_values(beliefs: DataFrame, passes: DataFrame) -> DataFrame:
    """What nodes recorded: beliefs, the two parts of views, and who allocated in each rebalance round.

    Args:
        beliefs: the table.
        passes: the table.

    Returns:
        run, kind, role, subject, node, incarnation, seq, t_ns, hash (empty: holds nothing), value (JSON).
    """
    recorded = beliefs.where(F.col("kind") != BeliefKind.REBALANCE_MODE)
    recorded = recorded.select(*_CHANGE[:-2], F.col("value_hash").alias("hash"), "value")
    columns = [F.col(name) for name in _CHANGE if name not in ("kind", "hash", "value")]
    parts = F.inline(F.array(*map(_part, ViewPart)))
    of_views = beliefs.where(F.col("kind") == BeliefKind.VIEW).select(*columns, parts)
    mode = F.concat(F.lit('"'), F.col("mode"), F.lit('"'))
    rounds = passes.where(F.col("mode").isin(*(mode.value for mode in RebalanceMode))).select(
        "run",
        F.lit(BeliefKind.REBALANCE_MODE.value).alias("kind"),
        "role",
        F.col("group").alias("subject"),
        *("node", "incarnation", "seq", "t_ns"),
        mode.alias("hash"),
        mode.alias("value"),
    )
    return recorded.unionAll(of_views.select(*_CHANGE)).unionAll(rounds.select(*_CHANGE))


def _part(part: ViewPart) -> Column:
    """A part of a view as a value of its own kind; that of a view without one is null, which is a value, too."""
    text = F.get_json_object("value", f"$.{part}")
    value = F.coalesce(_by_broker(text) if part is ViewPart.QUEUES else text, F.lit("null"))
    is_held = F.col("value").startswith("{")
    return F.struct(
        F.lit(part.kind).alias("kind"),
        F.when(is_held, F.md5(value.cast("binary"))).otherwise("").alias("hash"),
        F.when(is_held, value).otherwise("null").alias("value"),
    )


def _by_broker(queues: Column) -> Column:
    """The numbers of queues, ordered by brokerName: members may have heard of the brokers in any order."""
    entries = F.map_entries(F.from_json(queues, "map<string, bigint>"))
    return F.to_json(F.map_from_entries(F.array_sort(entries)))


def holdings(changes: DataFrame, lives: DataFrame) -> DataFrame:
    """Who held which value from when to when.

    A process holds the value that it recorded last in an instant, until it records another one or ends. If it ends in
    the instant in which it records a value, it holds nothing.

    Args:
        changes: as `changes_of_values` returns them.
        lives: as `processes` returns them.

    Returns:
        run, kind, role, subject, node, incarnation, start_ns, end_ns (null: to the end of the run), hash, value,
        asleep: spans in which the process was suspended.
    """
    rows = of_living(changes.repartition(*SUBJECT), lives)
    in_order = Window.partitionBy(*SUBJECT, "node", "incarnation").orderBy("seq")
    following = F.lead("t_ns").over(in_order)
    rows = rows.withColumn("next_ns", following).where(F.col("next_ns").isNull() | (F.col("next_ns") > F.col("t_ns")))
    rows = rows.withColumn("before", F.coalesce(F.lag("hash").over(in_order), F.lit("")))
    rows = rows.where(F.col("hash") != F.col("before"))
    rows = rows.withColumn("end_ns", F.coalesce(F.lead("t_ns").over(in_order), F.col("dead_ns")))
    held = (F.col("hash") != "") & (F.col("end_ns").isNull() | (F.col("t_ns") < F.col("end_ns")))
    return rows.where(held).select(
        *SUBJECT, "node", "incarnation", F.col("t_ns").alias("start_ns"), "end_ns", "hash", "value", "asleep"
    )
