"""A cluster: the hosts of a scenario, started in order and ended together."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

import attrs
import trio

from emulator.base.chance import named_stream
from emulator.base.errors import UserError
from emulator.cluster.pods import Pods
from emulator.machine.host import EmulatedHost, NodeFactory, PowerState
from emulator.machine.world import World
from emulator.network.loopback import LoopbackCarrier
from emulator.spec import BrokerSpec, ConsumerGroupSpec, ProducerSpec, Scenario
from emulator.spec.addresses import addresses, newcomer_address, owners
from emulator.spec.model import (
    APISERVER,
    BROKER,
    CONSUMER,
    LEASE_SERVICE,
    NAMESERVER,
    PRODUCER,
    SCALER,
    StatefulSetSpec,
)
from emulator.spec.user_functions import with_user_functions
from faults.consume_mode import ConsumeMode
from nodes.broker.broker import Broker
from nodes.client.consumer.consumer_process import ConsumerOfProcess, ConsumerProcess
from nodes.client.consumer.lite_pull import LitePullConsumer
from nodes.client.consumer.pod import ConsumerPod, PodEnvironment
from nodes.client.consumer.push_consumer import PushConsumer
from nodes.client.producer.steady_producer import SteadyProducer
from nodes.config import Exclusivity, LitePullConsumerConfig
from nodes.host import Host, Node
from nodes.lease_service.lease_service import LEASE_PORT, LeaseService
from nodes.nameserver.nameserver import Nameserver
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageRequestMode, TopicConfig
from nodes.statefulset.kubernetes import API_PORT, POD_PORT, Kubernetes, StatefulSet
from nodes.statefulset.scaler import SCALER_PORT, Scaler

_NS_PER_MS = 1_000_000


class NodeCrashedError(UserError):
    """The code of a node raised: a bug of the emulator, not of the scenario."""


class NoAddressError(Exception):
    """No guest could reach the cluster; the text says why in one line."""


class _SlowBoot:
    """A node whose process loads for a while before it opens its first port; implements `nodes.host.Node`.

    The duration is drawn for every process.

    Args:
        spread_ms: longest duration.
        make: makes the node when the process has loaded.
    """

    def __init__(self, host: Host, spread_ms: int, make: Callable[[Host], Node]) -> None:
        self._host = host
        self._boot_ms = host.rng("boot").randrange(spread_ms + 1)
        self._make = make
        self._node: Node | None = None
        self._asked_to_stop = False

    async def main(self) -> None:
        """Load, then run the node."""
        await self._host.sleep_ms(self._boot_ms)
        if not self._asked_to_stop:
            self._node = self._make(self._host)
            await self._node.main()

    def request_shutdown(self) -> None:
        """Stop; a process that is still loading ends when it has loaded."""
        self._asked_to_stop = True
        if self._node is not None:
            self._node.request_shutdown()


@attrs.frozen
class _HostPlan:
    """What is needed to make a host."""

    name: str
    role: str
    detail: str
    factory: NodeFactory


class Cluster:
    """All hosts of a scenario in one world; an async context manager.

    Entering starts nameservers, then brokers, then clients, each kind when the
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

    async def __aenter__(self) -> Self:
        """Start everything; returns when every node is ready."""
        scenario = self.scenario
        nameservers = [self._add(self._nameserver_plan(i)) for i in range(len(scenario.nameservers))]
        self._nameservers = addresses = tuple(
            f"{host.ip}:{spec.config.listen_port}" for host, spec in zip(nameservers, scenario.nameservers, strict=True)
        )
        brokers = [self._add(self._broker_plan(spec, addresses)) for spec in scenario.brokers]
        consumers = {
            name: self._add(self._consumer_plan(group, name, addresses))
            for group in scenario.consumers
            for name in group.names
        }
        pods = [name for spec in scenario.statefulsets for name in spec.pod_names()]
        clients = [host for name, host in consumers.items() if name not in pods]
        clients += [self._add(self._producer_plan(spec, addresses)) for spec in scenario.producers]
        if scenario.lease_service is not None:
            self._add(_HostPlan(scenario.lease_service, LEASE_SERVICE, "", LeaseService))
        apis = [self._add(self._api_plan(name)) for name in scenario.api_names()]
        apis += [self._add(self._scaler_plan(name)) for name in scenario.scaler_names()]
        offsets_ms = self._offsets_ms("start of nameservers", nameservers, scenario.nameserver_start_spread_ms)
        await self._start_all(nameservers, offsets_ms, scenario.nameserver_start_spread_ms)
        offsets_ms = self._offsets_ms("start of brokers", brokers, scenario.broker_start_spread_ms)
        offsets_ms = [spec.start_after_ms + drawn for spec, drawn in zip(scenario.brokers, offsets_ms, strict=True)]
        latest_ms = max((spec.start_after_ms for spec in scenario.brokers), default=0) + scenario.broker_start_spread_ms
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

    def _newcomer(self, spec: ConsumerGroupSpec, name: str) -> _HostPlan:
        ip = newcomer_address(sum(map(len, self._newcomers.values())))
        self._newcomers.setdefault(spec.group, []).append(name)
        self.addresses[name] = self.addresses[spec.names[0]] if spec.one_address else ip
        self.names.setdefault(self.addresses[name], name)
        return self._consumer_plan(spec, name, self._nameservers)

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

    def _add(self, plan: _HostPlan) -> EmulatedHost:
        ip = self.addresses[plan.name]
        number, shares = len(self.hosts), self._owners.get(ip)
        host = EmulatedHost(self.world, number, plan.name, plan.role, ip, plan.detail, plan.factory, shares)
        if plan.role == CONSUMER and shares is not None:
            # Consumers on one address are processes of one machine; brokers are machines with disks of their own.
            host.disk = shares.disk
        self._owners.setdefault(ip, host)
        self.hosts[plan.name] = host
        return host

    def _nameserver_plan(self, index: int) -> _HostPlan:
        spec = self.scenario.nameservers[index]
        return _HostPlan(spec.name, NAMESERVER, "", lambda host: Nameserver(host, spec.config))

    def _broker_plan(self, spec: BrokerSpec, nameservers: tuple[str, ...]) -> _HostPlan:
        topics = tuple(
            TopicConfig(topic.name, topic.queues, topic.queues)
            for topic in self.scenario.topics
            if spec.broker_name in topic.brokers
        )

        consumers = self.scenario.consumers
        single_active = tuple(it.group for it in consumers if it.config.exclusivity is Exclusivity.SINGLE_ACTIVE)
        modes = tuple(
            SetMessageRequestModeRequestBody(topic, it.group, MessageRequestMode.POP, it.pop_share_queue_num)
            for it in consumers
            for topic in it.topics
            if it.mode is ConsumeMode.POP
        )

        def broker(host: Host) -> Node:
            return Broker(
                host,
                spec.config,
                cluster_name=spec.cluster,
                broker_name=spec.broker_name,
                broker_id=spec.broker_id,
                nameservers=nameservers,
                topics=topics,
                single_active_groups=single_active,
                request_modes=modes,
            )

        boot_spread_ms = self.scenario.broker_boot_spread_ms
        if not boot_spread_ms:
            return _HostPlan(spec.name, BROKER, "", broker)
        return _HostPlan(spec.name, BROKER, "", lambda host: _SlowBoot(host, boot_spread_ms, broker))

    def _consumer_plan(self, spec: ConsumerGroupSpec, name: str, nameservers: tuple[str, ...]) -> _HostPlan:
        groups = [spec, *(it for it in self.scenario.consumers if it.share_process_with == spec.group)]
        if len(groups) > 1:
            consumers = tuple(
                ConsumerOfProcess(it.group, it.topics, it.config, it.consume_ms, it.fail_times, it.expressions)
                for it in groups
            )
            return _HostPlan(name, CONSUMER, spec.group, lambda host: ConsumerProcess(host, consumers, nameservers))
        statefulset = self.scenario.statefulset_of(spec.group)
        if statefulset is not None:
            return self._pod_plan(spec, statefulset, name, nameservers)
        config = spec.config
        if isinstance(config, LitePullConsumerConfig):
            return _HostPlan(
                name,
                CONSUMER,
                spec.group,
                lambda host: LitePullConsumer(
                    host,
                    config,
                    group=spec.group,
                    topics=spec.topics,
                    nameservers=nameservers,
                    consume_ms=spec.consume_ms,
                    expressions=spec.expressions,
                ),
            )
        return _HostPlan(
            name,
            CONSUMER,
            spec.group,
            lambda host: PushConsumer(
                host,
                spec.config,
                group=spec.group,
                topics=spec.topics,
                nameservers=nameservers,
                consume_ms=spec.consume_ms,
                fail_times=spec.fail_times,
                expressions=spec.expressions,
                lease_service=self._lease_address(),
            ),
        )

    def _lease_address(self) -> str:
        name = self.scenario.lease_service
        return "" if name is None else f"{self.addresses[name]}:{LEASE_PORT}"

    def _pod_plan(
        self, spec: ConsumerGroupSpec, statefulset: StatefulSetSpec, name: str, nameservers: tuple[str, ...]
    ) -> _HostPlan:
        if statefulset.scaler is None:
            replicas_address = f"{self.addresses[statefulset.api]}:{API_PORT}"
        else:
            replicas_address = f"{self.addresses[statefulset.scaler]}:{SCALER_PORT}"
        is_notified = statefulset.scaler is not None
        environment = PodEnvironment(statefulset.name, replicas_address, is_notified, POD_PORT, self._lease_address())
        return _HostPlan(
            name,
            CONSUMER,
            spec.group,
            lambda host: ConsumerPod(
                host,
                spec.config,
                environment,
                group=spec.group,
                topics=spec.topics,
                nameservers=nameservers,
                consume_ms=spec.consume_ms,
                fail_times=spec.fail_times,
                expressions=spec.expressions,
            ),
        )

    def _api_plan(self, name: str) -> _HostPlan:
        manifests = tuple(
            StatefulSet(spec.name, spec.replicas, spec.config)
            for spec in self.scenario.statefulsets
            if spec.api == name
        )
        return _HostPlan(name, APISERVER, "", lambda host: Kubernetes(host, manifests, self._pods[name]))

    def _scaler_plan(self, name: str) -> _HostPlan:
        specs = [spec for spec in self.scenario.statefulsets if spec.scaler == name]
        period_s = {spec.name: spec.config.scaler_period_seconds for spec in specs}
        api = f"{self.addresses[specs[0].api]}:{API_PORT}"
        return _HostPlan(name, SCALER, "", lambda host: Scaler(host, api, period_s))

    def _producer_plan(self, spec: ProducerSpec, nameservers: tuple[str, ...]) -> _HostPlan:
        return _HostPlan(
            spec.name,
            PRODUCER,
            "",
            lambda host: SteadyProducer(
                host,
                spec.config,
                group=spec.group,
                topic=spec.topic,
                nameservers=nameservers,
                rate_per_s=spec.rate_per_s,
                tags=spec.tags,
                keys=spec.keys,
                select=spec.select,
                transactions=spec.transactions,
            ),
        )


def namesrv_addr(cluster: Cluster, guest: str | None = None) -> str:
    """The nameservers' addresses for a guest, `HOST:PORT;HOST:PORT`, as in RocketMQ's `NAMESRV_ADDR`.

    Args:
        cluster: in mode `live`.
        guest: name of the guest; None: for guests without a name.

    Raises:
        NoAddressError: the cluster is not in mode `live`, or the scenario has no guest of that name.
    """
    carrier = cluster.world.fabric.carrier
    if not cluster.world.clock.follows_wall or not isinstance(carrier, LoopbackCarrier):
        raise NoAddressError("guests live in real time: only a cluster in mode live has an address for them")
    named = {host.node: host.dialable for host in cluster.world.fabric.guests.named}
    if guest is not None and guest not in named:
        raise NoAddressError(f"no guest is called {guest}; the scenario has {', '.join(named) or 'none with a name'}")
    dialable = carrier.physical_ip if guest is None else named[guest]
    return ";".join(
        f"{dialable(cluster.addresses[spec.name])}:{spec.config.listen_port}" for spec in cluster.scenario.nameservers
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
