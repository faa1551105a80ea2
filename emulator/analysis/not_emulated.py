"""What guests asked for that the emulator does not do; said in the report, so that nobody takes it for a result."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.rows import LifeRow, Watcher
from emulator.trace.schema import LIFECYCLE, Table
from nodes.beliefs import LifecycleEvent


@attrs.frozen
class NotEmulated:
    """A guest asked for something that is not emulated."""

    node: str
    """The guest."""
    t_ns: int
    """When it asked for the first time."""
    told: str
    """What it asked, what that is, and what became of it."""


class VainRequests(Watcher):
    """Collects what guests asked for in vain."""

    def __init__(self) -> None:
        self.found: list[NotEmulated] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads what the lives of guests tell."""
        return {LIFECYCLE: self._life}

    def _life(self, row: LifeRow) -> None:
        if row.event == LifecycleEvent.NOT_EMULATED:
            self.found.append(NotEmulated(row.node, row.t_ns, row.detail))
