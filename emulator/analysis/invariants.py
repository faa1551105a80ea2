"""The invariants V1 to V17, and the sentences that say which of them a run broke."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from emulator.analysis.elections import ElectionFlaw, FlawedElection
from emulator.analysis.findings import Divergence, Findings, Orphan, Overlap
from emulator.analysis.offsets import OffsetFault
from emulator.analysis.services import Duty
from emulator.analysis.transactions import Transactions
from emulator.analysis.views import ViewPart
from emulator.analysis.waits import Waits
from nodes.beliefs import BeliefKind

TITLES = {
    "V1": "at most one process queue per message queue",
    "V2": "every readable message queue has an owner",
    "V3": "orderly listeners only under the broker's lock",
    "V4": "the offsets of a group never fall",
    "V5": "a successor pulls from the last commit",
    "V6": "passes of a round see equal mqAll and cidAll",
    "V7": "every stored message is consumed at least once",
    "V8": "every subscribed, readable queue with a backlog advances",
    "V9": "brokers of a group, and nameservers, agree on who lives",
    "V10": "one member of a broker group runs the special services",
    "V11": "short harm stays within its budget",
    "V12": "an ordered or exclusive queue gives a key in order, to one consumer at a time",
    "V13": "the members of a group have one assigner",
    "V14": "every popped message is acknowledged, hidden or revived",
    "V15": "a message that waits is delivered, and not before its time",
    "V16": "a committed transaction is delivered, and no other",
    "V17": "an epoch of a broker group has one master, and epochs rise",
}
"""Mapping id -> the invariant in RocketMQ's terms."""


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


def _judged(name: str, words: str, rows: Sequence[Any]) -> Judgement:
    return Judgement(name, TITLES[name], words, tuple(rows))


def judgements(found: Findings) -> tuple[Judgement, ...]:
    """The judgements about V1 to V17, in order."""
    overlaps, orphans = found.overlaps, found.orphans
    return (
        _judged("V1", _of_overlaps(overlaps), overlaps),
        _judged("V2", f"no owner for {_total(orphans)}", orphans),
        _of_order(found),
        *_of_offsets(found),
        _of_views(found),
        _of_losses(found),
        _of_progress(found),
        _of_membership(found.membership),
        _of_services(found),
        _of_budgets(found),
        _of_keys(found),
        _of_deciders(found.deciders),
        _of_popped(found),
        _of_waits(found.waits),
        _of_transactions(found.transactions),
        _of_elections(found.elections),
    )


def broken(found: Findings) -> tuple[str, ...]:
    """The ids of the invariants that a run broke, in order."""
    views = any(row.violation for row in found.views)
    return tuple(one.id for one in judgements(found) if one.violations or (one.id == "V6" and views))


def _of_overlaps(overlaps: Sequence[Overlap]) -> str:
    active_s, duplicates = sum(row.active_ns for row in overlaps) / 1e9, sum(row.duplicates for row in overlaps)
    return f"two owners for {_total(overlaps)}, {active_s:.1f} s of them awake; {duplicates} consumed again"


def _of_order(found: Findings) -> Judgement:
    rows = found.invariants.disorders
    unlocked = sum(row.messages for row in rows)
    return _judged("V3", f"{unlocked} messages outside", rows)


def _of_offsets(found: Findings) -> tuple[Judgement, Judgement]:
    slips = found.invariants.offset_slips
    amounts = dict.fromkeys(OffsetFault, 0)
    for row in slips:
        amounts[row.what] += abs(row.expected - row.offset)
    starts = tuple(row for row in slips if row.what in (OffsetFault.REPLAYS, OffsetFault.SKIPS))
    fell = tuple(row for row in slips if row not in starts)
    back = [f"{amounts[OffsetFault.REGRESSED]} offsets back by commits"]
    back += [f"{amounts[what]} {words}" for what, words in _FELL.items() if amounts[what]]
    moved = f"{amounts[OffsetFault.REPLAYS]} offsets replayed, {amounts[OffsetFault.SKIPS]} skipped"
    return (
        _judged("V4", ", ".join(back), fell),
        _judged("V5", moved, starts),
    )


_FELL = {
    OffsetFault.LOADED: "because a broker loaded an old file",
    OffsetFault.COPIED: "because a broker copied an old table",
    OffsetFault.SWITCHED: "because a new master had an old table",
    OffsetFault.RESET: "by an administrator",
}


def _of_views(found: Findings) -> Judgement:
    rows = found.invariants.half_views
    times = {part: sum(row.part == part for row in rows) for part in ViewPart}
    words = f"mqAll differed {times[ViewPart.QUEUES]} times, cidAll {times[ViewPart.MEMBERS]} times"
    return _judged("V6", words, rows)


def _of_losses(found: Findings) -> Judgement:
    rows = found.invariants.losses
    kinds = {"skipped": 0, "overwritten": 0, "reused": 0, "cut": 0, "unsubscribed": 0}
    for row in rows:
        for kind in kinds:
            kinds[kind] += getattr(row, kind)
    letters = sum(row.dead_letters for row in found.invariants.dead_letters)
    parts = [f"{count} {kind}" for kind, count in kinds.items() if count]
    of_them = f" ({', '.join(parts)})" if parts else ""
    words = f"{sum(row.lost for row in rows)} lost{of_them}; {letters} dead letters"
    return _judged("V7", words, rows)


def _of_progress(found: Findings) -> Judgement:
    rows = found.invariants.stalls
    left = sum(row.backlog for row in rows if row.censored)
    words = f"stalled for {_total(rows)}; {left} messages wait at the end"
    return _judged("V8", words, rows)


def _of_membership(rows: tuple[Divergence, ...]) -> Judgement:
    words = f"differed {len(rows)} times, for {_total(rows)}"
    return _judged("V9", words, rows)


def _of_services(found: Findings) -> Judgement:
    rows = tuple(row for row in found.duties if row.kind is not Duty.ONE)
    lasted = {kind: sum(row.end_ns - row.start_ns for row in rows if row.kind is kind) / 1e9 for kind in Duty}
    words = f"two for {lasted[Duty.TWO]:.1f} s, nobody for {lasted[Duty.NOBODY]:.1f} s"
    return _judged("V10", words, rows)


def _of_budgets(found: Findings) -> Judgement:
    rows = tuple(row for row in found.budgets if row.overlap_ns or row.orphan_ns)
    worst = max((row.per_hour_s for row in rows), default=0.0)
    words = f"{worst:.1f} queue seconds per queue and hour without a cause"
    return _judged("V11", words, rows)


def _of_keys(found: Findings) -> Judgement:
    rows = found.invariants.keys
    overtaken, late = sum(row.overtaken for row in rows), sum(row.late for row in rows)
    two_s = sum(row.two_ns for row in rows) / 1e9
    return _judged("V12", f"{overtaken} overtaken, {late} late again, {two_s:.1f} key seconds at two consumers", rows)


def _of_deciders(rows: tuple[Divergence, ...]) -> Judgement:
    times = {kind: sum(row.kind == kind for row in rows) for kind in _DECIDERS}
    differed = ", ".join(f"{what} differed {times[kind]} times" for kind, what in _DECIDERS.items() if times[kind])
    return _judged("V13", differed, rows)


def _of_popped(found: Findings) -> Judgement:
    rows = [row for row in found.invariants.popped if row.lost or row.late or row.twice or row.consumed_and_revived]
    total = {name: sum(getattr(row, name) for row in rows) for name in ("popped", "revived", "twice", "lost", "late")}
    again = sum(row.consumed_and_revived for row in rows)
    words = f"{total['popped']} popped, {total['revived']} revived, {again} of them consumed before; "
    words += f"{total['twice']} handed out twice, {total['late']} late, {total['lost']} lost"
    return _judged("V14", words, rows)


def _of_waits(rows: tuple[Waits, ...]) -> Judgement:
    harmed = tuple(row for row in rows if row.lost or row.early or row.again)
    lost, early, again = (sum(getattr(row, kind) for row in harmed) for kind in ("lost", "early", "again"))
    return _judged("V15", f"{lost} lost, {early} early, {again} once more", harmed)


def _of_transactions(rows: tuple[Transactions, ...]) -> Judgement:
    harmed = tuple(row for row in rows if row.lost or row.unasked or row.again)
    lost, unasked, again = (sum(getattr(row, kind) for row in harmed) for kind in ("lost", "unasked", "again"))
    return _judged("V16", f"{lost} lost, {unasked} unasked, {again} once more", harmed)


def _of_elections(rows: tuple[FlawedElection, ...]) -> Judgement:
    times = Counter(row.what for row in rows)
    return _judged("V17", ", ".join(f"{times[what]} times {what}" for what in ElectionFlaw if times[what]), rows)


_DECIDERS = {
    BeliefKind.REBALANCE_MODE: "who divides",
    BeliefKind.ASSIGNER: "assigners",
    BeliefKind.EPOCH: "epochs",
}


def _total(rows: Sequence[Any]) -> str:
    return f"{sum(row.end_ns - row.start_ns for row in rows) / 1e9:.1f} queue seconds"


def sentences(found: Findings) -> list[str]:
    """Why a run is not valid, one sentence per broken invariant."""
    lines = []
    views = [row for row in found.views if row.violation]
    if views:
        lines.append(f"{_subjects(views, 'view')} diverged longer than any cause explains{_worst(views)}")
    for one in judgements(found):
        violations = [row for row in one.rows if getattr(row, "violation", True)]
        if violations and not (one.id == "V6" and views):
            lines.append(f"{one.id} is broken, {one.title}: {_amount(one, violations)}{_worst(violations)}")
    return lines


def _amount(one: Judgement, violations: Sequence[Overlap | Orphan | Any]) -> str:
    if one.id in ("V1", "V2", "V8"):
        return f"{_subjects(violations, 'queue')}, {one.words}"
    return one.words


def _subjects(rows: Sequence[Any], noun: str) -> str:
    count = len(dict.fromkeys(getattr(row, "queue", None) or row.subject for row in rows))
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _worst(rows: Sequence[Any]) -> str:
    """Where it lasted longest beyond what explains it."""
    timed = [row for row in rows if hasattr(row, "excess_ns")]
    if not timed:
        return ""
    worst = max(timed, key=lambda row: row.excess_ns)
    where = worst.queue.name if hasattr(worst, "queue") else worst.subject
    explains = f"longer than {worst.because} explains" if worst.because else "without a cause"
    return f"; worst: {where}, {worst.excess_ns / 1e9:.1f} s {explains}"
