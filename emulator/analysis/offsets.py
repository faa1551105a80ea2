"""Oracles V4 `regress` and V5 `start`: committed offsets that fell, and owners that started elsewhere; V7 `lost`.

V4: the offsets of a group that a broker accepts for a queue never fall. V5: a
new owner of a queue starts at the last commit; a lower start replays messages,
a higher one skips some. A new owner queries the offset while commits are on
their way, so a start that misses only commits of the last second is baseline,
and so are its first commits, which follow from it. All else is a violation.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.baseline import REBALANCE_ROUND_MS
from emulator.analysis.ownership import QUEUE
from emulator.analysis.sweep import Instants, sweep
from nodes.beliefs import MessageEvent, OwnershipEvent

SETTLED_MS = 1_000
"""RocketMQ's minInterval between two passes: a new owner sees all earlier commits."""
_RESULT = "what STRING, t_ns BIGINT, who STRING, expected BIGINT, offset BIGINT, violation BOOLEAN"
_COLUMNS = ["event", "who", "offset"]


class OffsetFault(StrEnum):
    """The kinds of wrong offsets."""

    REGRESSED = "regressed"
    """A commit below the one before (V4)."""
    REPLAYS = "replays"
    """A start below the last commit (V5)."""
    SKIPS = "skips"
    """A start above the last commit (V5)."""


def offset_faults(ownership: DataFrame, messages: DataFrame) -> DataFrame:
    """Commits below the last commit, and starts that differ from it.

    Returns:
        run, group, topic, broker_name, queue_id, what (`OffsetFault`), t_ns, who (node that started; address that
        committed), expected (the last commit), offset, violation.
    """
    starts = ownership.where((F.col("event") == OwnershipEvent.ACQUIRED.value) & (F.col("offset") >= 0))
    commits = messages.where(F.col("event") == MessageEvent.COMMITTED.value)
    columns = [*QUEUE, "t_ns", "seq", "event"]
    rows = starts.select(*columns, F.col("node").alias("who"), "offset").union(
        commits.select(*columns, F.col("client_id").alias("who"), "offset")
    )
    return sweep(rows, QUEUE, _COLUMNS, _RESULT, faults_of_queue)


@attrs.define
class _Offsets:
    """The state of a queue's offset so far."""

    last: int = -1
    """The last commit; before the first one, the first start."""
    settled: int = -1
    recent: list[tuple[int, int]] = attrs.Factory(list)
    start: int = -1
    started_ns: int = -1
    healthy_start: bool = False

    def settle(self, t_ns: int) -> None:
        while self.recent and self.recent[0][0] <= t_ns - SETTLED_MS * 1_000_000:
            self.settled = self.recent.pop(0)[1]


def faults_of_queue(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `offset_faults`: rows of event, who, offset."""
    known = _Offsets()
    for t_ns, rows in instants:
        known.settle(t_ns)
        for event, who, offset in rows:
            if event == OwnershipEvent.ACQUIRED:
                yield from _start(known, t_ns, who, offset)
            else:
                if offset < known.last:
                    yield (
                        OffsetFault.REGRESSED.value,
                        t_ns,
                        who,
                        known.last,
                        offset,
                        not _is_baseline(known, t_ns, offset),
                    )
                known.last = offset
                known.recent.append((t_ns, offset))


def _start(known: _Offsets, t_ns: int, who: str, offset: int) -> Iterator[tuple[Any, ...]]:
    known.healthy_start = known.settled <= offset <= known.last or known.last < 0
    if 0 <= known.last != offset:
        what = OffsetFault.REPLAYS if offset < known.last else OffsetFault.SKIPS
        yield what.value, t_ns, who, known.last, offset, not known.healthy_start
    known.start, known.started_ns = offset, t_ns
    if known.last < 0:
        known.last = known.settled = offset


def _is_baseline(known: _Offsets, t_ns: int, offset: int) -> bool:
    """Whether the commit is one of a new owner whose start was baseline."""
    young = known.started_ns >= 0 and t_ns - known.started_ns <= REBALANCE_ROUND_MS * 1_000_000
    return young and known.healthy_start and offset >= known.start


DEAD_LETTER_PREFIX = "%DLQ%"
_GUEST_ADDRESS = r"^(?!127\.1\.)\d+\.\d+\.\d+\.\d+:\d+$"
"""Addresses of guests that commit; those of emulated nodes begin with 127.1."""
_OF_TOPIC = ["run", "topic", "broker_name", "queue_id"]


def lost(ownership: DataFrame, messages: DataFrame, faults: DataFrame) -> DataFrame:
    """Messages that will never be consumed.

    Args:
        ownership: table of the trace.
        messages: table of the trace.
        faults: as `offset_faults` returns them.

    Returns:
        run, group, topic, broker_name, queue_id, first_offset, last_offset, lost, skipped (of these).
    """
    owed = (
        ownership.where((F.col("event") == OwnershipEvent.ACQUIRED.value) & (F.col("offset") >= 0))
        .groupBy(*QUEUE)
        .agg(F.min("offset").alias("first"))
    )
    by_guests = F.max(F.when(F.col("client_id").rlike(_GUEST_ADDRESS), F.col("offset")))
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
    """Messages that groups sent to their dead-letter topics.

    Returns:
        run, group, dead_letters.
    """
    letters = _of(messages, MessageEvent.STORED).where(F.col("topic").startswith(DEAD_LETTER_PREFIX))
    group = F.substring_index("topic", DEAD_LETTER_PREFIX, -1)
    return letters.groupBy("run", group.alias("group")).agg(F.count("*").alias("dead_letters"))


def _of(messages: DataFrame, event: MessageEvent) -> DataFrame:
    return messages.where(F.col("event") == event.value)
