"""The shares of members at the end of a run: idle consumers, and uneven shares over several topics.

* idle: live members of a group without a queue of a topic. With the strategies averagely and by circle, members beyond
  the number of queues are always idle.
* skew: the queues of a member over all topics of its group except retry topics. With averagely the remainder of each
  topic goes to the first members, so with several topics the same members get all remainders.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import PROCESS, process_ends
from nodes.beliefs import LifecycleEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX


def shares(held: DataFrame, lifecycle: DataFrame) -> DataFrame:
    """The number of queues of each live member in each topic of its group at the end of the run.

    Args:
        held: as `holds` returns it.
        lifecycle: table of the trace.

    Returns:
        run, group, topic, node, queues (0 if a member has none).
    """
    kept = held.where(F.col("open") & ~F.col("topic").startswith(RETRY_TOPIC_PREFIX))
    counts = kept.groupBy("run", "group", "topic", "node").agg(F.count("*").alias("queues"))
    topics = held.where(~F.col("topic").startswith(RETRY_TOPIC_PREFIX)).select("run", "group", "topic").distinct()
    members = _members(lifecycle).join(topics, ["run", "group"])
    return members.join(counts, ["run", "group", "topic", "node"], "left").select(
        "run", "group", "topic", "node", F.coalesce("queues", F.lit(0)).alias("queues")
    )


def idle(of_members: DataFrame) -> DataFrame:
    """Idle members per topic.

    Args:
        of_members: as `shares` returns it.

    Returns:
        run, group, topic, members, queues, idle, unavoidable (members beyond the number of queues).
    """
    totals = of_members.groupBy("run", "group", "topic").agg(
        F.count("*").alias("members"),
        F.sum("queues").alias("queues"),
        F.sum(F.when(F.col("queues") == 0, 1).otherwise(0)).alias("idle"),
    )
    return totals.withColumn("unavoidable", F.greatest(F.lit(0), F.col("members") - F.col("queues")))


def skew(of_members: DataFrame) -> DataFrame:
    """How evenly the queues of all topics of a group are divided.

    Returns:
        run, group, topics, members, least, most (queues of a member over all topics).
    """
    totals = of_members.groupBy("run", "group", "node").agg(
        F.sum("queues").alias("queues"), F.countDistinct("topic").alias("topics")
    )
    return totals.groupBy("run", "group").agg(
        F.max("topics").alias("topics"),
        F.count("*").alias("members"),
        F.min("queues").alias("least"),
        F.max("queues").alias("most"),
    )


def _members(lifecycle: DataFrame) -> DataFrame:
    """Live processes of consumers at the end of the run: run, group, node."""
    ready = lifecycle.where((F.col("role") == "consumer") & (F.col("event") == LifecycleEvent.READY.value))
    alive = ready.join(F.broadcast(process_ends(lifecycle)), list(PROCESS), "left_anti")
    named = alive.select("run", "node", F.explode(F.split("detail", ",")).alias("group"))
    return named.select("run", F.trim("group").alias("group"), "node").where("group <> ''").distinct()
