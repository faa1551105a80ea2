"""Gold: the findings about runs, one table per kind, by windows where a window can find them, else by the sweep."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.tidy import schema_of_runs
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.consumption import broadcasting, consumptions, duplicates, latencies
from emulator.pipeline.processes import processes
from emulator.pipeline.queue_holds import queue_holds
from emulator.pipeline.swept import found
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP


def _holds(bronze: Bronze) -> DataFrame:
    held = queue_holds(bronze.table(OWNERSHIP), processes(bronze.table(LIFECYCLE)))
    ends = F.broadcast(bronze.runs.select("run", F.col("end_ns").alias("run_end_ns")))
    known = held.join(ends, "run").withColumn("censored", F.col("end_ns").isNull())
    ended = known.withColumn("end_ns", F.coalesce("end_ns", "run_end_ns"))
    return ended.where(F.col("start_ns") < F.col("end_ns"))


def _consumed(bronze: Bronze) -> DataFrame:
    return consumptions(bronze.table(MESSAGES), broadcasting(bronze.table(BELIEFS)))


BY_WINDOWS: Mapping[str, Callable[[Bronze], DataFrame]] = {
    "holds": _holds,
    "latencies": lambda bronze: latencies(_consumed(bronze)),
    "duplicates": lambda bronze: duplicates(_consumed(bronze)),
}
"""Mapping name -> gold table without its column `seed`; no Python runs in these."""


def gold(bronze: Bronze, name: str, *, rows_per_share: int | None = None) -> DataFrame:
    """A gold table: the findings of one kind about all runs.

    Args:
        bronze: the landed tables.
        name: of `emulator.analysis.tidy.TABLES`, or `runs`.
        rows_per_share: a run with more messages is divided into shares of about so many; None: no run is.

    Returns:
        The columns of the table, with `run` and `seed` in front; `runs` has its own `seed`.
    """
    if name not in BY_WINDOWS:
        return found(bronze, name, rows_per_share=rows_per_share)
    seeds = F.broadcast(bronze.runs.select("run", "seed"))
    return BY_WINDOWS[name](bronze).join(seeds, "run").select(*schema_of_runs(name).names)
