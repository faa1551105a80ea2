"""V2: queues without an owner."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_queue, about_view, inside
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_seconds, queue_words, span_words
from emulator.analysis.inputs.queue_owners import Orphan
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle, queues_of
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from emulator.history.rows.row_classes import Span


class _WithRefusals(Explanation[Orphan]):
    """A group that no broker lets in allocates nothing."""

    def covered(self, row: Orphan, inputs: SharedInputs) -> Sequence[Span]:
        """Brokers refused all members, or these had addresses that led nowhere; or that of the queue refused one."""
        servers = inputs.blocked.nodes_of(row.queue.broker_name)
        in_part = inputs.refused.keep_from(row.queue, servers, row.start_ns)
        return *inputs.refused.as_members(row.queue, row.start_ns), *in_part


class Orphans(Oracle[Orphan, Watcher]):
    """V2: every readable message queue has an owner."""

    id: ClassVar[str] = "V2"
    title: ClassVar[str] = "every readable message queue has an owner"
    definition: ClassVar[str] = (
        "A queue is readable, a live member of the group sees it or it had an owner before, the member has made a "
        "rebalance round, and no member owns or pops the queue. It is a violation if that lasts longer than what "
        "happened before explains. Brokers that refuse all members what they ask or send as members explain it for as "
        "long as they do, and so do a broker of the queue that refuses one of them, and addresses of masters that lead "
        "nowhere from where all members are."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.OWNERS, Input.BLOCKED, Input.REFUSED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable("orphans", Orphan, "a readable queue had no owner although its group had a live member")
    explanation = _WithRefusals()

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Orphan]:  # noqa: ARG002
        """Queues without an owner."""
        return inputs.owners.orphans

    def causes(self, row: Orphan, attribution: Attribution) -> Causes:
        """Why no member allocated it."""
        return attribution.of_orphan(row.queue, (row.start_ns, row.end_ns))

    def summary(self, rows: Sequence[Orphan]) -> str:
        """How long."""
        return f"no owner for {queue_seconds(rows)}"

    def subjects(self, violations: Sequence[Orphan]) -> str:
        """The number of queues."""
        return queues_of(violations)

    def describe(self, row: Orphan, context: Context) -> str:  # noqa: ARG002
        """The queue, and when."""
        return f"{queue_words(row.queue)} had no owner {span_words(row)}"

    def questions(self, row: Orphan, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """Why no member owned the queue, or from which view members allocated."""
        at = inside(row)
        yield about_queue(row.queue, at)
        yield about_view(row.queue.group, row.queue.topic, at)


ORPHANS = Orphans()
