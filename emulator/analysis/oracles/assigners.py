"""V13: who allocates the queues of a group."""

from collections.abc import Mapping
from typing import ClassVar

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import span_words
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.shared import Input
from emulator.analysis.oracles.divergence_oracle import OfGroup, OracleOfKinds, values_held
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_MS

_KINDS = {
    BeliefKind.REBALANCE_MODE: ("modes", "allocated in different modes"),
    BeliefKind.ASSIGNER: ("assigners", "had different assigners"),
    BeliefKind.EPOCH: ("epochs", "followed different allocations"),
}
"""Modes are read from rebalance rounds, since members that allocate for themselves hold no belief about it."""


class _FromOutside(OfGroup):
    """An assigner that changes by itself is the harm; each member learns with its next round what others know."""

    def __init__(self) -> None:
        super().__init__(external=True)

    def limit_ns(self, row: Divergence, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002
        return facts.bounds.round_ms * NS_PER_MS


class Assigners(OracleOfKinds):
    """V13: the members of a group have one assigner."""

    id: ClassVar[str] = "V13"
    title: ClassVar[str] = "the members of a group have one assigner"
    definition: ClassVar[str] = (
        "Members of a group allocate in different modes, ask different assigners, or follow different allocations of "
        "one. It is a violation if members that are awake differ for more than a rebalance round longer than what "
        "happened from outside explains."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.HOLDINGS, Input.BLOCKED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable(
        "assigner_disagreements", Divergence, "members of a group differed about what allocates their queues"
    )
    nouns: ClassVar[Mapping[str, str]] = {kind: noun for kind, (noun, _) in _KINDS.items()}
    explanation = _FromOutside()

    def describe(self, row: Divergence, context: Context) -> str:
        """Who held what, and when."""
        differed = _KINDS[BeliefKind(row.kind)][1]
        return f"members of {row.subject} {differed}: {values_held(row, context)}; {span_words(row)}"


ASSIGNERS = Assigners()
