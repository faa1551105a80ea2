"""Oracle V10 `special`: which members of a broker group deliver delayed and timed messages and check transactions.

The master runs them; with RIP-32, the member with the lowest id while the
master is away; with controllers, whoever was told to be master, so two of them are
two masters. Two members at once deliver twice; while no member runs them,
messages wait (`emulator.analysis.waits`). A suspended member runs nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.presence import Presence
from emulator.analysis.rows import BeliefRow, Process, Span, Watcher
from emulator.trace.schema import BELIEFS, Table
from nodes.beliefs import BeliefKind


class Duty(StrEnum):
    """How many members run the special services."""

    ONE = "one"
    """One member."""
    TWO = "two"
    """Two or more members."""
    NOBODY = "nobody"
    """No member, after one had run them."""


@attrs.frozen
class FoundDuty:
    """The members that ran the special services of a broker group, from one change to the next."""

    broker_name: str
    kind: Duty
    start_ns: int
    end_ns: int
    censored: bool
    nodes: tuple[str, ...]
    """Sorted."""


class Served:
    """When each member of a broker group ran the special services.

    Args:
        duties: of all groups.
    """

    def __init__(self, duties: Iterable[FoundDuty]) -> None:
        self._spans: dict[tuple[str, str], list[Span]] = {}
        for duty in duties:
            for node in duty.nodes:
                self._spans.setdefault((duty.broker_name, node), []).append((duty.start_ns, duty.end_ns))

    def between_ns(self, broker_name: str, node: str, start_ns: int, end_ns: int) -> int:
        """For how much of the time between two instants a member ran them."""
        spans = self._spans.get((broker_name, node), ())
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)


@attrs.define
class _Group:
    running: dict[Process, None] = attrs.Factory(dict)
    shown: tuple[str, ...] | None = None
    """None: no member has run the services yet."""
    start_ns: int = 0


class Services(Watcher):
    """Follows the special services of every broker group, as intervals without gaps from the first time on.

    Args:
        presence: reads the same rows before.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._groups: dict[str, _Group] = {}
        self.found: list[FoundDuty] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads beliefs of brokers."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if row.kind == BeliefKind.SPECIAL_SERVICE and not self._presence.is_dead(process):
            group = self._groups.setdefault(row.subject, _Group())
            if row.value == "true":
                group.running[process] = None
            else:
                group.running.pop(process, None)

    def settle(self, t_ns: int) -> None:
        """Compare each group with what it was."""
        for broker_name, group in self._groups.items():
            nodes = tuple(sorted(process[0] for process in group.running if self._presence.is_awake(process)))
            if nodes == group.shown or (group.shown is None and not nodes):
                continue
            self._close(broker_name, group, t_ns, censored=False)
            group.shown, group.start_ns = nodes, t_ns

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for broker_name, group in self._groups.items():
            if group.start_ns < end_ns:
                self._close(broker_name, group, end_ns, censored=True)

    def _close(self, broker_name: str, group: _Group, end_ns: int, *, censored: bool) -> None:
        if group.shown is not None:
            kind = (Duty.NOBODY, Duty.ONE)[len(group.shown)] if len(group.shown) <= 1 else Duty.TWO
            self.found.append(FoundDuty(broker_name, kind, group.start_ns, end_ns, censored, group.shown))
