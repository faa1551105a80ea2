"""What every healthy rebalance shows, set apart from what is wrong.

Consumers of RocketMQ rebalance each on its own, so for a moment views differ
and queues have two owners or none. Only what outlasts one round is a violation.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

REBALANCE_ROUND_MS = 21_000
"""RocketMQ's waitInterval (20 s) + minInterval (1 s): by then each live consumer has made a pass."""


def violation(round_ms: int = REBALANCE_ROUND_MS) -> Column:
    """True for an interval (start_ns, end_ns) that is longer than one rebalance round."""
    return F.col("end_ns") - F.col("start_ns") > round_ms * 1_000_000


def with_violation(intervals: DataFrame, round_ms: int = REBALANCE_ROUND_MS) -> DataFrame:
    """Add `violation` to intervals: false means baseline."""
    return intervals.withColumn("violation", violation(round_ms))
