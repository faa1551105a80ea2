"""A scenario as frozen values: nodes, topics, groups, and faults."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from emulator.acts.act import TimedAct
from emulator.base.chance import named_stream
from emulator.spec.code.user_code import UserCode
from emulator.spec.model.guest_limits import GuestLimits
from emulator.spec.model.networks import Network, PrivateNetworkSpec
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ConsumerMode, ProxySpec
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.tables.bounds import (
    DOMAIN_NAME,
    GROUP_NAME,
    NODE_NAME,
    NODE_NAMES,
    QUEUES_MAX,
    SCENARIO_NAME,
    SEED,
    TOPIC_NAME,
)
from faults.nemesis import Nemesis, timelines
from faults.plan import Plan
from faults.scale import MEMBERS_MAX
from faults.words import is_whole
from nodes.allocation.ordinal import pod_name
from nodes.config import (
    BrokerConfig,
    Config,
    ConsumerConfig,
    ControllerConfig,
    Exclusivity,
    LitePullConsumerConfig,
    LockServiceKind,
    NameserverConfig,
    NameserverWithControllerConfig,
    PullConsumerConfig,
    StatefulSetConfig,
    with_options_of_controller,
)
from nodes.config.accounts import WHITE_ADDRESSES, PlainAccessConfig
from nodes.config.client5 import Consumer5Config
from nodes.fields import NAMES, TEXT_MAP, TEXTS, TIME_MAX_MS, Rule, Usual, checked, choice, flag, span, text, whole
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.values import frozen

NAMESERVER, BROKER, CONSUMER, PRODUCER = "nameserver", "broker", "consumer", "producer"
CONTAINER, CONTROLLER = "container", "controller"
APISERVER, SCALER, LEASE_SERVICE, ADDRESS_SERVER = "apiserver", "scaler", "lease-service", "address-server"
PROXY = "proxy"
"""The roles of nodes."""
GUEST = "guest"
"""Node name of every guest without a name."""
ADMINISTRATOR = "administrator"
"""Node name, and role, of the machine on which acts are carried out; a run has it from the first act on."""
LEASES = "leases"
"""Name of the node with the lock service, which every scenario has in which a group takes leases."""
REDLOCK_NODES = 5
"""Nodes of Redlock, as in its documentation: `leases-1` and so on."""
NO_EXPRESSIONS: Mapping[str, str] = MappingProxyType({})
NO_OPTIONS: Mapping[str, str] = {}
"""A plain mapping, since scenarios are pickled."""


@frozen
class _UnshownRule(Rule):
    """A rule whose problem does not show the value: a secret may be among its texts."""

    def problem(self, _value: object) -> str:
        """What was expected."""
        return f"expected {self.expected}"


_TEXTS = _UnshownRule("a table of texts", TEXT_MAP.holds)


@attrs.frozen
class NameserverSpec:
    """One nameserver."""

    name: str = checked(NODE_NAME)
    """Name of the node."""
    config: NameserverConfig = attrs.field(default=NameserverConfig(), converter=with_options_of_controller)
    added_later: bool = flag(default=False)
    """It does not run at the start: `start-node` starts it. Nodes without `namesrvAddr` do not know it."""


@attrs.frozen
class AddressServerSpec:
    """The web server from which nodes with `fetchNamesrvAddrByAddressServer` fetch the list of nameservers."""

    nameservers: tuple[str, ...] = checked(TEXTS)
    """The list, until an administrator changes it: nameservers of the scenario, or `HOST:PORT`; may be empty."""
    name: str = checked(NODE_NAME, ADDRESS_SERVER)
    """Name of the node."""


@attrs.frozen
class DomainSpec:
    """A domain name, for lists of nameservers; an administrator may change what it stands for."""

    name: str = checked(DOMAIN_NAME)
    """The name, without a port: `nameservers.example`."""
    nodes: tuple[str, ...] = checked(TEXTS)
    """Nameservers whose IP addresses it stands for at first; empty: it is unknown."""


@attrs.frozen
class ControllerSpec:
    """One of the controllers, which elect masters together (RIP-44)."""

    name: str = checked(NODE_NAME)
    """Name of the node."""
    config: ControllerConfig = ControllerConfig()


@attrs.frozen
class BrokerSpec:
    """One broker: a master (id 0) or a slave of its group."""

    broker_name: str = checked(NODE_NAME, key="name")
    """brokerName, the name of its group; a master has it as a node, too."""
    broker_id: int = whole(0, minimum=0, key="id")
    """brokerId: 0 is the master."""
    cluster: str = text("DefaultCluster")
    """Cluster of brokers that it registers for."""
    config: BrokerConfig = BrokerConfig()
    start_after_ms: int = span(0)
    """Earliest start, in ms after the nameservers are ready."""
    address_of: str | None = text(None)
    """Name of an earlier broker whose IP address it shares; None: an address of its own."""
    container: str | None = checked(NODE_NAME, None)
    """Name of the container whose process it is a part of; None: a process and a machine of its own."""
    node: str | None = checked(NODE_NAME, None)
    """Name of the node; needed for two brokers with the same brokerName and id."""
    not_emulated: Mapping[str, str] = checked(_TEXTS, NO_OPTIONS)
    """Options of RocketMQ that are not emulated: `getBrokerConfig` prints these texts, and nothing else reads them."""
    added_later: bool = flag(default=False)
    """It does not run at the start: `start-node` starts it, in a container `add-broker`. Topics that name no brokers do
    not concern it."""

    @property
    def name(self) -> str:
        """Name of the node: `node`, else the brokerName for a master, else with the id: `broker-a-s1`."""
        if self.node is not None:
            return self.node
        return self.broker_name if self.broker_id == 0 else f"{self.broker_name}-s{self.broker_id}"

    @property
    def path(self) -> str:
        """The file of a broker of a container on the disk of its machine."""
        return f"conf/{self.name}.conf"


@attrs.frozen
class TopicSpec:
    """A topic, which exists from the start unless it says otherwise."""

    name: str = checked(TOPIC_NAME)
    """Its name."""
    brokers: tuple[str, ...] = checked(NAMES)
    """brokerNames of the broker groups that have the topic."""
    queues: int = whole(8, minimum=1, limit=QUEUES_MAX)
    """Read queues and write queues in each broker group."""
    message_type: TopicMessageType = choice(TopicMessageType, TopicMessageType.NORMAL)
    """Its attribute `message.type`: proxies refuse messages of other types."""
    created_later: bool = flag(default=False)
    """No broker has it at the start: the first message creates it where brokers may (`autoCreateTopicEnable`), at the
    broker that gets this message, or an administrator does; `queues` and `brokers` mean nothing then."""


@attrs.frozen
class ConsumerGroupSpec:
    """Consumers of one group, all with the same options."""

    group: str = checked(GROUP_NAME)
    """Consumer group."""
    names: tuple[str, ...] = checked(NODE_NAMES)
    """Names of their nodes; empty if they share the processes of another group."""
    topics: tuple[str, ...] = checked(NAMES)
    """Topics that each of them subscribes to."""
    config: ConsumerConfig = ConsumerConfig()
    """A `LitePullConsumerConfig` makes them lite pull consumers, a `PullConsumerConfig` classic pull consumers."""
    consume_ms: int = whole(0, minimum=0, limit=TIME_MAX_MS, usual=Usual(0, 3_600_000))
    """Time of the listener for one message; of a lite pull consumer, time of its application for one poll; of a
    classic pull consumer, for one pull."""
    fail_times: int = whole(0, minimum=0)
    """Failures of the listener for each message before it succeeds."""
    expressions: Mapping[str, str] = checked(TEXT_MAP, NO_EXPRESSIONS)
    """Mapping topic -> tag expression such as `a || b`; `*` for a topic that is missing."""
    share_process_with: str | None = text(None)
    """An earlier group whose processes also consume for this group. The option `instanceName` decides what the two
    consumers of a process share: with the same name they are one client, with one id and one thread each for
    heartbeats and rebalance; by default each consumer has its own name."""
    mode: ConsumerMode = choice(ConsumerMode, ConsumerMode.PULL)
    """How they get their messages: `pull` or `pop` as an operator has set it at all brokers before the start, where
    `pop` needs `clientRebalance = false`, which it brings along in a file; `push5` and `simple` are clients of
    RocketMQ 5, with options of their own."""
    endpoints: tuple[str, ...] = checked(TEXTS, ())
    """With `mode = "push5"` or `"simple"`: the proxies of their access point; empty: all, in the order of the file."""
    orderly: bool = flag(default=False)
    """With `mode = "push5"` or `"simple"`: all brokers have the group with `consumeMessageOrderly`, so that its
    messages are received in order."""
    config5: Consumer5Config | None = None
    """The options of clients of RocketMQ 5; None: these are others."""
    pop_share_queue_num: int = whole(0, minimum=-1)
    """With `mode = "pop"`: of how many following members each pops the queues, too; 0 or -1: all pop all queues."""
    start_after_ms: int = span(0)
    """Start this much later than the other clients, in ms after brokers are ready; the start spread comes on top."""
    one_address: bool = flag(default=False)
    """All of them have one IP address; with the same `instanceName` brokers take them for one client."""

    def member_names(self, members: int) -> tuple[str, ...]:
        """Names of its nodes for a number of members: `billing+4` is the fourth if the scenario names three."""
        more = (f"{self.group}+{number}" for number in range(len(self.names) + 1, members + 1))
        return (*self.names[:members], *more)

    @property
    def lite_pull(self) -> bool:
        """Whether these are lite pull consumers."""
        return isinstance(self.config, LitePullConsumerConfig)

    @property
    def classic_pull(self) -> bool:
        """Whether these are classic pull consumers."""
        return isinstance(self.config, PullConsumerConfig)

    @property
    def has_listener(self) -> bool:
        """Whether these are push consumers."""
        return not (self.lite_pull or self.classic_pull)


@attrs.frozen
class StatefulSetSpec:
    """A StatefulSet, whose pods are the consumers of a group: `consumer-0`, `consumer-1`, ..."""

    group: str = text()
    """The consumer group; the names of its consumers are those of the pods."""
    name: str = checked(NODE_NAME, "consumer")
    """Its name, with which the names of its pods begin."""
    replicas: int = whole(1, minimum=0, limit=MEMBERS_MAX)
    """Pods that are desired at first."""
    api: str = checked(NODE_NAME, "kubernetes")
    """Name of the node with the API server; several StatefulSets may share it."""
    scaler: str | None = checked(NODE_NAME, None)
    """Name of the node that reads the replicas and notifies the pods; None: each pod polls the API server."""
    config: StatefulSetConfig = StatefulSetConfig()

    def pod_names(self) -> tuple[str, ...]:
        """Names of the pods that are desired at first."""
        return tuple(pod_name(self.name, ordinal) for ordinal in range(self.replicas))

    def is_pod(self, node: str) -> bool:
        """Whether a node has the name of one of its pods, which scaling may add."""
        stem, _, digits = node.rpartition("-")
        return stem == self.name and is_whole(digits) and int(digits) < MEMBERS_MAX


@attrs.frozen(kw_only=True)
class Scenario:
    """A cluster and its faults; scenario, seed and version identify a run.

    Raises:
        SpecError: its parts do not fit together.
    """

    name: str = checked(SCENARIO_NAME)
    """Begins the name of each of its run directories."""
    seed: int = checked(SEED, 1)
    """Decides all that is random in a run."""
    run_for_ms: int = span(minimum=1)
    """Length of a run."""
    nameserver_start_spread_ms: int = span(0)
    """Nameservers, and then controllers, start within this time, at instants that depend on the seed."""
    broker_start_spread_ms: int = span(0)
    """Brokers start within this time of each other, at instants that depend on the seed."""
    even_starts: bool = flag(default=False)
    """Consecutive seeds spread the starts evenly; otherwise each seed draws them independently."""
    broker_boot_spread_ms: int = span(0)
    """Longest time that a broker's process loads before it does anything; drawn for every process."""
    start_spread_ms: int = span(1_000)
    """Consumers and producers start within this time of each other, at instants that depend on the seed."""
    network: Network = Network()
    private_networks: tuple[PrivateNetworkSpec, ...] = ()
    guest_limits: GuestLimits = GuestLimits()
    service: ServiceLimits = ServiceLimits()
    """Limits of the service verdict."""
    nameservers: tuple[NameserverSpec, ...] = (NameserverSpec("ns-1"), NameserverSpec("ns-2"))
    address_server: AddressServerSpec | None = None
    """None: there is none."""
    domains: tuple[DomainSpec, ...] = ()
    controllers: tuple[ControllerSpec, ...] = ()
    proxies: tuple[ProxySpec, ...] = ()
    brokers: tuple[BrokerSpec, ...]
    topics: tuple[TopicSpec, ...] = ()
    consumers: tuple[ConsumerGroupSpec, ...] = ()
    producers: tuple[ProducerSpec, ...] = ()
    statefulsets: tuple[StatefulSetSpec, ...] = ()
    guests: tuple[str, ...] = checked(NODE_NAMES, ())
    """Names of guests, which are real programs on hosts of their own; only in mode `live`."""
    global_white_remote_addresses: tuple[str, ...] = checked(WHITE_ADDRESSES, ())
    """Addresses whose requests brokers with ACL 1.0 accept without a signature, such as those of slaves."""
    accounts: tuple[PlainAccessConfig, ...] = ()
    """Accounts of ACL 1.0, and those that options of ACL 2.0 name."""
    faults: Plan = Plan()
    nemeses: tuple[Nemesis, ...] = ()
    """Faults that come again and again, in addition to the plan; the seed decides what is random about them."""
    acts: tuple[TimedAct, ...] = ()
    """What an administrator does, each at its instant."""
    code: UserCode = attrs.field(default=UserCode(), eq=False, repr=False)
    """What it may run of the code that it names: a matter of this machine, which no file records."""

    def plan(self) -> Plan:
        """All faults of a run: those of the scenario, and those that the seed draws for its nemeses."""
        drawn = timelines(self.nemeses, self.run_for_ms, lambda name: named_stream(self.seed, "nemesis", name))
        return Plan((*self.faults.faults, *drawn))

    def api_names(self) -> tuple[str, ...]:
        """Names of the nodes with an API server of Kubernetes."""
        return tuple(dict.fromkeys(spec.api for spec in self.statefulsets))

    def containers(self) -> dict[str, tuple[BrokerSpec, ...]]:
        """Mapping container -> its brokers, in the order of the scenario."""
        names = dict.fromkeys(spec.container for spec in self.brokers if spec.container is not None)
        return {name: tuple(spec for spec in self.brokers if spec.container == name) for name in names}

    def controller_names(self) -> tuple[str, ...]:
        """Names of the nodes with a controller, in the order of their ids: `n0`, `n1`, ..."""
        return tuple(spec.name for spec in self.all_controllers())

    def all_controllers(self) -> tuple[ControllerSpec, ...]:
        """Nodes that are controllers, then nameservers with a controller in their processes."""
        inside = (
            ControllerSpec(spec.name, spec.config)
            for spec in self.nameservers
            if isinstance(spec.config, NameserverWithControllerConfig) and spec.config.enable_controller_in_namesrv
        )
        return (*self.controllers, *inside)

    def added_later(self) -> tuple[str, ...]:
        """Names of the nameservers and brokers that do not run at the start."""
        specs: tuple[NameserverSpec | BrokerSpec, ...] = (*self.nameservers, *self.brokers)
        return tuple(spec.name for spec in specs if spec.added_later)

    def scaler_names(self) -> tuple[str, ...]:
        """Names of the scalers."""
        return tuple(dict.fromkeys(spec.scaler for spec in self.statefulsets if spec.scaler is not None))

    def leasing_groups(self) -> tuple[ConsumerGroupSpec, ...]:
        """The groups that take their queues from a lock service."""
        return tuple(group for group in self.consumers if group.config.exclusivity is Exclusivity.LEASE)

    def lock_services(self) -> tuple[str, ...]:
        """Names of the nodes of the lock service: several of Redlock, else one; empty if no group takes leases."""
        kinds = [group.config.lock_service for group in self.leasing_groups()]
        if kinds[:1] == [LockServiceKind.REDLOCK]:
            return tuple(f"{LEASES}-{number + 1}" for number in range(REDLOCK_NODES))
        return (LEASES,) if kinds else ()

    def statefulset_of(self, group: str) -> StatefulSetSpec | None:
        """The StatefulSet whose pods are the consumers of a group."""
        return next((spec for spec in self.statefulsets if spec.group == group), None)

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, each kind in the order of the scenario."""
        return tuple(name for _, name in self.named_nodes() if name not in self.guests)

    def named_nodes(self) -> Iterator[tuple[str, str]]:
        """(path of the name, name) of each node and guest; paths are positions in this scenario."""
        yield from ((f"nameserver[{i}].name", spec.name) for i, spec in enumerate(self.nameservers))
        yield from ((f"controller[{i}].name", spec.name) for i, spec in enumerate(self.controllers))
        yield from ((f"proxy[{i}].name", spec.name) for i, spec in enumerate(self.proxies))
        for i, broker in enumerate(self.brokers):
            yield f"broker[{i}].{'name' if broker.node is None else 'node'}", broker.name
        in_container = {spec.container: i for i, spec in reversed(list(enumerate(self.brokers)))}
        yield from ((f"broker[{in_container[name]}].container", name) for name in self.containers())
        for i, consumers in enumerate(self.consumers):
            yield from ((f"consumer[{i}].names[{j}]", name) for j, name in enumerate(consumers.names))
        yield from ((f"producer[{i}].name", spec.name) for i, spec in enumerate(self.producers))
        for key, names in (("api", self.api_names()), ("scaler", self.scaler_names())):
            first = {getattr(spec, key): i for i, spec in reversed(list(enumerate(self.statefulsets)))}
            yield from ((f"statefulset[{first[name]}].{key}", name) for name in names)
        if self.address_server is not None:
            yield "address_server.name", self.address_server.name
        yield from (("consumer.options.exclusivity", name) for name in self.lock_services())
        yield from ((f"scenario.guests[{i}]", guest) for i, guest in enumerate(self.guests))

    def by_role(self) -> Mapping[str, tuple[str, ...]]:
        """Mapping role -> names of its nodes; a nameserver with a controller is one of both."""
        return {
            NAMESERVER: tuple(spec.name for spec in self.nameservers),
            CONTROLLER: self.controller_names(),
            BROKER: tuple(spec.name for spec in self.brokers),
            CONTAINER: tuple(self.containers()),
            PROXY: tuple(spec.name for spec in self.proxies),
            CONSUMER: tuple(name for group in self.consumers for name in group.names),
            PRODUCER: tuple(spec.name for spec in self.producers),
            APISERVER: self.api_names(),
            SCALER: self.scaler_names(),
            LEASE_SERVICE: self.lock_services(),
            ADDRESS_SERVER: () if self.address_server is None else (self.address_server.name,),
        }

    def members_of(self, group: str) -> tuple[str, ...]:
        """Names of the consumers of a group."""
        return next((spec.names for spec in self.consumers if spec.group == group), ())

    def configs_of(self, node: str) -> tuple[tuple[str, Config], ...]:
        """(group, options) of each consumer of a process; of a server or a producer the group is empty."""
        servers: tuple[NameserverSpec | ControllerSpec | BrokerSpec | ProducerSpec | ProxySpec, ...]
        servers = (*self.nameservers, *self.controllers, *self.brokers, *self.producers, *self.proxies)
        found = tuple(("", options_of_spec(spec)) for spec in servers if spec.name == node)
        groups = [spec.group for spec in self.consumers if self._may_be_of(node, spec)]
        sharing = (
            consumer for consumer in self.consumers if consumer.group in groups or consumer.share_process_with in groups
        )
        return (*found, *((item.group, options_of_spec(item)) for item in sharing if not found))

    def _may_be_of(self, node: str, group: ConsumerGroupSpec) -> bool:
        """Whether a node is a consumer of a group, which scaling may add."""
        statefulset = self.statefulset_of(group.group)
        grown = bool(group.names) and node.rpartition("+")[0] == group.group
        return node in group.names or grown or (statefulset is not None and statefulset.is_pod(node))


def options_of_spec(
    spec: NameserverSpec | ControllerSpec | ProxySpec | BrokerSpec | ConsumerGroupSpec | ProducerSpec | StatefulSetSpec,
) -> Config:
    """The options that a node has: those of clients of RocketMQ 5 are others."""
    config5 = spec.config5 if isinstance(spec, ConsumerGroupSpec | ProducerSpec) else None
    return config5 or spec.config


def numbered(stem: str, count: int, start: int = 1) -> tuple[str, ...]:
    """Default names of nodes: `ns-1`, `ns-2`, ..."""
    return tuple(f"{stem}-{number}" for number in range(start, start + count))
