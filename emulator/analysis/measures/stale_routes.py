"""Stale routes: how long a client used a route of a topic that no nameserver gave any more.

Clients poll routes every 30 s, so after each change of a route they work with
the old one for a while. A client is stale from the instant at which the last
nameserver gives up the client's route until the client has one that some
nameserver gives. A route from a proxy has the proxy in place of all brokers, so
only its queues and its broker ids are compared.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.presence import Presence
from emulator.analysis.inputs.processes import ENDS
from emulator.analysis.rows.feed import Watcher
from emulator.analysis.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.spec.model.scenario import NAMESERVER, PROXY
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind


@attrs.frozen
class StaleRoute:
    """A client used a route of a topic that no nameserver gave any more."""

    topic: str
    node: str
    start_ns: int
    end_ns: int
    censored: bool


STALE_ROUTES = FindingTable("stale_routes", StaleRoute, "a client used a route that no nameserver gave any more")


def _addresses(route: Mapping[str, Any]) -> list[str]:
    return [address for broker in route.values() for address in broker["addrs"].values()]


def _without_addresses(row: BeliefRow) -> str:
    """The queues and the broker ids of a route, as text that no hash is."""
    route = json.loads(row.value)
    return json.dumps({name: [route[name]["queues"], sorted(route[name]["addrs"])] for name in sorted(route)})


@attrs.define
class _StaleTopic:
    given: dict[Process, BeliefRow] = attrs.Factory(dict)
    """Mapping nameserver -> the route that it gives."""
    used: dict[Process, str] = attrs.Factory(dict)
    """Mapping client -> hash of the route that it uses; of one from a proxy the route without addresses, as text."""
    stale_since: dict[Process, int] = attrs.Factory(dict)


class Staleness(Watcher):
    """Compares the routes of clients with those of nameservers.

    Args:
        presence: reads the same rows before.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, presence: Presence) -> None:
        self._processes = presence.processes
        self._topics: dict[str, _StaleTopic] = {}
        self._touched: dict[str, None] = {}
        self._has_proxies = False
        self._broker_addresses: dict[str, None] = {}
        """Where there are proxies: addresses in routes of nameservers, until now."""
        self.found: list[StaleRoute] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads routes and ends of processes."""
        return {BELIEFS: self._belief, LIFECYCLE: self._life}

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if row.kind != BeliefKind.ROUTE or self._processes.is_dead(process, row.seq):
            return
        topic = self._topics.setdefault(row.subject, _StaleTopic())
        if not row.value_hash:
            (topic.given if row.role == NAMESERVER else topic.used).pop(process, None)
        elif row.role == NAMESERVER:
            topic.given[process] = row
            if self._has_proxies:
                self._remember_addresses(row)
        else:
            self._meet_proxy(row)
            is_from_proxy = self._has_proxies and self._is_from_proxy(json.loads(row.value))
            topic.used[process] = _without_addresses(row) if is_from_proxy else row.value_hash
        self._touched[row.subject] = None

    def _meet_proxy(self, row: BeliefRow) -> None:
        """From the first proxy on remember which addresses are those of brokers."""
        if row.role == PROXY and not self._has_proxies:
            self._has_proxies = True
            for topic in self._topics.values():
                for given in topic.given.values():
                    self._remember_addresses(given)

    def _remember_addresses(self, row: BeliefRow) -> None:
        self._broker_addresses.update(dict.fromkeys(_addresses(json.loads(row.value))))

    def _is_from_proxy(self, route: Mapping[str, Any]) -> bool:
        """Whether no nameserver has ever given an address of this route."""
        found = _addresses(route)
        return bool(found) and not any(address in self._broker_addresses for address in found)

    def _life(self, row: LifeRow) -> None:
        if row.event not in ENDS:
            return
        process = row.node, row.incarnation
        for name, topic in self._topics.items():
            if process in topic.given or process in topic.used:
                topic.given.pop(process, None)
                topic.used.pop(process, None)
                self._touched[name] = None

    def settle(self, t_ns: int) -> None:
        """Compare the routes of each topic that changed."""
        for name in self._touched:
            self._look(name, self._topics[name], t_ns)
        self._touched.clear()

    def _look(self, name: str, topic: _StaleTopic, t_ns: int) -> None:
        given = dict.fromkeys(row.value_hash for row in topic.given.values())
        if any(route.startswith("{") for route in topic.used.values()):
            given |= dict.fromkeys(map(_without_addresses, topic.given.values()))
        stale = {client: None for client, route in topic.used.items() if given and route not in given}
        for node in [client for client in topic.stale_since if client not in stale]:
            since_ns = topic.stale_since.pop(node)
            if since_ns < t_ns:
                self.found.append(StaleRoute(name, node[0], since_ns, t_ns, censored=False))
        for node in stale:
            topic.stale_since.setdefault(node, t_ns)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for name, topic in self._topics.items():
            for (node, _), since_ns in topic.stale_since.items():
                if since_ns < end_ns:
                    self.found.append(StaleRoute(name, node, since_ns, end_ns, censored=True))
