"""What every healthy rebalance shows, set apart from what is wrong.

Consumers of RocketMQ rebalance each on its own, so for a moment views differ
and queues have two owners or none. Only what outlasts one round is a
violation. Start-up gets one route poll more: a `%RETRY%` topic is created by
the group's first heartbeat, and consumers that asked for its route before
see it at their next poll.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REBALANCE_ROUND_MS = 21_000
"""RocketMQ's waitInterval (20 s) + minInterval (1 s): by then each live consumer has made a pass."""
ROUTE_POLL_MS = 30_000
"""RocketMQ's pollNameServerInterval."""


def with_violation(intervals: DataFrame, agreed: DataFrame, round_ms: int = REBALANCE_ROUND_MS) -> DataFrame:
    """Add `violation` to intervals: false means baseline.

    Args:
        intervals: run, start_ns, end_ns and more.
        agreed: run, agreed_ns; what began less than a round after the first agreement of its run is start-up, for
            that agreement may be momentary. A run that never agreed has no start-up to excuse.
        round_ms: baseline lasts no longer than this.
    """
    round_ns, poll_ns = round_ms * 1_000_000, ROUTE_POLL_MS * 1_000_000
    startup = F.coalesce(F.col("start_ns") < F.col("agreed_ns") + round_ns, F.lit(False))
    limit_ns = F.when(startup, round_ns + poll_ns).otherwise(round_ns)
    return (
        intervals.join(F.broadcast(agreed), "run", "left")
        .withColumn("violation", F.col("end_ns") - F.col("start_ns") > limit_ns)
        .drop("agreed_ns")
    )
