"""Oracle V7 `lost`: stored messages that a group has passed over.

A group owes each message of its queues one consumption at least, from the
first offset at which one of its members started. What is stored below the
highest commit and was never consumed is lost: skipped, where a new owner
started above the last commit, or passed over. What lies above the highest
commit still waits and is no loss. A dead letter was consumed, in vain; they
are counted apart. What programs outside consume is not seen: what one of them has
committed counts as consumed.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.offsets import OffsetFault
from emulator.analysis.ownership import QUEUE
from nodes.beliefs import MessageEvent, OwnershipEvent

DEAD_LETTER_PREFIX = "%DLQ%"
_OUTSIDE = r"^(?!127\.1\.)\d+\.\d+\.\d+\.\d+:\d+$"
"""Addresses of who commits from outside; those of emulated nodes begin with 127.1."""
_OF_TOPIC = ["run", "topic", "broker_name", "queue_id"]


def lost(ownership: DataFrame, messages: DataFrame, faults: DataFrame) -> DataFrame:
    """Messages that nobody will consume any more.

    Args:
        faults: as `offset_faults` gives them.

    Returns:
        run, group, topic, broker_name, queue_id, first_offset, last_offset, lost, skipped (of these).
    """
    owed = (
        ownership.where((F.col("event") == OwnershipEvent.ACQUIRED.value) & (F.col("offset") >= 0))
        .groupBy(*QUEUE)
        .agg(F.min("offset").alias("first"))
    )
    by_guests = F.max(F.when(F.col("client_id").rlike(_OUTSIDE), F.col("offset")))
    passed = (
        _of(messages, MessageEvent.COMMITTED)
        .groupBy(*QUEUE)
        .agg(F.max("offset").alias("passed"), F.coalesce(by_guests, F.lit(-1)).alias("acknowledged"))
    )
    stored = _of(messages, MessageEvent.STORED).select(*_OF_TOPIC, "offset").distinct()
    consumed = _of(messages, MessageEvent.CONSUMED).select(*QUEUE, "offset").distinct()
    missing = (
        stored.join(F.broadcast(owed.join(passed, QUEUE)), _OF_TOPIC)
        .where("offset >= first AND offset >= acknowledged AND offset < passed")
        .join(consumed, [*QUEUE, "offset"], "left_anti")
    )
    jumps = faults.where(F.col("what") == OffsetFault.SKIPS.value).select(
        *QUEUE, F.col("expected").alias("jumped_from"), F.col("offset").alias("jumped_to")
    )
    skipped = (F.col("offset") >= F.col("jumped_from")) & (F.col("offset") < F.col("jumped_to"))
    return (
        missing.join(F.broadcast(jumps), QUEUE, "left")
        .groupBy(*QUEUE, "offset")
        .agg(F.max(F.coalesce(skipped, F.lit(False)).cast("int")).alias("skipped"))
        .groupBy(*QUEUE)
        .agg(
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.count("*").alias("lost"),
            F.sum("skipped").alias("skipped"),
        )
    )


def dead_letters(messages: DataFrame) -> DataFrame:
    """Messages that a group gave up.

    Returns:
        run, group, dead_letters.
    """
    letters = _of(messages, MessageEvent.STORED).where(F.col("topic").startswith(DEAD_LETTER_PREFIX))
    group = F.substring_index("topic", DEAD_LETTER_PREFIX, -1)
    return letters.groupBy("run", group.alias("group")).agg(F.count("*").alias("dead_letters"))


def _of(messages: DataFrame, event: MessageEvent) -> DataFrame:
    return messages.where(F.col("event") == event.value)
