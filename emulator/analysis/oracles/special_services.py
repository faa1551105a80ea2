"""V10: which members of a broker group run the special services."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_node, inside
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import span_words
from emulator.analysis.inputs.services import Servers, ServiceSpan
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from emulator.history.steps import merged, uncovered_ns
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_MS


class ServiceOracle(Oracle[ServiceSpan, Watcher]):
    """V10: one member of a broker group runs the special services."""

    id: ClassVar[str] = "V10"
    title: ClassVar[str] = "one member of a broker group runs the special services"
    definition: ClassVar[str] = (
        "The master delivers delayed and timed messages and checks transactions; with RIP-32, the member with the "
        "lowest id while the master is away; with controllers, each member that a controller made master. Two or more "
        "members at once, or none after one had, is a violation where slaves act as masters or controllers elect "
        "them, if it lasts longer than it takes to notice a silent broker, or to elect another master."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.SERVICES, Input.BLOCKED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable("special_services", ServiceSpan, "members of a broker group that ran the special services")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[ServiceSpan]:  # noqa: ARG002
        """The spans of groups with more than one span; a single span from start to end says nothing."""
        spans = inputs.services.found
        of_group = Counter(span.broker_name for span in spans)
        return [_judged(span, inputs) for span in spans if of_group[span.broker_name] > 1]

    def order(self, row: ServiceSpan) -> Any:
        """By time."""
        return row.start_ns, row.end_ns, row.broker_name

    def is_notable(self, row: ServiceSpan) -> bool:
        """One member is as it should be."""
        return row.servers is not Servers.ONE

    def summary(self, rows: Sequence[ServiceSpan]) -> str:
        """How long two, and none."""
        lasted_s = {
            kind: sum(row.end_ns - row.start_ns for row in rows if row.servers is kind) / 1e9 for kind in Servers
        }
        return f"two for {lasted_s[Servers.TWO]:.1f} s, none for {lasted_s[Servers.NONE]:.1f} s"

    def amount(self, row: ServiceSpan) -> float:
        """How long."""
        return row.end_ns - row.start_ns

    def describe(self, row: ServiceSpan, context: Context) -> str:  # noqa: ARG002
        """Who ran them, and when."""
        members = " and ".join(row.nodes) or "no member"
        return f"{members} of {row.broker_name} ran the special services {span_words(row)}"

    def questions(self, row: ServiceSpan, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The last of the members; without any, what the members believed of their roles, and of who acts."""
        yield from (about_node(node, inside(row)) for node in row.nodes[-1:])
        for kind in (BeliefKind.BROKER_ROLE, BeliefKind.SPECIAL_SERVICE):
            yield (kind.value, row.broker_name, "at", inside(row))


def _judged(service_span: ServiceSpan, inputs: SharedInputs) -> ServiceSpan:
    """Without RIP-32 and controllers no member takes over; one that faults isolate cannot hear that another did."""
    facts = inputs.facts
    isolated = merged(
        inputs.blocked.without(
            inputs.blocked.nodes_of(service_span.broker_name), service_span.start_ns, service_span.end_ns
        )
    )
    lasted_ns = uncovered_ns((service_span.start_ns, service_span.end_ns), isolated)
    limit_ms = facts.bounds.group_ms if facts.acting else facts.bounds.election_ms
    is_long = lasted_ns > limit_ms * NS_PER_MS
    violation = (facts.acting or facts.elected) and is_long and service_span.servers is not Servers.ONE
    return attrs.evolve(service_span, violation=violation)


SERVICES = ServiceOracle()
