"""Stale routes: how long a client used a route of a topic that no nameserver gave any more.

Clients poll routes every 30 s, so after each change of a route they work with
the old one for a while. A client is stale from the instant at which the last
nameserver gives up the client's route until the client has one that some
nameserver gives. A route from a proxy has the proxy in place of all brokers, so
only its queues and its broker ids are compared.

Clients of RocketMQ 5 poll a proxy, which asks a nameserver only when its own
route is older than 20 s, and then still answers with the old one. What a proxy
has cached is not stale by itself: it may be of a topic that no client uses.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.presence import Presence
from emulator.history.processes import ENDS
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.spec.model.scenario import NAMESERVER, PROXY
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind
from nodes.protocol.model import is_readable, is_writeable


@attrs.frozen
class StaleRoute:
    """A client used a route of a topic that no nameserver gave any more."""

    topic: str
    node: str
    behind_proxy: bool
    """Whether it asks a proxy, so that two caches are between it and nameservers."""
    start_ns: int
    end_ns: int
    censored: bool


PROXY_CACHE_MS = 40_000
"""A proxy reloads a route with the first use after 20 s; a client that receives uses it each 20 s at least."""
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
    answered: dict[Process, Any] = attrs.Factory(dict)
    """Mapping client of RocketMQ 5 -> the route that a proxy has answered."""
    behind_proxy: dict[Process, None] = attrs.Factory(dict)
    """All clients that have asked a proxy, also those that have ended."""
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
        if row.kind not in (BeliefKind.ROUTE, BeliefKind.PROXY_ROUTE) or self._processes.is_dead(process, row.seq):
            return
        if row.role == PROXY:
            self._meet_proxy()
            return
        topic = self._topics.setdefault(row.subject, _StaleTopic())
        held: dict[Process, Any]
        value: Any
        if row.kind == BeliefKind.PROXY_ROUTE:
            held, value = topic.answered, _without_endpoints(json.loads(row.value))
            topic.behind_proxy[process] = None
        elif row.role == NAMESERVER:
            held, value = topic.given, row
            if self._has_proxies and row.value_hash:
                self._remember_addresses(row)
        else:
            held, value = topic.used, self._used(topic, row)
        if row.value_hash:
            held[process] = value
        else:
            held.pop(process, None)
        self._touched[row.subject] = None

    def _used(self, topic: _StaleTopic, row: BeliefRow) -> str:
        if not self._has_proxies or not row.value_hash or not self._is_from_proxy(json.loads(row.value)):
            return row.value_hash
        topic.behind_proxy[row.node, row.incarnation] = None
        return _without_addresses(row)

    def _meet_proxy(self) -> None:
        """From the first proxy on remember which addresses are those of brokers."""
        if not self._has_proxies:
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
            every: tuple[dict[Process, Any], ...] = topic.given, topic.used, topic.answered
            if any(process in held for held in every):
                for held in every:
                    held.pop(process, None)
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
        if topic.answered and given:
            through = [_answer_of_proxies(json.loads(row.value)) for row in topic.given.values()]
            stale |= {client: None for client, route in topic.answered.items() if route not in through}
        for node in [client for client in topic.stale_since if client not in stale]:
            since_ns = topic.stale_since.pop(node)
            if since_ns < t_ns:
                self._found(name, topic, node, since_ns, t_ns, censored=False)
        for node in stale:
            topic.stale_since.setdefault(node, t_ns)

    def _found(
        self, name: str, topic: _StaleTopic, client: Process, start_ns: int, end_ns: int, *, censored: bool
    ) -> None:
        self.found.append(StaleRoute(name, client[0], client in topic.behind_proxy, start_ns, end_ns, censored))

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for name, topic in self._topics.items():
            for client, since_ns in topic.stale_since.items():
                if since_ns < end_ns:
                    self._found(name, topic, client, since_ns, end_ns, censored=True)


def _without_endpoints(answer: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Which proxies a client calls for a broker is not what nameservers give."""
    return {name: {**broker, "endpoints": []} for name, broker in (answer or {}).items()}


def _answer_of_proxies(route: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value of PROXY_ROUTE for that of a nameserver's ROUTE, without endpoints: a queue counts for each replica."""
    answer = {}
    for name, broker in route.items():
        ids = sorted(int(number) for number in broker["addrs"])
        read, write, perm = broker["queues"]
        queues = [number for number, is_there in ((read, is_readable(perm)), (write, is_writeable(perm))) if is_there]
        answer[name] = {"endpoints": [], "ids": ids, "queues": len(ids) * max(queues or (1, read, write))}
    return answer
