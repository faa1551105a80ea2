"""V20: which clients there are, in the eyes of the proxies of a cluster."""

import json
from collections.abc import Mapping
from typing import ClassVar

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import span_words
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.shared import Input
from emulator.analysis.oracles.divergence_oracle import OracleOfKinds, WhileConnected, values_held
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_S

_HEARTBEATS_S = 21
"""Two heartbeats of a client, each of which its proxy reports to the others, and a second on the way."""
_KINDS = {
    BeliefKind.PROXY_MEMBERS: ("members of a group", "the members of group"),
    BeliefKind.CLIENT_SETTINGS: ("settings of a client", "the settings of"),
}


class _OfProxies(WhileConnected):
    """A lost report is made up for with the next heartbeat, whatever happened."""

    def group(self, row: Divergence) -> str:
        if row.kind == BeliefKind.PROXY_MEMBERS:
            return row.subject
        settings = json.loads(row.holders[0].value) if row.holders else {}
        return settings.get("group") or ""

    def limit_ns(self, row: Divergence, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002
        return _HEARTBEATS_S * NS_PER_S


class Proxies(OracleOfKinds):
    """V20: proxies agree on the members of groups and on the settings of clients."""

    id: ClassVar[str] = "V20"
    title: ClassVar[str] = "proxies agree on the members of groups and on the settings of clients"
    definition: ClassVar[str] = (
        "Proxies hold different members of a group, or take a member for the client of different proxies, or hold "
        "different settings of a client. Only proxies know consumers of RocketMQ 5; they report them to each other "
        "with every heartbeat. It is a violation if proxies that are awake differ for more than two heartbeats of a "
        "client (21 s) longer than what happened before explains. A process that has never heard of a group does not "
        "differ."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.HOLDINGS, Input.BLOCKED)
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable(
        "proxy_disagreements", Divergence, "proxies held different members of a group, or settings of a client"
    )
    nouns: ClassVar[Mapping[str, str]] = {kind: noun for kind, (noun, _) in _KINDS.items()}
    explanation = _OfProxies()

    def describe(self, row: Divergence, context: Context) -> str:
        """Which proxies held what, and when."""
        kind = _KINDS[BeliefKind(row.kind)][1]
        return f"proxies differed about {kind} {row.subject}: {values_held(row, context)}; {span_words(row)}"


PROXIES = Proxies()
