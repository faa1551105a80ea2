"""Silver `queue_holds`: which consumer owned which queue, from when to when."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.pipeline.keys import QUEUE
from emulator.pipeline.processes import of_living
from nodes.beliefs import OwnershipEvent


def queue_holds(ownership: DataFrame, lives: DataFrame) -> DataFrame:
    """Who owned each queue, from the table `ownership`.

    Args:
        ownership: the table.
        lives: as `processes` returns them.

    Returns:
        run, group, topic, broker_name, queue_id, node, incarnation, start_ns, end_ns (null: to the end of the run),
        asleep: spans in which the process was suspended.
    """
    taken = ownership.where(F.col("event").isin(OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value))
    rows = of_living(taken.repartition(*QUEUE), lives)
    in_order = Window.partitionBy(*QUEUE, "node", "incarnation").orderBy("seq")
    before = F.coalesce(F.lag("event").over(in_order), F.lit(OwnershipEvent.DROPPED.value))
    rows = rows.withColumn("before", before).where(F.col("event") != F.col("before"))
    rows = rows.withColumn("end_ns", F.coalesce(F.lead("t_ns").over(in_order), F.col("dead_ns")))
    is_acquired = F.col("event") == OwnershipEvent.ACQUIRED
    lasts = F.col("end_ns").isNull() | (F.col("t_ns") < F.col("end_ns"))
    return rows.where(is_acquired & lasts).select(
        *QUEUE, "node", "incarnation", F.col("t_ns").alias("start_ns"), "end_ns", "asleep"
    )
