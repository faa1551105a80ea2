"""Requests of guests that the emulator does not serve; a report lists them, since they are no result."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import LifeRow
from emulator.trace.schema import LIFECYCLE, TraceTable
from nodes.beliefs import LifecycleEvent


@attrs.frozen
class UnsupportedRequest:
    """A guest asked for something that is not emulated."""

    node: str
    """The guest."""
    t_ns: int
    """When it asked for the first time."""
    text: str
    """What it asked, what that is, and what became of it."""


UNSUPPORTED = FindingTable("unsupported_requests", UnsupportedRequest, "a request of a guest that is not emulated")


class UnsupportedRequests(Watcher):
    """Collects unsupported requests of guests."""

    def __init__(self) -> None:
        self.found: list[UnsupportedRequest] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads the lives of guests."""
        return {LIFECYCLE: self._life}

    def _life(self, row: LifeRow) -> None:
        if row.event == LifecycleEvent.NOT_EMULATED:
            self.found.append(UnsupportedRequest(row.node, row.t_ns, row.detail))
