"""Silver `queue_holds`: which consumer owned which queue, from when to when."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.history.owners import OWNED, POPPED
from emulator.pipeline.bronze import QUEUE
from emulator.pipeline.processes import of_living
from nodes.beliefs import OwnershipEvent

_TAKES = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.POP_ACQUIRED.value)


def queue_holds(ownership: DataFrame, lives: DataFrame) -> DataFrame:
    """Who owned each queue, from the table `ownership`.

    Args:
        ownership: the table.
        lives: as `processes` returns them.

    Returns:
        run, group, topic, broker_name, queue_id, node, incarnation, start_ns, end_ns (null: to the end of the run),
        asleep: spans in which the process was suspended.
    """
    owned = taken_queues(ownership, lives).where(~F.col("pops"))
    lasts = F.col("end_ns").isNull() | (F.col("start_ns") < F.col("end_ns"))
    return owned.where(lasts).drop("pops")


def taken_queues(ownership: DataFrame, lives: DataFrame) -> DataFrame:
    """Who owned or popped each queue, also for no time.

    Args:
        ownership: the table.
        lives: as `processes` returns them.

    Returns:
        The columns of `queue_holds`, and pops: whether the member shares the queue with others; queue_id -1 is all
        queues of the broker then.
    """
    event = F.col("event")
    taken = ownership.where(event.isin(*OWNED, *POPPED))
    taken = taken.withColumn("pops", event.isin(*POPPED)).withColumn("takes", event.isin(*_TAKES))
    rows = of_living(taken.repartition(*QUEUE), lives)
    in_order = Window.partitionBy(*QUEUE, "pops", "node", "incarnation").orderBy("seq")
    before = F.coalesce(F.lag("takes").over(in_order), F.lit(False))
    rows = rows.withColumn("before", before).where(F.col("takes") != F.col("before"))
    rows = rows.withColumn("end_ns", F.coalesce(F.lead("t_ns").over(in_order), F.col("dead_ns")))
    return rows.where("takes").select(
        *QUEUE, "node", "incarnation", F.col("t_ns").alias("start_ns"), "end_ns", "asleep", "pops"
    )
