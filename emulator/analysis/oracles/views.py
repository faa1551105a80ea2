"""V6: the views from which members allocate queues."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.holdings import Divergence, ViewPart
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.divergence_oracle import DivergenceOracle, OfGroup
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from emulator.history.rows.row_classes import Span
from nodes.beliefs import BeliefKind


class _ApartFromRefused(OfGroup):
    """Brokers that refuse a member do not list it, and others do: so users and permissions want it."""

    def covered(self, row: Divergence, inputs: SharedInputs) -> Sequence[Span]:
        """When the views were the same but for such members."""
        return *super().covered(row, inputs), *inputs.refused.apart(holder.value for holder in row.holders)


class Views(DivergenceOracle):
    """V6: members allocate from equal mqAll and cidAll."""

    id: ClassVar[str] = "V6"
    title: ClassVar[str] = "members of a group allocate from equal mqAll and cidAll"
    definition: ClassVar[str] = (
        "Members of a group hold several views of a topic, or several values of one part of it: the queues (mqAll) or "
        "the members (cidAll). It is a violation if members that are awake differ for longer than what happened "
        "before explains. A broker that refuses a member what it asks and sends as one explains that views differ in "
        "this member, for as long as it does."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.HOLDINGS, Input.BLOCKED, Input.REFUSED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable("views", Divergence, "consumers held several views of a topic, or of a part of it")
    explanation = _ApartFromRefused()

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Divergence]:  # noqa: ARG002
        """Views and parts of views that differed."""
        return inputs.holdings.found(BeliefKind.VIEW, *(part.kind for part in ViewPart))

    def causes(self, row: Divergence, attribution: Attribution) -> Causes:
        """Why members allocated from different lists and routes."""
        group, _, topic = row.subject.partition("/")
        return attribution.of_views(group, topic, row.active or ((row.start_ns, row.end_ns),))

    def summary(self, rows: Sequence[Divergence]) -> str:
        """How often each part differed."""
        times = {part: sum(row.kind == part.kind for row in rows) for part in ViewPart}
        return f"mqAll differed {times[ViewPart.QUEUES]} times, cidAll {times[ViewPart.MEMBERS]} times"

    def noun(self) -> str:
        """A view."""
        return "view"


VIEWS = Views()


def whole_views(rows: Iterable[Divergence]) -> list[Divergence]:
    """The findings about views as a whole, without those about their parts."""
    return [row for row in rows if row.kind == BeliefKind.VIEW]
