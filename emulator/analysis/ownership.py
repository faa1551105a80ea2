"""Ownership of queues: holds, oracle V1 `overlap` and oracle V2 `orphan`, and the ends of processes."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.sweep import Instants, close_at_end, islands, running_levels, sweep
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent, OwnershipEvent

PROCESS = ("run", "node", "incarnation")


def process_ends(lifecycle: DataFrame) -> DataFrame:
    """The end of each process that ended.

    Returns:
        run, node, incarnation, end_seq, ended_ns.
    """
    return (
        lifecycle.where(F.col("event").isin([event.value for event in PROCESS_ENDS]))
        .groupBy(*PROCESS)
        .agg(F.min("seq").alias("end_seq"), F.min("t_ns").alias("ended_ns"))
    )


def with_ends(rows: DataFrame, key: list[str], lifecycle: DataFrame, gone: dict[str, str]) -> DataFrame:
    """Add a row for the end of each process that holds something.

    Args:
        rows: has run, node, incarnation, seq, t_ns, the columns of `key` and those of `gone`.
        key: columns that identify what a process holds.
        lifecycle: table of the trace.
        gone: mapping column -> text in the added rows.

    Returns:
        key, node, incarnation, seq, t_ns and the columns of `gone`, without rows after the end of a process.
    """
    ends = F.broadcast(process_ends(lifecycle))
    known = rows.join(ends, list(PROCESS), "left").where("end_seq IS NULL OR seq < end_seq")
    columns = [*key, "node", "incarnation", "seq", "t_ns", *gone]
    last_words = (
        known.where("end_seq IS NOT NULL")
        .select(*key, "node", "incarnation", F.col("end_seq").alias("seq"), F.col("ended_ns").alias("t_ns"))
        .distinct()
        .select("*", *[F.lit(text).alias(name) for name, text in gone.items()])
    )
    return known.select(*columns).union(last_words.select(*columns))


def group_alive(lifecycle: DataFrame) -> DataFrame:
    """When consumer groups have live members.

    A process is a member of the groups in its `started` or `ready` row, from the
    first such row until it ends; a suspended process is alive.

    Returns:
        run, group, t_ns, alive_step: +1 if the first member appears, -1 if the last one ends.
    """
    consumers = lifecycle.where("role = 'consumer'")
    named = consumers.where(F.col("event").isin(LifecycleEvent.STARTED.value, LifecycleEvent.READY.value))
    members = (
        named.join(F.broadcast(process_ends(consumers)), list(PROCESS), "left")
        .where("end_seq IS NULL OR seq < end_seq")
        .select(*PROCESS, "t_ns", "ended_ns", F.explode(F.split("detail", ",")).alias("group"))
        .withColumn("group", F.trim("group"))
        .where("group <> ''")
        .groupBy(*PROCESS, "group")
        .agg(F.min("t_ns").alias("t_ns"), F.first("ended_ns").alias("ended_ns"))
    )
    steps = members.select("run", "group", "t_ns", F.lit(1).alias("members")).union(
        members.where("ended_ns IS NOT NULL").select("run", "group", "ended_ns", F.lit(-1))
    )
    by_time = Window.partitionBy("run", "group").orderBy("t_ns")
    alive = F.when(F.col("members") > 0, 1).otherwise(0)
    return (
        running_levels(steps, ["run", "group"], ["members"])
        .select("run", "group", "t_ns", (alive - F.lag(alive, 1, 0).over(by_time)).alias("alive_step"))
        .where("alive_step <> 0")
    )


QUEUE = ["run", "group", "topic", "broker_name", "queue_id"]


def ownership_changes(ownership: DataFrame, lifecycle: DataFrame) -> DataFrame:
    """Rows in which a process gains or loses a queue; at its end it loses all its queues.

    Returns:
        the queue, node, incarnation, seq, t_ns, event (acquired or dropped).
    """
    dropped = OwnershipEvent.DROPPED.value
    changes = ownership.where(F.col("event").isin(OwnershipEvent.ACQUIRED.value, dropped))
    return with_ends(changes, QUEUE, lifecycle, {"event": dropped})


def holds(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """The uninterrupted holds of processes on queues.

    Returns:
        the queue, node, incarnation, start_ns, end_ns, open.
    """
    by_seq = Window.partitionBy(*QUEUE, "node", "incarnation").orderBy("seq")
    owns = F.col("event") == OwnershipEvent.ACQUIRED.value
    found = (
        ownership_changes(ownership, lifecycle)
        .withColumn("owns", owns)
        .withColumn("owned", F.lag("owns", 1, False).over(by_seq))
        .where("owns <> owned")
        .withColumn("end_ns", F.lead("t_ns").over(by_seq))
        .where("owns")
        .withColumnRenamed("t_ns", "start_ns")
    )
    return close_at_end(found, runs).select(*QUEUE, "node", "incarnation", "start_ns", "end_ns", "open")


_RESULT = "start_ns BIGINT, end_ns BIGINT, owners_max BIGINT, owners ARRAY<STRING>"


def overlap(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """Maximal intervals in which a queue has at least two owners.

    Returns:
        run, group, topic, broker_name, queue_id, start_ns, end_ns, owners_max, owners (names of all owners
        meanwhile, sorted), open.
    """
    changes = ownership_changes(ownership, lifecycle)
    found = sweep(changes, QUEUE, ["node", "incarnation", "event"], _RESULT, overlapping_intervals)
    found = found.withColumn("end_ns", F.when(F.col("end_ns") >= 0, F.col("end_ns")))
    return close_at_end(found, runs).select(*QUEUE, "start_ns", "end_ns", "owners_max", "owners", "open")


def overlapping_intervals(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `overlap`: rows of node, incarnation, event.

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


_STEPS = ["owners", "alive", "exists"]


def orphan(ownership: DataFrame, lifecycle: DataFrame, runs: DataFrame, held: DataFrame | None = None) -> DataFrame:
    """Maximal intervals in which a queue has no owner while its group has a live consumer.

    Args:
        ownership: table of the trace.
        lifecycle: table of the trace.
        runs: run, end_ns.
        held: result of `holds` for the same tables, if it exists already.

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
    # Only the changes of whole groups are joined with their queues, so the join stays small.
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
