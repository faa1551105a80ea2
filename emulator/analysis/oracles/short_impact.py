"""V11: short times with two owners or none, added up."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_queue, inside
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_words, span_words
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle, explained
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Span
from emulator.history.steps import merged, uncovered
from nodes.units import NS_PER_S

_HOUR_NS = 3_600 * NS_PER_S
_OBSERVED_MIN_NS = 600 * NS_PER_S
"""Impact is divided by ten minutes at least: a single rebalance in a short run is no impact that returns."""


@attrs.frozen
class Budget(JudgedFinding):
    """Short times with two owners or none that no fault explains, added up for one group (V11)."""

    group: str
    queues: int
    """Queues that members of the group owned."""
    observed_ns: int
    """How much of the run lies outside of what faults explain."""
    overlap_ns: int
    """Queue time with two owners that were awake, in that time."""
    orphan_ns: int
    """Queue time without an owner, in that time."""
    per_hour_s: float
    """Both, in s per queue and hour, of ten minutes at least."""
    longest: Overlap | Orphan | None = attrs.field(default=None, kw_only=True, metadata={"column": False})
    """The one that lasted longest beyond what explains it."""


class ShortImpact(Oracle[Budget, Watcher]):
    """V11: short times with two owners or none stay within their budget."""

    id: ClassVar[str] = "V11"
    title: ClassVar[str] = "short times with two owners or none stay within their budget"
    definition: ClassVar[str] = (
        "Times with two owners that are awake, or none, each of which is too short for V1 and V2, are added up where "
        "nothing that happened from outside, and no broker that refuses a member, explains them. More than 36 "
        "queue-seconds per queue and hour, of ten minutes at least, is a violation."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.OWNERS, Input.BLOCKED, Input.REFUSED)
    table = FindingTable("budgets", Budget, "short times with two owners or none that no fault explains")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Budget]:  # noqa: ARG002
        """One row per group; what is too long for itself counts in V1 and V2."""
        queues: dict[str, dict[GroupQueue, None]] = {}
        for hold in inputs.owners.holds:
            queues.setdefault(hold.queue.group, {})[hold.queue] = None
        found: dict[str, list[Overlap | Orphan]] = {}
        every: tuple[Overlap | Orphan, ...] = (
            *explained(inputs.owners.overlaps, Explanation[Overlap](), inputs),
            *explained(inputs.owners.orphans, Explanation[Orphan](), inputs),
        )
        for item in every:
            if not item.violation:
                found.setdefault(item.queue.group, []).append(item)
        return [_budget(inputs, group, len(queues[group]), found.get(group, [])) for group in sorted(queues)]

    def order(self, row: Budget) -> Any:
        """By group."""
        return row.group

    def is_notable(self, row: Budget) -> bool:
        """Whether there was any."""
        return bool(row.overlap_ns or row.orphan_ns)

    def summary(self, rows: Sequence[Budget]) -> str:
        """Of the worst group."""
        worst = max((row.per_hour_s for row in rows), default=0.0)
        return f"{worst:.1f} queue-seconds per queue and hour without a cause"

    def amount(self, row: Budget) -> float:
        """Per queue and hour."""
        return row.per_hour_s

    def describe(self, row: Budget, context: Context) -> str:  # noqa: ARG002
        """How much, and the longest of it."""
        text = f"group {row.group}: {row.per_hour_s:,.1f} queue-seconds per queue and hour with two owners or none"
        longest = row.longest
        if longest is None:
            return text
        had = f"had the owners {' and '.join(longest.owners)}" if isinstance(longest, Overlap) else "had no owner"
        return f"{text}; the longest: {queue_words(longest.queue)} {had} {span_words(longest)}"

    def questions(self, row: Budget, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """Who owned the queue of the longest."""
        return [] if row.longest is None else [about_queue(row.longest.queue, inside(row.longest))]


def _budget(inputs: SharedInputs, group: str, queues: int, found: Sequence[Overlap | Orphan]) -> Budget:
    windows, facts = inputs.windows(group), inputs.facts
    observed_ns = windows.unexplained_ns([(0, facts.end_ns)])
    overlap_ns = windows.unexplained_ns(_spans((item for item in found if isinstance(item, Overlap)), inputs))
    orphan_ns = windows.unexplained_ns(_spans((item for item in found if isinstance(item, Orphan)), inputs))
    queue_hours = queues * max(observed_ns, _OBSERVED_MIN_NS) / _HOUR_NS
    per_hour_s = (overlap_ns + orphan_ns) / NS_PER_S / queue_hours
    is_broken = per_hour_s > facts.bounds.budget_s
    # Of equally long ones the first by time and name: a run that is read in shares has them in another order.
    in_order = sorted((item for item in found if item.excess_ns), key=lambda item: (item.start_ns, item.queue))
    longest = max(in_order, key=lambda item: item.excess_ns, default=None)
    amounts = queues, observed_ns, overlap_ns, orphan_ns, round(per_hour_s, 3)
    return Budget(group, *amounts, violation=is_broken, longest=longest)


def _spans(found: Iterable[Overlap | Orphan], inputs: SharedInputs) -> Iterable[Span]:
    """The times, without those in which brokers refused an owner, or members of a queue without one."""
    for item in found:
        if isinstance(item, Overlap):
            yield from uncovered(item.active or (), inputs.refused.in_part(item.owners))
        else:
            servers = inputs.blocked.nodes_of(item.queue.broker_name)
            covers = inputs.refused.keep_from(item.queue, servers, item.start_ns)
            yield from uncovered(((item.start_ns, item.end_ns),), merged(covers))


SHORT_IMPACT = ShortImpact()
