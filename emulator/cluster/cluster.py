"""A cluster: the hosts of a scenario, started in order and ended together."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

import trio

from emulator.base.errors import UserError
from emulator.cluster.active_faults import ActiveFaults
from emulator.cluster.administrator import Administrator
from emulator.cluster.containers import identity_of, inner_machine
from emulator.cluster.node_options import NodeOptions
from emulator.cluster.plans import HostPlan, HostPlans, SlowBoot
from emulator.cluster.pods import Pods
from emulator.cluster.starting import PlannedStart, StartingHosts
from emulator.guests.address_book import LOOPBACK
from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from emulator.machine.world import World
from emulator.spec import ConsumerGroupSpec, Scenario
from emulator.spec.model.addresses import addresses, domain_addresses, newcomer_address, owners, translation_of
from emulator.spec.model.scenario import CONSUMER, GUEST, StatefulSetSpec
from emulator.spec.reading.user_functions import with_user_functions
from faults.reconfigure import Value
from nodes.broker.broker import Broker
from nodes.container.tables.broker_file import write_broker_file
from nodes.live_config import forget_changes
from nodes.tools.errors import AdminToolError


class NodeCrashedError(UserError):
    """The code of a node raised: a bug of the emulator, not of the scenario."""


class NoAddressError(Exception):
    """No guest could reach the cluster; the text says why in one line."""


class Cluster:
    """All hosts of a scenario in one world; an async context manager whose end ends every process.

    The machines are there from the beginning, without a process; `start` starts the nodes.

    Args:
        world: of the run.
        scenario: of the run.
        names: mapping IP address, or client id of a guest -> node, which grows; None: that of the scenario.

    Raises:
        SpecError: the scenario names a function that is not allowed or cannot be imported.
        NodeCrashedError: on leaving, if a node's own code raised.
    """

    def __init__(self, world: World, scenario: Scenario, names: dict[str, str] | None = None) -> None:
        self.scenario = with_user_functions(scenario)
        self.world = world
        self.hosts: dict[str, EmulatedHost] = {}
        self._owners: dict[str, EmulatedHost] = {}
        self.addresses = addresses(scenario)
        """Mapping node -> IP address."""
        self.names = owners(scenario) if names is None else names
        """Mapping IP address, or client id of a guest -> node."""
        self.started = trio.Event()
        """Set when every node of the scenario that runs is ready: all but those that faults keep down or suspended."""
        self.faults = ActiveFaults(world.fabric.hits)
        """The active faults, which the operator begins and ends."""
        self._nameservers = tuple(
            f"{self.addresses[spec.name]}:{spec.config.listen_port}"
            for spec in scenario.nameservers
            if not spec.added_later
        )
        self.absent = dict.fromkeys(scenario.added_later())
        """Nodes without a process that an administrator has not started, or has shut down."""
        world.fabric.translate(translation_of(scenario))
        world.domains.ips.update(domain_addresses(scenario, self.addresses))
        self.administrator = Administrator(world, scenario, self, self.names)
        """Carries out acts, on a machine of its own that is no node of the scenario."""
        self._newcomers: dict[str, list[str]] = {}
        """Mapping group -> consumers that scaling has added."""
        self._retired: dict[str, None] = {}
        """Consumers that scaling has removed."""
        self._has_ended = False
        self._pods = {api: Pods(self.hosts, self._add_pod, self._must_stay_down) for api in scenario.api_names()}
        self._options = NodeOptions(scenario)
        self._plans = HostPlans(scenario, self.addresses, self._options, self._pods, world.fabric.translation)
        self._planned_start = PlannedStart(world, scenario, self._add_all(), self._may_start)

    def _add_all(self) -> StartingHosts:
        """Add the machines of the scenario."""
        scenario, plans, addresses = self.scenario, self._plans, self._nameservers
        nameservers = self._starting([self._add(plans.nameserver(spec)) for spec in scenario.nameservers])
        controllers = [self._add(plans.controller(spec)) for spec in scenario.controllers]
        brokers, after_ms = self._add_brokers()
        consumers = {
            name: self._add(plans.consumer(group, name, addresses))
            for group in scenario.consumers
            for name in group.names
        }
        pods = [name for spec in scenario.statefulsets for name in spec.pod_names()]
        clients = [host for name, host in consumers.items() if name not in pods]
        clients += [self._add(plans.producer(spec, addresses)) for spec in scenario.producers]
        late_ms = {name: group.start_after_ms for group in scenario.consumers for name in group.names}
        late_ms |= {spec.name: spec.start_after_ms for spec in scenario.producers}
        client_after_ms = [late_ms[host.name] for host in clients]
        lock_services = [self._add(plans.lock_service(name)) for name in scenario.lock_services()]
        proxies = [self._add(plans.proxy(spec, addresses)) for spec in scenario.proxies]
        apis = [self._add(plans.api(name)) for name in scenario.api_names()]
        apis += [self._add(plans.scaler(name)) for name in scenario.scaler_names()]
        address_server = scenario.address_server
        address_servers = [] if address_server is None else [self._add(plans.address_server(address_server))]
        return StartingHosts(
            *(address_servers, nameservers, controllers, brokers, after_ms),
            *(lock_services, proxies, clients, client_after_ms, apis),
        )

    def _starting(self, hosts: list[EmulatedHost]) -> list[EmulatedHost]:
        """The machines whose processes start with the cluster."""
        return [host for host in hosts if host.name not in self.absent]

    async def start(self) -> None:
        """Start every node at its planned instant; returns when all that run are ready. See `PlannedStart`."""
        await self._planned_start.run()
        self.started.set()

    async def __aenter__(self) -> Self:
        """Nothing is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every process without a row in the trace: the emulation ends, not the nodes."""
        self._has_ended = True
        for host in self._machines():
            if host.process is not None and host.process.alive:
                host.process.die(silent=True)
        crashes = self.crashes()
        if error is None and crashes:
            raise NodeCrashedError("; ".join(crashes)) from next(e for h in self._machines() for e in h.errors)

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
        spec = next((consumer for consumer in self.scenario.consumers if consumer.group == group), None)
        known = () if spec is None else (*spec.names, *self._newcomers.get(group, ()))
        return tuple(name for name in known if name not in self._retired)

    def is_retired(self, name: str) -> bool:
        """Whether scaling has removed a consumer, or its StatefulSet has no such pod now."""
        statefulset = self._statefulset_of_pod(name)
        if statefulset is not None:
            return name not in self._pods[statefulset.api].existing
        return name in self._retired

    def is_start_to_come(self, name: str) -> bool:
        """Whether what starts a node, its planned start or an act, has not come; a part of a process starts with it."""
        host = self.hosts[name]
        if host.machine is not host and host.process is not None:  # an administrator has added it
            return self._planned_start.is_to_come(host.machine.name)
        return name in self.absent or self._planned_start.is_to_come(host.machine.name)

    def _may_start(self, name: str) -> bool:
        """Whether a process may start now; a fault that keeps it down has hit it."""
        return not self.is_start_to_come(name) and not self.is_retired(name) and not self.faults.withhold(name)

    async def start_node(self, name: str) -> None:
        """Start the process of a node that is absent, unless a fault keeps it down: it starts when that ends.

        Raises:
            AdminToolError: it is not absent.
        """
        if name not in self.absent:
            raise AdminToolError(f"{name} has been started already")
        del self.absent[name]
        host = self.hosts[name]
        if host.power_state in (PowerState.DOWN, PowerState.POWERED_OFF) and self._may_start(name):
            host.start()
            await host.cpu.wait_for_turn()

    async def shutdown_node(self, name: str) -> None:
        """Shut the process of a node down, which is absent from then on; returns when it has ended.

        Raises:
            AdminToolError: it is absent already.
        """
        if name in self.absent:
            raise AdminToolError(f"{name} has not been started")
        self.absent[name] = None
        await self.hosts[name].terminate()

    async def scale(self, group: str, members: int | None) -> int:
        """Scale a consumer group; the last members leave first, each with an orderly shutdown.

        Args:
            group: name of the group.
            members: new number of members; None: that of the scenario.

        Returns:
            Number of members that were added or removed.
        """
        spec = next(consumer for consumer in self.scenario.consumers if consumer.group == group)
        wanted = spec.member_names(len(spec.names) if members is None else members)
        leaving = [name for name in self.members(group) if name not in wanted]
        self._retired |= dict.fromkeys(leaving)
        coming = [name for name in wanted if name not in self.hosts or name in self._retired]
        for name in coming:
            self._retired.pop(name, None)
            host = self.hosts.get(name) or self._add(self._newcomer(spec, name))
            if host.power_state in (PowerState.DOWN, PowerState.POWERED_OFF) and self._may_start(name):
                host.start()
                await host.cpu.wait_for_turn()
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
        self.world.fabric.translation.place_next_to(self.addresses[name], self.addresses[spec.names[0]])
        return self._plans.consumer(spec, name, self._nameservers)

    def _statefulset_of_pod(self, name: str) -> StatefulSetSpec | None:
        return next((spec for spec in self.scenario.statefulsets if spec.is_pod(name)), None)

    def _add_pod(self, name: str) -> EmulatedHost:
        """The machine of a pod that the scenario does not name."""
        statefulset = self._statefulset_of_pod(name)
        assert statefulset is not None
        spec = next(consumer for consumer in self.scenario.consumers if consumer.group == statefulset.group)
        return self._add(self._newcomer(spec, name))

    def _must_stay_down(self, name: str) -> bool:
        """Whether a pod cannot be started: a fault keeps it down, or the emulation ends."""
        return self._has_ended or self.faults.withhold(name)

    def require_configurable(self, name: str, options: Mapping[str, Value]) -> None:
        """Refuse options that a node may not have with those that it has now.

        Raises:
            SpecError: the first of them.
        """
        self._options.require_possible(name, options)

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

    def topics_of_brokers(self) -> tuple[str, ...]:
        """The topics that brokers have now."""
        return tuple(dict.fromkeys(topic for broker in self._brokers() for topic in broker.context.topics.topics))

    def groups_of_brokers(self) -> tuple[str, ...]:
        """The consumer groups that brokers have now."""
        return tuple(dict.fromkeys(group for broker in self._brokers() for group in broker.context.groups.groups))

    def _brokers(self) -> Iterator[Broker]:
        """The brokers that run."""
        for spec in self.scenario.brokers:
            host = self.hosts[spec.name]
            node = host.node.node if isinstance(host.node, SlowBoot) else host.node
            if isinstance(node, Broker) and host.process is not None and host.process.alive:
                yield node

    def crashes(self) -> list[str]:
        """Nodes that raised, one line each: `broker-a: KeyError: ...`."""
        return [f"{h.name}: {type(e).__name__}: {e}" for h in self._machines() for e in h.errors]

    def _machines(self) -> tuple[EmulatedHost, ...]:
        return (*self.hosts.values(), self.administrator.host)

    def _add_brokers(self) -> tuple[list[EmulatedHost], list[int]]:
        """(machines of brokers and containers, earliest start of each)."""
        machines: dict[str, EmulatedHost] = {}
        for spec in self.scenario.brokers:
            name = spec.container or spec.name
            if name not in machines:
                inside = spec.container is not None
                make = self._plans.container if inside else self._plans.broker
                machines[name] = self._add(make(spec, self._nameservers))
            if spec.container is not None:
                self.hosts[spec.name] = inner_machine(len(self.hosts), spec, machines[name])
                self._write_broker_file(spec.name)
        starting = self._starting(list(machines.values()))
        first = {spec.container or spec.name: spec.start_after_ms for spec in reversed(self.scenario.brokers)}
        return starting, [first[host.name] for host in starting]

    def _write_broker_file(self, name: str) -> None:
        """Write what a broker in a container starts with to the disk of its machine."""
        spec = next(broker for broker in self.scenario.brokers if broker.name == name)
        config = self._options.of(name, spec.config)
        text = write_broker_file(identity_of(spec), config)
        self.hosts[name].machine.disk.write(spec.path, text.encode())

    def _add(self, plan: HostPlan) -> EmulatedHost:
        ip = self.addresses[plan.name]
        number, shares = len(self.hosts), self._owners.get(ip)
        # Consumers on one address are processes of one machine; brokers are machines with disks of their own.
        item = plan.role == CONSUMER
        host = EmulatedHost(
            self.world, number, plan.name, plan.role, ip, plan.detail, plan.factory, shares, shares_disk=item
        )
        self._owners.setdefault(ip, host)
        self.hosts[plan.name] = host
        return host


def namesrv_addr(cluster: Cluster, guest: str | None = None) -> str:
    """The nameservers' addresses for a guest, `HOST:PORT;HOST:PORT`, as in RocketMQ's `NAMESRV_ADDR`.

    Args:
        cluster: in mode `live`.
        guest: name of the guest; None: for guests without a name.

    Raises:
        NoAddressError: the cluster is not in mode `live`, or has no guest listener for such a guest.
    """
    specs = cluster.scenario.nameservers
    return _dialable(cluster, guest, {spec.name: spec.config.listen_port for spec in specs})


def endpoints(cluster: Cluster, guest: str | None = None) -> str:
    """The proxies' addresses for a guest, `HOST:PORT;HOST:PORT`, for clients of RocketMQ 5; empty without proxies.

    Args:
        cluster: in mode `live`.
        guest: as of `namesrv_addr`.

    Raises:
        NoAddressError: as of `namesrv_addr`.
    """
    specs = cluster.scenario.proxies
    return _dialable(cluster, guest, {spec.name: spec.config.grpc_server_port for spec in specs})


def proxy_namesrv_addr(cluster: Cluster, guest: str | None = None) -> str:
    """The remoting ports of proxies for a guest, in the form of `namesrv_addr`, for clients of RocketMQ 4.

    Args:
        cluster: in mode `live`.
        guest: as of `namesrv_addr`.

    Raises:
        NoAddressError: as of `namesrv_addr`.
    """
    specs = cluster.scenario.proxies
    return _dialable(cluster, guest, {spec.name: spec.config.remoting_listen_port for spec in specs})


def _dialable(cluster: Cluster, guest: str | None, ports: Mapping[str, int]) -> str:
    guest_listeners = cluster.world.guests.listeners
    if guest_listeners is None:
        raise NoAddressError("guests live in real time: only a cluster in mode live has an address for them")
    host = guest_listeners.hosts.get(guest or GUEST)
    if host is None or guest == GUEST:
        names = ", ".join(cluster.scenario.guests) or "none with a name"
        hint = f"no guest is called {guest}" if guest else "guests without a name have no address where it listens"
        raise NoAddressError(f"{hint}; the scenario has {names}")
    present = {name: port for name, port in ports.items() if name not in cluster.absent}
    return ";".join(host.dialable(f"{cluster.addresses[name]}:{port}", LOOPBACK) for name, port in present.items())
