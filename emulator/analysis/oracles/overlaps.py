"""V1: queues with two owners."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_queue, inside
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_seconds, queue_words, span_words
from emulator.analysis.inputs.queue_owners import Overlap
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle, queues_of
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import MessagesRead, Reads
from emulator.history.rows.row_classes import Span


class _WhileBothReachTheBroker(Explanation[Overlap]):
    """An owner that a fault keeps from the broker of the queue has no impact."""

    def covered(self, row: Overlap, inputs: SharedInputs) -> Sequence[Span]:
        """Also while a broker refused an owner as a member: only those count it who ask others."""
        return *inputs.blocked.with_one_owner(row), *inputs.refused.in_part(row.owners)


class Overlaps(Oracle[Overlap, Watcher]):
    """V1: at most one process queue per message queue."""

    id: ClassVar[str] = "V1"
    title: ClassVar[str] = "at most one process queue per message queue"
    definition: ClassVar[str] = (
        "A queue has two or more owners at once. It is a violation if two owners that are awake, and that no fault "
        "keeps from its broker, last longer than what happened before explains. A broker that refuses an owner what "
        "it asks and sends as a member explains it for as long as it does. Groups that broadcast, and members that "
        "pop, own no queue."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.OWNERS, Input.BLOCKED, Input.REFUSED)
    rows: ClassVar[Reads] = Reads(MessagesRead.REPEATED, frames=False)
    table = FindingTable("overlaps", Overlap, "a queue had two or more owners")
    explanation = _WhileBothReachTheBroker()

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Overlap]:  # noqa: ARG002
        """Queues with two owners."""
        return inputs.owners.overlaps

    def causes(self, row: Overlap, attribution: Attribution) -> Causes:
        """Why its owners allocated it, while two of them were awake."""
        return attribution.of_overlap(row.queue, row.active or ((row.start_ns, row.end_ns),))

    def summary(self, rows: Sequence[Overlap]) -> str:
        """How long, and how many messages were consumed again."""
        active_s, duplicates = sum(row.active_ns for row in rows) / 1e9, sum(row.duplicates for row in rows)
        return f"two owners for {queue_seconds(rows)}, {active_s:.1f} s of them awake; {duplicates} consumed again"

    def subjects(self, violations: Sequence[Overlap]) -> str:
        """The number of queues."""
        return queues_of(violations)

    def describe(self, row: Overlap, context: Context) -> str:  # noqa: ARG002
        """The queue, its owners, and when."""
        return f"{queue_words(row.queue)} had the owners {' and '.join(row.owners)} {span_words(row)}"

    def questions(self, row: Overlap, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """Why each of them owned the queue."""
        yield about_queue(row.queue, inside(row))


OVERLAPS = Overlaps()
