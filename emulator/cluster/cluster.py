"""A cluster: the hosts of a scenario, started in order and ended together."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import trio

from emulator.base.chance import named_stream
from emulator.base.errors import UserError
from emulator.cluster.containers import broker_path, identity_of, inner_machine
from emulator.cluster.node_options import NodeOptions
from emulator.cluster.plans import HostPlan, HostPlans
from emulator.cluster.pods import Pods
from emulator.machine.host import EmulatedHost, PowerState
from emulator.machine.world import World
from emulator.network.guests.address_book import LOOPBACK
from emulator.spec import ConsumerGroupSpec, Scenario
from emulator.spec.addresses import addresses, newcomer_address, owners
from emulator.spec.model import CONSUMER, StatefulSetSpec
from emulator.spec.targets import GUEST
from emulator.spec.user_functions import with_user_functions
from faults.reconfigure import Value
from nodes.container.tables.broker_file import write_broker_file
from nodes.live_config import forget_changes

_NS_PER_MS = 1_000_000


class NodeCrashedError(UserError):
    """The code of a node raised: a bug of the emulator, not of the scenario."""


class NoAddressError(Exception):
    """No guest could reach the cluster; the text says why in one line."""


class Cluster:
    """All hosts of a scenario in one world; an async context manager.

    Entering starts nameservers, then controllers, then brokers, then clients, each kind when the
    previous one is ready; nodes of a kind start within the scenario's spread, at
    instants that depend on the seed. The API servers of StatefulSets come last, and
    then start the pods. Leaving ends every process.

    Raises:
        SpecError: the scenario names a function that cannot be imported.
        NodeCrashedError: on leaving, if a node's own code raised.
    """

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = with_user_functions(scenario)
        self.hosts: dict[str, EmulatedHost] = {}
        self._owners: dict[str, EmulatedHost] = {}
        self.addresses = addresses(scenario)
        """Mapping node -> IP address."""
        self.names = owners(scenario)
        """Mapping IP address, or client id of a guest -> node."""
        self.started = trio.Event()
        """Set when every node of the scenario is ready."""
        self._nameservers: tuple[str, ...] = ()
        self._newcomers: dict[str, list[str]] = {}
        """Mapping group -> consumers that scaling has added."""
        self._retired: dict[str, None] = {}
        """Consumers that scaling has removed."""
        self.is_kept_down: Callable[[str], bool] = lambda _: False
        """Whether a fault keeps a node down."""
        self._has_ended = False
        self._pods = {api: Pods(self.hosts, self._add_pod, self._must_stay_down) for api in scenario.api_names()}
        self._options = NodeOptions(scenario)
        self._plans = HostPlans(scenario, self.addresses, self._options, self._pods)

    async def __aenter__(self) -> Self:
        """Start everything; returns when every node is ready."""
        scenario = self.scenario
        nameservers = [self._add(self._plans.nameserver(spec)) for spec in scenario.nameservers]
        self._nameservers = addresses = tuple(
            f"{host.ip}:{spec.config.listen_port}" for host, spec in zip(nameservers, scenario.nameservers, strict=True)
        )
        controllers = [self._add(self._plans.controller(spec)) for spec in scenario.controllers]
        brokers, after_ms = self._add_brokers()
        consumers = {
            name: self._add(self._plans.consumer(group, name, addresses))
            for group in scenario.consumers
            for name in group.names
        }
        pods = [name for spec in scenario.statefulsets for name in spec.pod_names()]
        clients = [host for name, host in consumers.items() if name not in pods]
        clients += [self._add(self._plans.producer(spec, addresses)) for spec in scenario.producers]
        if scenario.lease_service is not None:
            self._add(self._plans.lease_service(scenario.lease_service))
        apis = [self._add(self._plans.api(name)) for name in scenario.api_names()]
        apis += [self._add(self._plans.scaler(name)) for name in scenario.scaler_names()]
        offsets_ms = self._offsets_ms("start of nameservers", nameservers, scenario.nameserver_start_spread_ms)
        await self._start_all(nameservers, offsets_ms, scenario.nameserver_start_spread_ms)
        if controllers:
            offsets_ms = self._offsets_ms("start of controllers", controllers, scenario.nameserver_start_spread_ms)
            await self._start_all(controllers, offsets_ms, scenario.nameserver_start_spread_ms)
        offsets_ms = self._offsets_ms("start of brokers", brokers, scenario.broker_start_spread_ms)
        offsets_ms = [earliest_ms + drawn for earliest_ms, drawn in zip(after_ms, offsets_ms, strict=True)]
        latest_ms = max(after_ms, default=0) + scenario.broker_start_spread_ms
        await self._start_all(brokers, offsets_ms, latest_ms + scenario.broker_boot_spread_ms)
        if scenario.lease_service is not None:
            await self._start_all([self.hosts[scenario.lease_service]], [0], 0)
        await self._start_all(clients, self._offsets_ms("start", clients, scenario.start_spread_ms), 0)
        await self._start_all(apis, [0] * len(apis), 0)
        self.started.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every process without a row in the trace: the emulation ends, not the nodes."""
        self._has_ended = True
        for host in self.hosts.values():
            if host.process is not None and host.process.alive:
                host.process.die(silent=True)
        crashes = self.crashes()
        if error is None and crashes:
            raise NodeCrashedError("; ".join(crashes)) from next(e for h in self.hosts.values() for e in h.errors)

    def host(self, name: str) -> EmulatedHost:
        """The host of a node.

        Raises:
            KeyError: there is no such node.
        """
        return self.hosts[name]

    def members(self, group: str) -> tuple[str, ...]:
        """Current members of a consumer group, in order; empty for an unknown group."""
        statefulset = self.scenario.statefulset_of(group)
        if statefulset is not None:
            return self._pods[statefulset.api].of(statefulset.name)
        spec = next((it for it in self.scenario.consumers if it.group == group), None)
        known = () if spec is None else (*spec.names, *self._newcomers.get(group, ()))
        return tuple(name for name in known if name not in self._retired)

    def is_retired(self, name: str) -> bool:
        """Whether scaling has removed a consumer, or its StatefulSet has no such pod now."""
        statefulset = self._statefulset_of_pod(name)
        if statefulset is not None:
            return name not in self._pods[statefulset.api].existing
        return name in self._retired

    async def scale(self, group: str, members: int | None, may_start: Callable[[str], bool]) -> int:
        """Scale a consumer group; the last members leave first, each with an orderly shutdown.

        Args:
            group: name of the group.
            members: new number of members; None: that of the scenario.
            may_start: whether a returning member may start; a fault may keep it down.

        Returns:
            Number of members that were added or removed.
        """
        spec = next(it for it in self.scenario.consumers if it.group == group)
        wanted = spec.member_names(len(spec.names) if members is None else members)
        leaving = [name for name in self.members(group) if name not in wanted]
        self._retired |= dict.fromkeys(leaving)
        coming = [name for name in wanted if name not in self.hosts or name in self._retired]
        for name in coming:
            self._retired.pop(name, None)
            host = self.hosts.get(name) or self._add(self._newcomer(spec, name))
            if host.power_state in (PowerState.DOWN, PowerState.POWERED_OFF) and may_start(name):
                host.start()
        async with trio.open_nursery() as nursery:
            for name in leaving:
                if self.hosts[name].power_state is PowerState.RUNNING:
                    nursery.start_soon(self.hosts[name].shutdown)
        return len(leaving) + len(coming)

    def _newcomer(self, spec: ConsumerGroupSpec, name: str) -> HostPlan:
        ip = newcomer_address(sum(map(len, self._newcomers.values())))
        self._newcomers.setdefault(spec.group, []).append(name)
        self.addresses[name] = self.addresses[spec.names[0]] if spec.one_address else ip
        self.names.setdefault(self.addresses[name], name)
        return self._plans.consumer(spec, name, self._nameservers)

    def _statefulset_of_pod(self, name: str) -> StatefulSetSpec | None:
        return next((spec for spec in self.scenario.statefulsets if spec.is_pod(name)), None)

    def _add_pod(self, name: str) -> EmulatedHost:
        """The machine of a pod that the scenario does not name."""
        statefulset = self._statefulset_of_pod(name)
        assert statefulset is not None
        spec = next(it for it in self.scenario.consumers if it.group == statefulset.group)
        return self._add(self._newcomer(spec, name))

    def _must_stay_down(self, name: str) -> bool:
        """Whether a pod cannot be started: a fault keeps it down, or the emulation ends."""
        return self._has_ended or self.is_kept_down(name)

    def expect_configurable(self, name: str, options: Mapping[str, Value]) -> None:
        """Refuse options that a node may not have beside those that it has now.

        Raises:
            SpecError: the first of them.
        """
        self._options.expect_possible(name, options)

    def configure(self, name: str, options: Mapping[str, Value]) -> None:
        """Change options of a node, for its next process and all later ones.

        Raises:
            SpecError: the node may not have them; nothing has changed.
        """
        self._options.change(name, options)
        host = self.hosts[name]
        host.changed_options = self._options.changed(name)
        forget_changes(host.disk, options)
        if host.machine is not host:
            self._write_broker_file(name)

    def crashes(self) -> list[str]:
        """Nodes that raised, one line each: `broker-a: KeyError: ...`."""
        return [f"{h.name}: {type(e).__name__}: {e}" for h in self.hosts.values() for e in h.errors]

    def _offsets_ms(self, stream: str, hosts: list[EmulatedHost], spread_ms: int) -> list[int]:
        if self.scenario.even_starts and hosts:
            return even_start_offsets_ms(self.world.seed, stream, len(hosts), spread_ms, hosts[0].number)
        return start_offsets_ms(self.world.seed, stream, len(hosts), spread_ms)

    async def _start_all(self, hosts: list[EmulatedHost], offsets_ms: list[int], window_ms: int) -> None:
        """Start the nodes of a kind; returns when all are ready and the window is over.

        Waiting for the window keeps the starts of the next kind independent of the instants drawn for this one.
        """
        begin_ns = self.world.timeline.now_ns
        for offset_ms, i in sorted(zip(offsets_ms, range(len(hosts)), strict=True)):
            await self.world.sleep_until_ns(begin_ns + offset_ms * _NS_PER_MS)
            hosts[i].start()
        for host in hosts:
            if host.process is not None and host.power_state is PowerState.RUNNING:
                await host.process.ready.wait()
        if window_ms:
            await self.world.sleep_until_ns(begin_ns + window_ms * _NS_PER_MS)

    def _add_brokers(self) -> tuple[list[EmulatedHost], list[int]]:
        """(machines of brokers and containers, earliest start of each)."""
        machines: dict[str, EmulatedHost] = {}
        after_ms: list[int] = []
        for spec in self.scenario.brokers:
            name = spec.container or spec.name
            if name not in machines:
                after_ms.append(spec.start_after_ms)
                inside = spec.container is not None
                make = self._plans.container if inside else self._plans.broker
                machines[name] = self._add(make(spec, self._nameservers))
            if spec.container is not None:
                self.hosts[spec.name] = inner_machine(len(self.hosts), spec, machines[name])
                self._write_broker_file(spec.name)
        return list(machines.values()), after_ms

    def _write_broker_file(self, name: str) -> None:
        """Write what a broker in a container starts with to the disk of its machine."""
        spec = next(it for it in self.scenario.brokers if it.name == name)
        config = self._options.of(name, spec.config)
        text = write_broker_file(identity_of(spec), config)
        self.hosts[name].machine.disk.write(broker_path(spec), text.encode())

    def _add(self, plan: HostPlan) -> EmulatedHost:
        ip = self.addresses[plan.name]
        number, shares = len(self.hosts), self._owners.get(ip)
        host = EmulatedHost(self.world, number, plan.name, plan.role, ip, plan.detail, plan.factory, shares)
        if plan.role == CONSUMER and shares is not None:
            # Consumers on one address are processes of one machine; brokers are machines with disks of their own.
            host.disk = shares.disk
        self._owners.setdefault(ip, host)
        self.hosts[plan.name] = host
        return host


def namesrv_addr(cluster: Cluster, guest: str | None = None) -> str:
    """The nameservers' addresses for a guest, `HOST:PORT;HOST:PORT`, as in RocketMQ's `NAMESRV_ADDR`.

    Args:
        cluster: in mode `live`.
        guest: name of the guest; None: for guests without a name.

    Raises:
        NoAddressError: the cluster is not in mode `live`, or has no door for such a guest.
    """
    doors = cluster.world.doors
    if doors is None:
        raise NoAddressError("guests live in real time: only a cluster in mode live has an address for them")
    host = doors.hosts.get(guest or GUEST)
    if host is None or guest == GUEST:
        names = ", ".join(cluster.scenario.guests) or "none with a name"
        hint = f"no guest is called {guest}" if guest else "guests without a name have no address where it listens"
        raise NoAddressError(f"{hint}; the scenario has {names}")
    return ";".join(
        host.dialable(f"{cluster.addresses[spec.name]}:{spec.config.listen_port}", LOOPBACK)
        for spec in cluster.scenario.nameservers
    )


_HOSTS_APART = 6
"""Dimensions of the even spread: with more nodes than this, some move in step from seed to seed."""


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
