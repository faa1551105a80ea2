"""When processes end, and when a consumer group has somebody alive."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.sweep import running_levels
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent

PROCESS = ("run", "node", "incarnation")


def process_ends(lifecycle: DataFrame) -> DataFrame:
    """The end of each process that ended.

    Returns:
        run, node, incarnation, end_seq, ended_ns.
    """
    return (
        lifecycle.where(F.col("event").isin([event.value for event in PROCESS_ENDS]))
        .groupBy(*PROCESS)
        .agg(F.min("seq").alias("end_seq"), F.min("t_ns").alias("ended_ns"))
    )


def with_ends(rows: DataFrame, key: list[str], lifecycle: DataFrame, gone: dict[str, str]) -> DataFrame:
    """Rows of processes, and one more row per key and process that ends it.

    Args:
        rows: has run, node, incarnation, seq, t_ns, the columns of `key` and those of `gone`.
        key: what a process holds something about.
        gone: column -> text it has in the row that ends it.

    Returns:
        key, node, incarnation, seq, t_ns and the columns of `gone`; nothing a process said after its end.
    """
    ends = F.broadcast(process_ends(lifecycle))
    known = rows.join(ends, list(PROCESS), "left").where("end_seq IS NULL OR seq < end_seq")
    columns = [*key, "node", "incarnation", "seq", "t_ns", *gone]
    last_words = (
        known.where("end_seq IS NOT NULL")
        .select(*key, "node", "incarnation", F.col("end_seq").alias("seq"), F.col("ended_ns").alias("t_ns"))
        .distinct()
        .select("*", *[F.lit(text).alias(name) for name, text in gone.items()])
    )
    return known.select(*columns).union(last_words.select(*columns))


def group_alive(lifecycle: DataFrame) -> DataFrame:
    """When consumer groups come to life and die out.

    A process is a member of the groups that its `started` or `ready` row lists,
    from the first such row until it ends; suspended processes are alive.

    Returns:
        run, group, t_ns, alive_step: +1 where a first member appears, -1 where the last one is gone.
    """
    consumers = lifecycle.where("role = 'consumer'")
    named = consumers.where(F.col("event").isin(LifecycleEvent.STARTED.value, LifecycleEvent.READY.value))
    members = (
        named.join(F.broadcast(process_ends(consumers)), list(PROCESS), "left")
        .where("end_seq IS NULL OR seq < end_seq")
        .select(*PROCESS, "t_ns", "ended_ns", F.explode(F.split("detail", ",")).alias("group"))
        .withColumn("group", F.trim("group"))
        .where("group <> ''")
        .groupBy(*PROCESS, "group")
        .agg(F.min("t_ns").alias("t_ns"), F.first("ended_ns").alias("ended_ns"))
    )
    steps = members.select("run", "group", "t_ns", F.lit(1).alias("members")).union(
        members.where("ended_ns IS NOT NULL").select("run", "group", "ended_ns", F.lit(-1))
    )
    by_time = Window.partitionBy("run", "group").orderBy("t_ns")
    alive = F.when(F.col("members") > 0, 1).otherwise(0)
    return (
        running_levels(steps, ["run", "group"], ["members"])
        .select("run", "group", "t_ns", (alive - F.lag(alive, 1, 0).over(by_time)).alias("alive_step"))
        .where("alive_step <> 0")
    )
