"""The invariants of consumption and the limits of rebalancing of one run."""

from typing import Any

import attrs
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from emulator.analysis.baseline import with_violation
from emulator.analysis.findings import (
    DeadLetters,
    Disorder,
    Duplicates,
    HalfView,
    HandOver,
    Idle,
    Invariants,
    Limits,
    LostMessages,
    OffsetSlip,
    Orphan,
    Overlap,
    Skew,
)
from emulator.analysis.frames import Frames
from emulator.analysis.hand_overs import duplicates, hand_overs
from emulator.analysis.offsets import OffsetFault, dead_letters, lost, offset_faults
from emulator.analysis.order import order
from emulator.analysis.ownership import QUEUE
from emulator.analysis.shares import idle, shares, skew
from emulator.analysis.views import ViewPart, view_parts
from emulator.state.owners import GroupQueue


@attrs.frozen
class Judgement:
    """The judgement about one invariant."""

    id: str
    title: str
    """The invariant in RocketMQ's terms."""
    words: str
    """The amount of the findings, for people."""
    rows: tuple[Any, ...]
    """The findings."""

    @property
    def violations(self) -> int:
        """Number of findings that are violations; a lost message always is one."""
        return sum(getattr(row, "violation", True) for row in self.rows)


def invariants(frames: Frames, agreed: DataFrame, round_ms: int) -> Invariants:
    """Check V3 to V7 of one run; findings are in order of time, or of queues.

    Args:
        frames: of the run.
        agreed: run, agreed_ns.
        round_ms: longest baseline.
    """
    life, ownership, messages = frames.lifecycle, frames.ownership, frames.messages
    slips = offset_faults(ownership, messages).localCheckpoint()
    unlocked = with_violation(order(frames.beliefs, messages, life), agreed, round_ms)
    unlocked = unlocked.withColumn("violation", F.col("violation") | F.col("disordered"))
    halves = with_violation(view_parts(frames.beliefs, life, frames.runs), agreed, round_ms)
    return Invariants(
        disorders=_rows(unlocked, Disorder, "start_ns", *QUEUE, "node"),
        offset_slips=_rows(slips, OffsetSlip, "t_ns", *QUEUE, "offset"),
        half_views=_rows(halves, HalfView, "start_ns", "end_ns", "part", "subject"),
        losses=_rows(lost(ownership, messages, slips), LostMessages, *QUEUE),
        dead_letters=_rows(dead_letters(messages), DeadLetters, "group"),
    )


def limits(frames: Frames, held: DataFrame) -> Limits:
    """Measure the limits of rebalancing in one run.

    Args:
        frames: of the run.
        held: as `holds` returns it.
    """
    of_members = shares(held, frames.lifecycle).localCheckpoint()
    return Limits(
        duplicates=_rows(duplicates(frames.messages), Duplicates, *QUEUE),
        hand_overs=_rows(hand_overs(frames.ownership, frames.messages), HandOver, "resume_ns", *QUEUE),
        idle=_rows(idle(of_members), Idle, "group", "topic"),
        skew=_rows(skew(of_members), Skew, "group"),
    )


def judgements(overlaps: tuple[Overlap, ...], orphans: tuple[Orphan, ...], broken: Invariants) -> tuple[Judgement, ...]:
    """The judgements about V1 to V7, in order."""
    return (
        Judgement("V1", "at most one process queue per message queue", f"two owners for {_total(overlaps)}", overlaps),
        Judgement("V2", "every readable message queue has an owner", f"no owner for {_total(orphans)}", orphans),
        _of_order(broken),
        *_of_offsets(broken),
        _of_views(broken),
        _of_losses(broken),
    )


def _of_order(broken: Invariants) -> Judgement:
    unlocked = sum(row.messages for row in broken.disorders)
    title = "orderly listeners only under the broker's lock"
    return Judgement("V3", title, f"{unlocked} messages outside", broken.disorders)


def _of_offsets(broken: Invariants) -> tuple[Judgement, Judgement]:
    amounts = dict.fromkeys(OffsetFault, 0)
    for row in broken.offset_slips:
        amounts[OffsetFault(row.what)] += abs(row.expected - row.offset)
    regressed = tuple(row for row in broken.offset_slips if row.what == OffsetFault.REGRESSED)
    starts = tuple(row for row in broken.offset_slips if row.what != OffsetFault.REGRESSED)
    moved = f"{amounts[OffsetFault.REPLAYS]} offsets replayed, {amounts[OffsetFault.SKIPS]} skipped"
    return (
        Judgement("V4", "committed offsets never fall", f"{amounts[OffsetFault.REGRESSED]} offsets back", regressed),
        Judgement("V5", "a successor pulls from the last commit", moved, starts),
    )


def _of_views(broken: Invariants) -> Judgement:
    times = {part: sum(row.part == part for row in broken.half_views) for part in ViewPart}
    words = f"mqAll differed {times[ViewPart.QUEUES]} times, cidAll {times[ViewPart.MEMBERS]} times"
    return Judgement("V6", "passes of a round see equal mqAll and cidAll", words, broken.half_views)


def _of_losses(broken: Invariants) -> Judgement:
    lost_messages, skipped = sum(row.lost for row in broken.losses), sum(row.skipped for row in broken.losses)
    letters = sum(row.dead_letters for row in broken.dead_letters)
    words = f"{lost_messages} lost, {skipped} of them skipped; {letters} dead letters"
    return Judgement("V7", "every stored offset is consumed at least once", words, broken.losses)


def _total(rows: tuple[Overlap, ...] | tuple[Orphan, ...]) -> str:
    return f"{sum(row.end_ns - row.start_ns for row in rows) / 1e9:.1f} queue seconds"


def _rows(frame: DataFrame, row_class: type[Any], *columns: str) -> tuple[Any, ...]:
    """The rows of a frame as values of a class whose fields have the names of its columns."""
    names = [field.name for field in row_class.__attrs_attrs__]

    def value(row: Row, name: str) -> Any:
        return GroupQueue(row.group, row.topic, row.broker_name, row.queue_id) if name == "queue" else row[name]

    return tuple(row_class(*(value(row, name) for name in names)) for row in frame.orderBy(*columns).collect())
