"""V9: who lives, in the eyes of brokers and nameservers."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_seconds
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.shared import MEMBERSHIP, Input, SharedInputs
from emulator.analysis.oracles.divergence_oracle import DivergenceOracle, WhileConnected
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from emulator.history.steps import merged, uncovered_ns
from nodes.units import NS_PER_MS


class _WithinGroup(WhileConnected):
    """Whatever happened, they agree again within the time of a silent broker."""

    def group(self, row: Divergence) -> str:  # noqa: ARG002
        return ""

    def excess_ns(self, row: Divergence, unexplained_ns: int, inputs: SharedInputs) -> int:  # noqa: ARG002
        apart = merged(self.covered(row, inputs))
        differed_ns = sum(uncovered_ns(span, apart) for span in row.active)
        return max(0, differed_ns - inputs.facts.bounds.group_ms * NS_PER_MS)

    def limit_ns(self, row: Divergence, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002
        return 0


class Membership(DivergenceOracle):
    """V9: brokers of a group, and nameservers, agree on who lives."""

    id: ClassVar[str] = "V9"
    title: ClassVar[str] = "brokers of a group, and nameservers, agree on who lives"
    definition: ClassVar[str] = (
        "Members of a broker group, or nameservers, hold different lists of the live brokers, the lowest broker id or "
        "the master. It is a violation, where slaves act as masters (RIP-32), if those that are awake differ for "
        "longer than brokerNotActiveTimeoutMillis, a scan and a poll."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.HOLDINGS, Input.BLOCKED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable("membership", Divergence, "brokers or nameservers differed about who lives")
    explanation = _WithinGroup()

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Divergence]:  # noqa: ARG002
        """Lists that differed; without RIP-32 brokers do not follow who lives."""
        return inputs.holdings.found(*MEMBERSHIP) if inputs.facts.acting else ()

    def summary(self, rows: Sequence[Divergence]) -> str:
        """How often, and how long."""
        return f"differed {len(rows)} times, for {queue_seconds(rows).replace('queue-', '')}"

    def subjects(self, violations: Sequence[Divergence]) -> str:  # noqa: ARG002
        """The summary counts them."""
        return ""


MEMBERS = Membership()
