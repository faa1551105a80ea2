"""Clients of RocketMQ 5 that reach no proxy: their calls fail at once, and leave nothing else in the trace."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.processes import ENDS
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind


@attrs.frozen
class WithoutProxy:
    """A client could connect with none of the proxies behind some endpoints."""

    node: str
    endpoints: str
    """Addresses of the proxies, with `;` between, as clients are given them."""
    start_ns: int
    """The first attempt to connect with all of them that failed."""
    end_ns: int
    """When it was connected with any proxy again, or its process ended."""
    censored: bool


WITHOUT_PROXY = FindingTable("without_proxy", WithoutProxy, "a client of RocketMQ 5 reached no proxy")


class ProxyConnections(Watcher):
    """Follows which clients have lost all proxies."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._since: dict[tuple[Process, str], int] = {}
        """Mapping (client, endpoints) -> when its first attempt failed."""
        self._found: list[WithoutProxy] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads connections of clients, and ends of processes."""
        return {BELIEFS: self._belief, LIFECYCLE: self._life}

    def found(self) -> tuple[WithoutProxy, ...]:
        """All of them, in order of time."""
        return tuple(sorted(self._found, key=attrgetter("start_ns", "node", "endpoints")))

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.PROXY:
            return
        client = row.node, row.incarnation
        if row.value_hash:
            self._end_all(client, row.t_ns)
        else:
            self._since.setdefault((client, row.subject), row.t_ns)

    def _life(self, row: LifeRow) -> None:
        if row.event in ENDS:
            self._end_all((row.node, row.incarnation), row.t_ns)

    def _end_all(self, client: Process, t_ns: int) -> None:
        """A client ends, or it is connected: its next route then names the endpoints that it can reach."""
        for key in [key for key in self._since if key[0] == client]:
            self._end(key, t_ns, censored=False)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for key in list(self._since):
            self._end(key, end_ns, censored=True)

    def _end(self, key: tuple[Process, str], end_ns: int, *, censored: bool) -> None:
        start_ns = self._since.pop(key, end_ns)
        if start_ns < end_ns:
            self._found.append(WithoutProxy(key[0][0], key[1], start_ns, end_ns, censored))
