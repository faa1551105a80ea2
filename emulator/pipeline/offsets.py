"""Silver `offsets`: what the offset of each group in each queue became, with the last commit before."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.pipeline.bronze import QUEUE
from nodes.beliefs import MessageEvent, OwnershipEvent

START = "start"
"""Event of a row about an owner that began."""


def offsets(messages: DataFrame, ownership: DataFrame) -> DataFrame:
    """Commits and resets of groups, and where owners began.

    Args:
        messages: the table.
        ownership: the table.

    Returns:
        run, group, topic, broker_name, queue_id, seq, t_ns, event (committed, reset or start), who (address of the
        client, or node of the owner), offset, last (the last commit or reset before; before the first one, the first
        start; null: there was none).
    """
    columns = (*QUEUE, "seq", "t_ns", "event", "who", "offset")
    is_set = F.col("event").isin(MessageEvent.COMMITTED.value, MessageEvent.RESET.value)
    sets = messages.where(is_set).withColumn("who", F.col("client_id")).select(*columns)
    begins = ownership.where((F.col("event") == OwnershipEvent.ACQUIRED) & (F.col("offset") >= 0))
    starts = begins.withColumn("event", F.lit(START)).withColumn("who", F.col("node")).select(*columns)
    before = Window.partitionBy(*QUEUE).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    is_start = F.col("event") == START
    set_last = F.last(F.when(~is_start, F.col("offset")), ignorenulls=True).over(before)
    first_start = F.first(F.when(is_start, F.col("offset")), ignorenulls=True).over(before)
    return sets.unionAll(starts).withColumn("last", F.coalesce(set_last, first_start)).select(*columns, "last")
