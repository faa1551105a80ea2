"""Oracle V6 `view`, split: whether consumers disagreed about the members or about the queues.

Passes that end in the same round should work from one list of members and one
set of queues. A view holds both, so that views differ says not which: here each
half is held against the others by itself.
"""

from enum import StrEnum
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.view import view
from nodes.beliefs import BeliefKind


class ViewPart(StrEnum):
    """Half of what a pass allocates from."""

    MEMBERS = "cids"
    """The ids of the group's clients."""
    QUEUES = "queues"
    """The queues of the topic."""


def view_parts(beliefs: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """Maximal intervals in which live consumers hold more than one value of a half.

    Returns:
        run, part, subject, start_ns, end_ns, views_max, open.
    """
    views = beliefs.where(F.col("kind") == BeliefKind.VIEW.value)
    found = [_half(views, part, lifecycle, runs) for part in ViewPart]
    return reduce(lambda left, right: left.union(right), found)


def _half(views: DataFrame, part: ViewPart, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    half = F.get_json_object("value", f"$.{part.value}")
    held = F.col("value_hash") != ""
    values = views.withColumn("value_hash", F.when(held, F.md5(F.coalesce(half, F.lit("")))).otherwise(""))
    return view(values, lifecycle, runs).select(
        "run", F.lit(part.value).alias("part"), "subject", "start_ns", "end_ns", "views_max", "open"
    )
