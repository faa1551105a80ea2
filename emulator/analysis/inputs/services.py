"""Special services: which members of a broker group deliver delayed and timed messages and check transactions.

The master runs them; with RIP-32, the member with the lowest id while the master is away; with controllers, each member
that was reported to be master, so two of them are two masters. Two members at once deliver twice; while no member runs
them, messages wait. A suspended member runs nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import JudgedFinding
from emulator.history.presence import Presence
from emulator.history.processes import Processes
from emulator.history.rows.row_classes import BeliefRow, Process, Span
from emulator.history.rows.sweeps import SettlingSweeps
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind


class Servers(StrEnum):
    """How many members run the special services."""

    ONE = "one"
    """One member."""
    TWO = "two"
    """Two or more members."""
    NONE = "none"
    """No member, after one had run them."""


@attrs.frozen
class ServiceSpan(JudgedFinding):
    """The members of a broker group that ran the special services, from one change to the next (V10)."""

    broker_name: str
    servers: Servers
    """`one`, `two` (two or more) or `none` runs them."""
    start_ns: int
    end_ns: int
    censored: bool
    nodes: tuple[str, ...]
    """Names of the members that ran them, sorted."""


class ServiceSweep:
    """The special services of one broker group, as intervals without gaps from the first time on.

    Args:
        broker_name: of the group.
        processes: who lives and sleeps.
    """

    def __init__(self, broker_name: str, processes: Processes) -> None:
        self._broker_name = broker_name
        self._processes = processes
        self._running: dict[Process, None] = {}
        self._shown: tuple[str, ...] | None = None
        """None: no member has run the services yet."""
        self._start_ns = 0
        self.found: list[ServiceSpan] = []

    def feed(self, row: BeliefRow) -> None:
        """A member began or ended to run them."""
        if row.value == "true":
            self._running[row.node, row.incarnation] = None
        else:
            self._running.pop((row.node, row.incarnation), None)

    def settle(self, t_ns: int) -> None:
        """Compare the members that run them with those before."""
        nodes = tuple(sorted(item[0] for item in self._running if self._processes.is_awake(item, t_ns)))
        if nodes == self._shown or (self._shown is None and not nodes):
            return
        self._found(t_ns, censored=False)
        self._shown, self._start_ns = nodes, t_ns

    def close(self, end_ns: int) -> None:
        """Close what is open."""
        if self._start_ns < end_ns:
            self._found(end_ns, censored=True)

    def _found(self, end_ns: int, *, censored: bool) -> None:
        if self._shown is None:
            return
        servers = (Servers.NONE, Servers.ONE)[len(self._shown)] if len(self._shown) <= 1 else Servers.TWO
        self.found.append(ServiceSpan(self._broker_name, servers, self._start_ns, end_ns, censored, self._shown))


class ServiceSpans(SettlingSweeps[str, ServiceSweep]):
    """The special services of every broker group.

    Args:
        presence: reads the same rows before.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, presence: Presence) -> None:
        super().__init__(lambda broker_name: ServiceSweep(broker_name, presence.processes))
        self._processes = presence.processes

    @property
    def found(self) -> list[ServiceSpan]:
        """The spans of all broker groups."""
        return [item for sweep in self.of.values() for item in sweep.found]

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs of brokers."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        is_service = row.kind == BeliefKind.SPECIAL_SERVICE
        if is_service and not self._processes.is_dead((row.node, row.incarnation), row.seq):
            self.feed(row.subject, row)

    def concerned(self, t_ns: int) -> Iterable[str]:  # noqa: ARG002 - what stirred is known
        """All groups if a process ended, was suspended or resumed."""
        return self.of if self._processes.stirred else ()


class Served:
    """When each member of a broker group ran the special services.

    Args:
        spans: of all groups.
    """

    def __init__(self, spans: Iterable[ServiceSpan]) -> None:
        self._spans: dict[tuple[str, str], list[Span]] = {}
        for span in spans:
            for node in span.nodes:
                self._spans.setdefault((span.broker_name, node), []).append((span.start_ns, span.end_ns))

    def between_ns(self, broker_name: str, node: str, start_ns: int, end_ns: int) -> int:
        """For how much of the time between two instants a member ran them."""
        spans = self._spans.get((broker_name, node), ())
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)
