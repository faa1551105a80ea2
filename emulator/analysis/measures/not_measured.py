"""What cannot be measured of groups of guests, whose listeners are not seen: a report says so, in place of zeros."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.applications import DELIVERED_BY_PROXY
from emulator.guests.client_names import guest_of
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind


class GuestKind(StrEnum):
    """How a member of a group gets messages, whose process is not emulated."""

    BROKERS = "brokers"
    """A client of RocketMQ 4: brokers see what it pulls and commits."""
    PROXIES = "proxies"
    """A client of RocketMQ 5: a proxy sees what it receives and acknowledges."""


_OF_ALL = (SymptomKind.AGAIN, SymptomKind.POPPED_AGAIN, SymptomKind.FAILING)
UNSEEN_SYMPTOMS: Mapping[GuestKind, tuple[SymptomKind, ...]] = {
    GuestKind.BROKERS: (SymptomKind.LOST, SymptomKind.LATENCY, *_OF_ALL),
    GuestKind.PROXIES: (*_OF_ALL, SymptomKind.OUT_OF_ORDER),
}
"""Symptoms that need to know when a listener returned; of the others, an acknowledgement to a proxy says it."""
UNSEEN_RULES: Mapping[GuestKind, tuple[str, ...]] = {
    GuestKind.BROKERS: ("V3", "V7", "V12"),
    GuestKind.PROXIES: ("V12",),
}
"""Oracles that need to know it."""


@attrs.frozen
class NotMeasured:
    """What is not measured of a group, since a guest is a member of it."""

    group: str
    node: str
    """The guest."""
    calls: str
    """`GuestKind`: whom its clients call."""
    symptoms: str
    """Kinds of symptoms, separated by commas."""
    rules: str
    """Ids of oracles, separated by commas."""


NOT_MEASURED = FindingTable("not_measured", NotMeasured, "what is not measured of a group with members of a guest")


class UnseenGroups(Watcher):
    """Collects the groups of guests.

    Args:
        guests: names of guests.
    """

    def __init__(self, guests: tuple[str, ...]) -> None:
        self._guests = guests
        self._found: dict[tuple[str, str, GuestKind], None] = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads subscriptions."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.SUBSCRIPTION or guest_of(row.node) not in self._guests:
            return
        group = row.subject.partition("/")[0]
        kind = GuestKind.PROXIES if DELIVERED_BY_PROXY in row.value else GuestKind.BROKERS
        self._found[group, guest_of(row.node), kind] = None

    def found(self) -> tuple[NotMeasured, ...]:
        """A row for each group, guest and kind."""
        return tuple(
            NotMeasured(group, node, kind, ", ".join(UNSEEN_SYMPTOMS[kind]), ", ".join(UNSEEN_RULES[kind]))
            for group, node, kind in sorted(self._found)
        )
