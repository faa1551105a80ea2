"""The baseline: the divergence that every healthy rebalance shows, as opposed to violations.

Every consumer of RocketMQ rebalances by itself, so for a moment views differ
and queues have two owners or none. Divergence that lasts longer than one round
is a violation. At start-up one route poll is added: the group's first heartbeat
creates the `%RETRY%` topic, and consumers that requested its route before see
it at their next poll.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REBALANCE_ROUND_MS = 21_000
"""RocketMQ's waitInterval (20 s) + minInterval (1 s): within it each live consumer makes a pass."""
ROUTE_POLL_MS = 30_000
"""RocketMQ's pollNameServerInterval."""


def with_violation(intervals: DataFrame, agreed: DataFrame, round_ms: int = REBALANCE_ROUND_MS) -> DataFrame:
    """Add the column `violation` to intervals; false means baseline.

    Args:
        intervals: run, start_ns, end_ns and further columns.
        agreed: run, agreed_ns. An interval that began less than a round after the first agreement belongs to
            start-up, since that agreement may be momentary. A run that never agreed has no start-up.
        round_ms: longest baseline.
    """
    round_ns, poll_ns = round_ms * 1_000_000, ROUTE_POLL_MS * 1_000_000
    startup = F.coalesce(F.col("start_ns") < F.col("agreed_ns") + round_ns, F.lit(False))
    limit_ns = F.when(startup, round_ns + poll_ns).otherwise(round_ns)
    return (
        intervals.join(F.broadcast(agreed), "run", "left")
        .withColumn("violation", F.col("end_ns") - F.col("start_ns") > limit_ns)
        .drop("agreed_ns")
    )
