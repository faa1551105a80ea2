"""Processes that could not start, and how long their nodes were away for it."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import LifeRow
from emulator.trace.schema import LIFECYCLE, TraceTable
from nodes.beliefs import START_FAILED, LifecycleEvent


@attrs.frozen
class FailedStart:
    """A node could not start, again and again if something starts it again."""

    node: str
    role: str
    """Its role: consumer, producer, broker or proxy."""
    start_ns: int
    """The first failure."""
    end_ns: int
    """When it was ready after all, or the end of the run."""
    censored: bool
    attempts: int
    """Processes that could not start."""
    reason: str
    """Of the last one, in the words of the node."""


FAILED_STARTS = FindingTable("failed_starts", FailedStart, "a node could not start")


class FailedStarts(Watcher):
    """Follows processes from a failed start on."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._open: dict[str, FailedStart] = {}
        self._found: list[FailedStart] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads processes."""
        return {LIFECYCLE: self._life}

    def found(self) -> tuple[FailedStart, ...]:
        """All of them, in order of time."""
        return tuple(sorted(self._found, key=attrgetter("start_ns", "node")))

    def _life(self, row: LifeRow) -> None:
        if row.event == LifecycleEvent.READY:
            before = self._open.pop(row.node, None)
            if before is not None:
                self._found.append(attrs.evolve(before, end_ns=row.t_ns, censored=False))
        elif row.event == LifecycleEvent.STOPPING and row.detail.startswith(START_FAILED):
            reason = row.detail.removeprefix(START_FAILED)
            new = FailedStart(row.node, row.role, row.t_ns, row.t_ns, True, 0, "")
            before = self._open.get(row.node, new)
            self._open[row.node] = attrs.evolve(before, attempts=before.attempts + 1, reason=reason)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        self._found += [attrs.evolve(item, end_ns=end_ns) for item in self._open.values()]
        self._open = {}
