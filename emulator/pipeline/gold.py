"""Gold: the findings about runs, one table per kind, by windows where a window can find them, else by the sweep."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.arrow_tables import schema_of_runs
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.history.rows.reads import EVERYTHING, WITHOUT_MESSAGES, MessagesRead, Reads
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.consumption import broadcasting, consumptions, duplicates, first_consumptions, latencies
from emulator.pipeline.processes import processes
from emulator.pipeline.queue_holds import queue_holds
from emulator.pipeline.sweep_tasks import found
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP


def _holds(bronze: Bronze) -> DataFrame:
    held = queue_holds(bronze.table(OWNERSHIP), processes(bronze.table(LIFECYCLE)))
    ends = F.broadcast(bronze.runs.select("run", F.col("end_ns").alias("run_end_ns")))
    known = held.join(ends, "run").withColumn("censored", F.col("end_ns").isNull())
    ended = known.withColumn("end_ns", F.coalesce("end_ns", "run_end_ns"))
    return ended.where(F.col("start_ns") < F.col("end_ns"))


def _messages_and_groups(bronze: Bronze) -> tuple[DataFrame, DataFrame]:
    return bronze.table(MESSAGES), broadcasting(bronze.table(BELIEFS))


BY_WINDOWS: Mapping[str, Callable[[Bronze], DataFrame]] = {
    "holds": _holds,
    "latencies": lambda bronze: latencies(first_consumptions(*_messages_and_groups(bronze))),
    "duplicates": lambda bronze: duplicates(consumptions(*_messages_and_groups(bronze))),
}
"""Mapping name -> gold table without its column `seed`; no Python runs in these."""


DIVERGENCES = ("views", "assigner_disagreements", "membership", "proxy_disagreements", "beliefs")
"""Tables of findings about values that nodes held; they have the same columns."""
READS: Mapping[str, Reads] = {
    **{oracle.table.name: oracle.rows for oracle in ORACLES if oracle.rows != EVERYTHING},
    **dict.fromkeys(("beliefs", "budgets", "agreement", "faults", "marks"), WITHOUT_MESSAGES),
    **dict.fromkeys(("idle", "queue_balance", "stale_routes", "unwritable", "broker_states"), WITHOUT_MESSAGES),
    **dict.fromkeys(("unsupported_requests", "not_measured", "denied_requests"), WITHOUT_MESSAGES),
    **dict.fromkeys(("failed_starts", "without_proxy"), WITHOUT_MESSAGES),
    **dict.fromkeys(("storms", "requests", "attempts"), Reads(MessagesRead.NONE)),
}
"""Mapping name -> the rows that a table needs, of oracles as they declare it; those that are missing need all."""


def gold(bronze: Bronze, *names: str, rows_per_share: int | None = None) -> DataFrame:
    """A gold table: the findings of one kind about all runs.

    Args:
        bronze: the landed tables.
        names: of `emulator.analysis.arrow_tables.TABLES`, or `runs`; several of `DIVERGENCES` are found together.
        rows_per_share: a run with more messages is divided into shares of about so many; None: no run is.

    Returns:
        The columns of the table, with `run` and `seed` in front; `runs` has its own `seed`.
    """
    name = names[0]
    if name not in BY_WINDOWS:
        reads = READS.get(name, EVERYTHING)
        shares = rows_per_share if reads.messages is MessagesRead.ALL else None
        return found(bronze, *names, reads=reads, rows_per_share=shares)
    seeds = F.broadcast(bronze.runs.select("run", "seed"))
    return BY_WINDOWS[name](bronze).join(seeds, "run").select(*schema_of_runs(name).names)
