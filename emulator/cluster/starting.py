"""The planned start of a cluster: its nodes start kind by kind, each at an instant of its own."""

from collections.abc import Callable, Sequence

import attrs

from emulator.base.chance import named_stream
from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from emulator.spec import Scenario
from nodes.units import NS_PER_MS

_HOSTS_APART = 6
"""Dimensions of the even spread: with more nodes than this, some move in step from seed to seed."""


@attrs.frozen
class StartingHosts:
    """The machines of a scenario whose processes have a planned start, in the order of their starts."""

    address_servers: Sequence[EmulatedHost]
    nameservers: Sequence[EmulatedHost]
    controllers: Sequence[EmulatedHost]
    brokers: Sequence[EmulatedHost]
    """Brokers and containers."""
    broker_after_ms: Sequence[int]
    """Earliest start of each of them, in ms after the kinds before are ready."""
    lock_services: Sequence[EmulatedHost]
    proxies: Sequence[EmulatedHost]
    clients: Sequence[EmulatedHost]
    """Consumers without pods, and producers."""
    client_after_ms: Sequence[int]
    """How much later each of them starts; 0: with the others, on whose start the cluster waits."""
    apis: Sequence[EmulatedHost]
    """API servers and scalers."""

    def all(self) -> list[EmulatedHost]:
        """All of them."""
        servers = [*self.address_servers, *self.nameservers, *self.controllers, *self.brokers, *self.lock_services]
        return [*servers, *self.proxies, *self.clients, *self.apis]


class PlannedStart:
    """Starts an address server, nameservers, controllers, brokers, proxies, clients, kind by kind.

    Each kind starts when the previous one is ready.

    Nodes of a kind start within the scenario's spread, at instants that depend on the seed. The API servers of
    StatefulSets come last, and then start the pods. The cluster does not wait for clients that are to start later.

    Faults may be active meanwhile, and the rule is that of processes at any other time: what a fault keeps down does
    not start. A node whose planned start comes during such a fault starts when the fault ends; a fault that ends before
    does not bring the start forward. The next kind waits for no node that is down or suspended.

    Args:
        world: of the cluster.
        scenario: of the cluster.
        hosts: to start.
        may_start: whether a node may start now; a fault or scaling may keep it down.
    """

    def __init__(
        self, world: World, scenario: Scenario, hosts: StartingHosts, may_start: Callable[[str], bool]
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._hosts = hosts
        self._may_start = may_start
        self._to_come = dict.fromkeys(host.name for host in hosts.all())

    def is_to_come(self, name: str) -> bool:
        """Whether a node has a planned start that has not come yet."""
        return name in self._to_come

    async def run(self) -> None:
        """Start everything; returns when every node that runs is ready."""
        scenario, hosts = self._scenario, self._hosts
        if hosts.address_servers:
            await self._start_all(hosts.address_servers, [0] * len(hosts.address_servers), 0)
        spread_ms = scenario.nameserver_start_spread_ms
        offsets_ms = self._offsets_ms("start of nameservers", hosts.nameservers, spread_ms)
        await self._start_all(hosts.nameservers, offsets_ms, spread_ms)
        if hosts.controllers:
            offsets_ms = self._offsets_ms("start of controllers", hosts.controllers, spread_ms)
            await self._start_all(hosts.controllers, offsets_ms, spread_ms)
        after_ms, spread_ms = hosts.broker_after_ms, scenario.broker_start_spread_ms
        offsets_ms = self._offsets_ms("start of brokers", hosts.brokers, spread_ms)
        offsets_ms = [earliest_ms + drawn for earliest_ms, drawn in zip(after_ms, offsets_ms, strict=True)]
        latest_ms = max(after_ms, default=0) + spread_ms
        await self._start_all(hosts.brokers, offsets_ms, latest_ms + scenario.broker_boot_spread_ms)
        if hosts.lock_services:
            await self._start_all(hosts.lock_services, [0] * len(hosts.lock_services), 0)
        if hosts.proxies:
            await self._start_all(hosts.proxies, [0] * len(hosts.proxies), 0)
        await self._start_clients(self._offsets_ms("start", hosts.clients, scenario.start_spread_ms))
        await self._start_all(hosts.apis, [0] * len(hosts.apis), 0)

    async def _start_clients(self, offsets_ms: list[int]) -> None:
        """Start the clients; returns when those that run are ready, without those that start later."""
        planned = list(zip(self._hosts.client_after_ms, offsets_ms, self._hosts.clients, strict=True))
        begin_ns = self._world.timeline.now_ns
        late = [(begin_ns + (after + offset) * NS_PER_MS, host) for after, offset, host in planned if after]
        if late:
            late.sort(key=lambda start: start[0])
            self._world.nursery.start_soon(self._start_late, late, name="late clients")
            planned = [start for start in planned if not start[0]]
        await self._start_all([host for _, _, host in planned], [offset for _, offset, _ in planned], 0)

    async def _start_late(self, starts: Sequence[tuple[int, EmulatedHost]]) -> None:
        """Start clients at their instants."""
        for at_ns, host in starts:
            await self._world.sleep_until_ns(at_ns)
            del self._to_come[host.name]
            if self._may_start(host.name):
                host.start()
                await host.cpu.wait_for_turn()

    def _offsets_ms(self, stream: str, hosts: Sequence[EmulatedHost], spread_ms: int) -> list[int]:
        if self._scenario.even_starts and hosts:
            return even_start_offsets_ms(self._world.seed, stream, len(hosts), spread_ms, hosts[0].number)
        return start_offsets_ms(self._world.seed, stream, len(hosts), spread_ms)

    async def _start_all(self, hosts: Sequence[EmulatedHost], offsets_ms: list[int], window_ms: int) -> None:
        """Start the nodes of a kind; returns when all that run are ready and the window is over.

        Waiting for the window keeps the starts of the next kind independent of the instants drawn for this one.
        """
        begin_ns = self._world.timeline.now_ns
        for offset_ms, i in sorted(zip(offsets_ms, range(len(hosts)), strict=True)):
            await self._world.sleep_until_ns(begin_ns + offset_ms * NS_PER_MS)
            del self._to_come[hosts[i].name]
            if self._may_start(hosts[i].name):
                hosts[i].start()
                await hosts[i].cpu.wait_for_turn()
        for host in hosts:
            await host.until_ready()
        if window_ms:
            await self._world.sleep_until_ns(begin_ns + window_ms * NS_PER_MS)


def start_offsets_ms(seed: int, stream: str, count: int, spread_ms: int) -> list[int]:
    """Offset of each node's start in ms, drawn independently from 0 to `spread_ms`, both included."""
    chance = named_stream(seed, stream)
    return [chance.randrange(spread_ms + 1) for _ in range(count)]


def even_start_offsets_ms(seed: int, stream: str, count: int, spread_ms: int, first: int) -> list[int]:
    """Offsets of starts in ms that consecutive seeds spread evenly: 30 seeds leave smaller gaps than 30 draws.

    From one seed to the next each node moves on by a fixed share of the spread, modulo the spread. The shares are
    powers of the generalised golden ratio, which keeps points in several dimensions far from each other (an R
    sequence).

    Args:
        first: number of the first node among the nodes of all kinds.
    """
    shares = [_ratio() ** -(1 + (first + i) % _HOSTS_APART) for i in range(count)]
    begins = [named_stream(0, stream, str(i)).random() for i in range(count)]
    return [int((begin + seed * share) % 1 * (spread_ms + 1)) for begin, share in zip(begins, shares, strict=True)]


def _ratio() -> float:
    """The positive root of x^(d+1) = x + 1."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (_HOSTS_APART + 1))
    return root
