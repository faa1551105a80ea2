"""Oracle `orphan`: queues that nobody owns although somebody could.

A queue exists from its first `acquired` in the run on, so start-up does not
count. It is an orphan while it has no owner and at least one consumer process
of its group is alive, suspended ones included: they could own it, and do not.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import QUEUE, holds, ownership_changes
from emulator.analysis.processes import group_alive
from emulator.analysis.sweep import close_at_end, islands, running_levels
from nodes.beliefs import OwnershipEvent

_STEPS = ["owners", "alive", "exists"]


def orphan(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame, held: DataFrame | None = None) -> DataFrame:
    """Maximal intervals in which a queue has no owner while its group has a live consumer.

    Args:
        held: what `holds` answers for the same tables, where it is there already.

    Returns:
        run, group, topic, broker_name, queue_id, start_ns, end_ns, open.
    """
    if held is None:
        held = holds(ownership, lifecycle, runs)
    first = (
        ownership_changes(ownership, lifecycle)
        .where(F.col("event") == OwnershipEvent.ACQUIRED.value)
        .groupBy(*QUEUE)
        .agg(F.min("t_ns").alias("t_ns"))
    )
    # Only the births and deaths of whole groups are spread over their queues, so the join stays small.
    alive = group_alive(lifecycle).join(first.drop("t_ns"), ["run", "group"])
    steps = (
        _steps(held, "start_ns", owners=1)
        .union(_steps(held.where("NOT open"), "end_ns", owners=-1))
        .union(_steps(first, "t_ns", exists=1))
        .union(alive.select(*QUEUE, "t_ns", F.lit(0), F.col("alive_step"), F.lit(0)))
    )
    levels = running_levels(steps, QUEUE, _STEPS)
    inside = (F.col("owners") == 0) & (F.col("alive") > 0) & (F.col("exists") > 0)
    found = islands(levels, QUEUE, inside, "owners", "owners_max")
    return close_at_end(found, runs).select(*QUEUE, "start_ns", "end_ns", "open")


def _steps(rows: DataFrame, at: str, *, owners: int = 0, exists: int = 0) -> DataFrame:
    return rows.select(
        *QUEUE,
        F.col(at).alias("t_ns"),
        F.lit(owners).alias("owners"),
        F.lit(0).alias("alive"),
        F.lit(exists).alias("exists"),
    )
