"""When thread pools of nodes were busy, and what came of it."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind

_Key = tuple[str, int, str]
"""Node, incarnation and pool."""


@attrs.define
class BusyPool:
    """A thread pool of a node, from the first record of it until it is not busy any more."""

    node: str
    pool: str
    """Such as `sendMessage`."""
    start_ns: int
    recorded_ns: int
    """Instant of the last record."""
    refused: Counter[str] = attrs.field(factory=Counter)
    """Mapping word at the beginning of an answer -> requests that were refused with it."""
    refusing_ns: int = 0
    """How long requests were refused, in whole seconds."""
    waited_max_ms: int = 0
    """The longest wait of a request for a thread."""
    end_ns: int = -1
    """When it was not busy any more, or its process ended; -1: it is busy."""
    censored: bool = False
    """Whether the run ended before."""

    def add(self, row: BeliefRow, value: Mapping[str, Any]) -> None:
        """Another record of what has happened since the last one."""
        self.refused.update(value["refused"])
        if value["refused"]:
            self.refusing_ns += row.t_ns - self.recorded_ns
        self.recorded_ns = row.t_ns
        self.waited_max_ms = max(self.waited_max_ms, value["waited_max_ms"])


class BusyPools(Watcher):
    """Follows the busy pools of nodes.

    Args:
        presence: has read the same rows before.
    """

    settles_after_messages = False

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._open: dict[_Key, BusyPool] = {}
        self._changed: dict[_Key, BusyPool] = {}
        self.found: list[BusyPool] = []
        """Those that are over."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs."""
        return {BELIEFS: self._belief}

    def settle(self, t_ns: int) -> None:
        """A node that has ended is not busy any more."""
        for key in [key for key in self._open if self._presence.processes.has_ended(key[:2], t_ns)]:
            self._close(key, t_ns)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for key in list(self._open):
            self._close(key, end_ns, censored=True)

    def take_changed(self) -> tuple[BusyPool, ...]:
        """The pools that have changed since the last call, open or over."""
        changed = tuple(self._changed.values())
        self._changed.clear()
        return changed

    def forget(self) -> None:
        """Forget what is over."""
        self.found.clear()

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.BUSY:
            return
        key, value = (row.node, row.incarnation, row.subject), json.loads(row.value)
        if value is not None:
            pool = self._open.setdefault(key, BusyPool(row.node, row.subject, row.t_ns, row.t_ns))
            pool.add(row, value)
            self._changed[key] = pool
        elif key in self._open:
            self._close(key, row.t_ns)

    def _close(self, key: _Key, end_ns: int, *, censored: bool = False) -> None:
        pool = self._changed[key] = self._open.pop(key)
        pool.end_ns, pool.censored = end_ns, censored
        self.found.append(pool)
