"""Findings of several tables together, or of a part of one."""

from typing import Any

from emulator.analysis.arrow_tables import SYMPTOMS
from emulator.analysis.findings.table import Findings
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.offsets import OffsetAnomaly
from emulator.analysis.oracles.offset_regressions import OFFSET_REGRESSIONS
from emulator.analysis.oracles.start_offsets import START_OFFSETS
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.report import Report, symptoms


def views_of(found: Findings) -> tuple[Divergence, ...]:
    """Views that differed as a whole."""
    return tuple(whole_views(found.of(VIEWS.table)))


def half_views_of(found: Findings) -> tuple[Divergence, ...]:
    """Parts of views that differed."""
    return tuple(row for row in found.of(VIEWS.table) if row.kind.startswith("view."))


def offset_anomalies_of(found: Findings) -> tuple[OffsetAnomaly, ...]:
    """Offsets that fell, and starts elsewhere, by time."""
    rows = (*found.of(OFFSET_REGRESSIONS.table), *found.of(START_OFFSETS.table))
    return tuple(sorted(rows, key=lambda row: (row.t_ns, row.queue, row.offset)))


def rows_of(report: Report, name: str) -> tuple[Any, ...]:
    """The rows of a table of `TABLES`."""
    return symptoms(report) if name == SYMPTOMS.name else report[name]
