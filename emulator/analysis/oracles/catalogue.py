"""The list of all oracles."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from emulator.analysis.findings.cause_share import CauseShare, merged_causes
from emulator.analysis.findings.table import Findings
from emulator.analysis.oracles.assigners import ASSIGNERS
from emulator.analysis.oracles.business_losses import BUSINESS_LOSSES
from emulator.analysis.oracles.busy_brokers import BUSY_BROKERS
from emulator.analysis.oracles.delayed_messages import DELAYED
from emulator.analysis.oracles.elections import ELECTIONS
from emulator.analysis.oracles.key_order import KEY_ORDER
from emulator.analysis.oracles.lock_order import LOCK_ORDER
from emulator.analysis.oracles.lost_messages import LOSSES
from emulator.analysis.oracles.membership import MEMBERS
from emulator.analysis.oracles.offset_regressions import OFFSET_REGRESSIONS
from emulator.analysis.oracles.oracle import Oracle
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.popped_messages import POPPED
from emulator.analysis.oracles.proxies import PROXIES
from emulator.analysis.oracles.short_impact import SHORT_IMPACT
from emulator.analysis.oracles.special_services import SERVICES
from emulator.analysis.oracles.stalls import STALLS
from emulator.analysis.oracles.start_offsets import START_OFFSETS
from emulator.analysis.oracles.transactions import TRANSACTIONS
from emulator.analysis.oracles.views import VIEWS

ORACLES: tuple[Oracle[Any, Any], ...] = (
    OVERLAPS,
    ORPHANS,
    LOCK_ORDER,
    OFFSET_REGRESSIONS,
    START_OFFSETS,
    VIEWS,
    LOSSES,
    STALLS,
    MEMBERS,
    SERVICES,
    SHORT_IMPACT,
    KEY_ORDER,
    ASSIGNERS,
    POPPED,
    DELAYED,
    TRANSACTIONS,
    ELECTIONS,
    BUSINESS_LOSSES,
    BUSY_BROKERS,
    PROXIES,
)
"""All oracles, by number."""
ORACLE_TABLES = tuple(item.table.name for item in ORACLES)
"""Names of the tables of their findings."""
TITLES = {item.id: item.title for item in ORACLES}
"""Mapping id -> the invariant in RocketMQ's terms."""
HARM_ORDER = (
    *("V7", "V18", "V16", "V12", "V3", "V17", "V14", "V15"),
    *("V4", "V5", "V1", "V2", "V8", "V11"),
    *("V6", "V13", "V9", "V10", "V19", "V20"),
)
"""The invariants by what breaking them costs: messages and their order, then repeats and waiting, then agreement."""


@attrs.frozen
class BrokenInvariant:
    """An invariant that a run broke."""

    oracle: Oracle[Any, Any]
    violations: Sequence[Any]
    causes: tuple[CauseShare, ...]
    """The disturbances on the chains of all its violations, each with its share."""


def broken_invariants(found: Findings) -> Iterator[BrokenInvariant]:
    """The invariants that a run broke, what costs most first."""
    for oracle in sorted(ORACLES, key=lambda oracle: HARM_ORDER.index(oracle.id)):
        violations = oracle.violations(found.of(oracle.table))
        if violations:
            causes = merged_causes((getattr(row, "causes", ()), 1.0) for row in violations)
            yield BrokenInvariant(oracle, violations, causes)
