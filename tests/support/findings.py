"""Findings of several tables together, or of a part of one."""

from typing import Any

from emulator.analysis.oracles.views import VIEWS, whole_views


def views_of(found: Any) -> tuple[Any, ...]:
    """Views that differed as a whole."""
    return tuple(whole_views(found.of(VIEWS.table)))


def half_views_of(found: Any) -> tuple[Any, ...]:
    """Parts of views that differed."""
    return tuple(row for row in found.of(VIEWS.table) if row.kind.startswith("view."))


def offset_anomalies_of(found: Any) -> tuple[Any, ...]:
    """Offsets that fell, and starts elsewhere, by time."""
    rows = (*found["offset_regressions"], *found["start_anomalies"])
    return tuple(sorted(rows, key=lambda row: (row.t_ns, row.queue, row.offset)))
