"""Who held which queue from when to when: what `overlap`, `orphan` and the picture build on."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.processes import with_ends
from emulator.analysis.sweep import close_at_end
from nodes.beliefs import OwnershipEvent

QUEUE = ["run", "group", "topic", "broker_name", "queue_id"]


def ownership_changes(ownership: DataFrame, lifecycle: DataFrame) -> DataFrame:
    """Rows in which a process gains or loses a queue; the end of a process loses all it has.

    Returns:
        the queue, node, incarnation, seq, t_ns, event (acquired or dropped).
    """
    dropped = OwnershipEvent.DROPPED.value
    changes = ownership.where(F.col("event").isin(OwnershipEvent.ACQUIRED.value, dropped))
    return with_ends(changes, QUEUE, lifecycle, {"event": dropped})


def holds(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """Each uninterrupted hold of a process on a queue.

    Returns:
        the queue, node, incarnation, start_ns, end_ns, open.
    """
    by_seq = Window.partitionBy(*QUEUE, "node", "incarnation").orderBy("seq")
    owns = F.col("event") == OwnershipEvent.ACQUIRED.value
    found = (
        ownership_changes(ownership, lifecycle)
        .withColumn("owns", owns)
        .withColumn("owned", F.lag("owns", 1, False).over(by_seq))
        .where("owns <> owned")
        .withColumn("end_ns", F.lead("t_ns").over(by_seq))
        .where("owns")
        .withColumnRenamed("t_ns", "start_ns")
    )
    return close_at_end(found, runs).select(*QUEUE, "node", "incarnation", "start_ns", "end_ns", "open")
