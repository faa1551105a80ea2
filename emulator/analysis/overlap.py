"""Oracle `overlap`: queues that two or more consumers of one group own at once.

A consumer owns a queue from `acquired` to `dropped` or to the end of its
process. Every message of the queue may reach the group twice meanwhile.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import QUEUE, ownership_changes
from emulator.analysis.sweep import Instants, close_at_end, sweep
from nodes.beliefs import OwnershipEvent

_RESULT = "start_ns BIGINT, end_ns BIGINT, owners_max BIGINT, owners ARRAY<STRING>"


def overlap(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """Maximal intervals in which a queue has at least two owners.

    Returns:
        run, group, topic, broker_name, queue_id, start_ns, end_ns, owners_max, owners (names of all who owned it
        meanwhile, ordered), open.
    """
    changes = ownership_changes(ownership, lifecycle)
    found = sweep(changes, QUEUE, ["node", "incarnation", "event"], _RESULT, overlapping_intervals)
    found = found.withColumn("end_ns", F.when(F.col("end_ns") >= 0, F.col("end_ns")))
    return close_at_end(found, runs).select(*QUEUE, "start_ns", "end_ns", "owners_max", "owners", "open")


def overlapping_intervals(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The machine of `overlap`: rows of node, incarnation, event.

    Yields:
        start_ns, end_ns (-1: open), owners_max, owners.
    """
    owners: dict[tuple[str, int], None] = {}
    seen: dict[str, None] = {}
    start_ns = -1
    owners_max = 0
    for t_ns, rows in instants:
        for node, incarnation, event in rows:
            if event == OwnershipEvent.ACQUIRED:
                owners[node, incarnation] = None
            else:
                owners.pop((node, incarnation), None)
        if len(owners) > 1:
            if start_ns < 0:
                start_ns, owners_max, seen = t_ns, 0, {}
            owners_max = max(owners_max, len(owners))
            seen.update((node, None) for node, _ in owners)
        elif start_ns >= 0:
            yield start_ns, t_ns, owners_max, sorted(seen)
            start_ns = -1
    if start_ns >= 0:
        yield start_ns, -1, owners_max, sorted(seen)
