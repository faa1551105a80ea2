"""How each process of a scenario is made: its node, with the options that it has at its start."""

from collections.abc import Callable, Mapping

import attrs

from emulator.cluster.containers import identity_of
from emulator.cluster.node_options import NodeOptions
from emulator.cluster.pods import Pods
from emulator.machine.host import NodeFactory
from emulator.spec.model.addresses import nameserver_list
from emulator.spec.model.networks import AddressTranslation
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ConsumerMode, ProxySpec
from emulator.spec.model.scenario import (
    ADDRESS_SERVER,
    APISERVER,
    BROKER,
    CONSUMER,
    CONTAINER,
    CONTROLLER,
    LEASE_SERVICE,
    NAMESERVER,
    PRODUCER,
    PROXY,
    SCALER,
    AddressServerSpec,
    BrokerSpec,
    ConsumerGroupSpec,
    ControllerSpec,
    NameserverSpec,
    Scenario,
    StatefulSetSpec,
    TopicSpec,
)
from emulator.spec.rocketmq.known_options import defaults_not_emulated
from nodes.address_server.address_server import AddressServer
from nodes.broker.broker import Broker
from nodes.broker.broker_setup import NO_PEERS, BrokerSetup
from nodes.broker.shared import Shared
from nodes.broker.tables.clients.plain_access import PlainPermissionManager
from nodes.client.consumer.classic_pull import ClassicPullConsumer
from nodes.client.consumer.consumer_process import ConsumerProcess
from nodes.client.consumer.consumer_setup import ConsumerSetup, LitePullSetup, PullSetup
from nodes.client.consumer.lite_pull import LitePullConsumer
from nodes.client.consumer.pod import ConsumerPod, PodEnvironment
from nodes.client.consumer.push_consumer import PushConsumer
from nodes.client.producer.steady_producer import ProducerSetup, SteadyProducer
from nodes.client5.producer import Producer5, Producer5Setup
from nodes.client5.push_consumer import PushConsumer5
from nodes.client5.simple_consumer import SimpleConsumer5
from nodes.client5.subscriptions import Consumer5Setup
from nodes.config import (
    BrokerConfig,
    ClientConfig,
    Exclusivity,
    LitePullConsumerConfig,
    LockServiceKind,
    NameserverWithControllerConfig,
    PullConsumerConfig,
)
from nodes.config.client5 import Consumer5Config, Producer5Config, PushConsumer5Config, SimpleConsumer5Config
from nodes.config.container import ContainerConfig
from nodes.config.controller import CONTROLLER_PORT
from nodes.config.proxy import ProxyConfig
from nodes.config.statefulset import API_PORT, POD_PORT
from nodes.container.container import BrokerContainer
from nodes.container.tables.broker_file import BrokerFile
from nodes.container.tables.brokers import BrokerOfContainer
from nodes.controller.controller import Controller
from nodes.host import Host, Node
from nodes.lease_service.advisory_locks import AdvisoryLocks
from nodes.lease_service.item_store import ItemStore
from nodes.lease_service.lease_service import LOCK_PORT, LeaseService
from nodes.lease_service.session_service import SessionService
from nodes.nameserver.nameserver import Nameserver
from nodes.namesrv_startup import NameserverWithController
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageRequestMode, TopicConfig
from nodes.proxy.proxy import Proxy
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.statefulset.kubernetes import Kubernetes, StatefulSet
from nodes.statefulset.scaler import SCALER_PORT, Scaler

CONTROLLER_GROUP = "controllers"


class SlowBoot:
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
        self.node: Node | None = None
        """None while the process loads."""
        self._asked_to_stop = False

    async def main(self) -> None:
        """Load, then run the node."""
        await self._host.sleep_ms(self._boot_ms)
        if not self._asked_to_stop:
            self.node = self._make(self._host)
            await self.node.main()

    def request_shutdown(self) -> None:
        """Stop; a process that is still loading ends when it has loaded."""
        self._asked_to_stop = True
        if self.node is not None:
            self.node.request_shutdown()


@attrs.frozen
class HostPlan:
    """What is needed to make a host."""

    name: str
    role: str
    detail: str
    factory: NodeFactory


class HostPlans:
    """Plans the hosts of a scenario.

    Args:
        addresses: mapping node -> IP address, which grows.
        options: of each node at its next start.
        pods: mapping node with an API server -> its pods.
        translation: who reaches which address.
    """

    def __init__(
        self,
        scenario: Scenario,
        addresses: Mapping[str, str],
        options: NodeOptions,
        pods: Mapping[str, Pods],
        translation: AddressTranslation,
    ) -> None:
        self._scenario = scenario
        self._addresses = addresses
        self._options = options
        self._pods = pods
        self._translation = translation
        self._access = PlainPermissionManager(scenario.accounts, scenario.global_white_remote_addresses)

    def lock_service(self, name: str) -> HostPlan:
        """The lock service, or one of its nodes."""
        config = self._scenario.leasing_groups()[0].config

        def lock_service(host: Host) -> Node:
            match config.lock_service:
                case LockServiceKind.DYNAMODB:
                    return ItemStore(host)
                case LockServiceKind.ZOOKEEPER:
                    return SessionService(host)
                case LockServiceKind.POSTGRESQL:
                    return AdvisoryLocks(host, config.tcp_keepalives_idle)
                case LockServiceKind.LEASE | LockServiceKind.BLOB | LockServiceKind.REDLOCK:
                    return LeaseService(host, config.lock_service)

        return HostPlan(name, LEASE_SERVICE, "", lock_service)

    def address_server(self, spec: AddressServerSpec) -> HostPlan:
        """The address server."""
        listed = nameserver_list(self._scenario, spec.nameservers)
        return HostPlan(spec.name, ADDRESS_SERVER, "", lambda host: AddressServer(host, listed))

    def nameserver(self, spec: NameserverSpec) -> HostPlan:
        """A nameserver, with a controller in its process if its options say so."""

        def nameserver(host: Host) -> Node:
            config = self._options.of(spec.name, spec.config)
            if isinstance(config, NameserverWithControllerConfig) and config.enable_controller_in_namesrv:
                return NameserverWithController(host, config, CONTROLLER_GROUP, *self._id_and_peers(spec.name))
            return Nameserver(host, config)

        return HostPlan(spec.name, NAMESERVER, "", nameserver)

    def controller(self, spec: ControllerSpec) -> HostPlan:
        """A controller, which knows the addresses of all."""

        def controller(host: Host) -> Node:
            config = self._options.of(spec.name, spec.config)
            return Controller(host, config, CONTROLLER_GROUP, *self._id_and_peers(spec.name))

        return HostPlan(spec.name, CONTROLLER, "", controller)

    def _id_and_peers(self, name: str) -> tuple[str, dict[str, str]]:
        """(id of the controller in a node, id -> address of all)."""
        ids = [f"n{number}" for number, _ in enumerate(self._controllers())]
        peers = dict(zip(ids, self._controllers(), strict=True))
        return ids[self._scenario.controller_names().index(name)], peers

    def _dledger_peers(self, broker_name: str) -> dict[str, str]:
        """Member of a group with a DLedger log -> address of the broker."""
        group = [spec for spec in self._scenario.brokers if spec.broker_name == broker_name]
        return {f"n{spec.broker_id}": f"{self._addresses[spec.name]}:{spec.config.listen_port}" for spec in group}

    def _controllers(self) -> tuple[str, ...]:
        return tuple(f"{self._addresses[name]}:{CONTROLLER_PORT}" for name in self._scenario.controller_names())

    def broker(self, spec: BrokerSpec, nameservers: tuple[str, ...]) -> HostPlan:
        """A broker."""

        def broker(host: Host) -> Node:
            config = self._with_addresses(host.ip, self._options.of(spec.name, spec.config))
            if spec.broker_id and not config.is_elected:
                config = config.of_slave()
            return self._broker(host, identity_of(spec), _printing(config, spec), nameservers)

        return self._booting(spec.name, BROKER, broker)

    def container(self, spec: BrokerSpec, nameservers: tuple[str, ...]) -> HostPlan:
        """The container of a broker, with all of its brokers."""
        assert spec.container is not None
        name = spec.container
        inside = self._scenario.containers()[name]
        paths = tuple(broker.path for broker in inside if not broker.added_later)
        specs = {identity_of(broker): broker for broker in inside}

        def make(host: Host, file: BrokerFile, shared: Shared) -> Broker:
            config = _printing(file.config, specs.get(file.identity))
            return self._broker(host, file.identity, config, nameservers, shared)

        def container(host: Host) -> Node:
            return BrokerContainer(host, ContainerConfig(), nameservers=nameservers, paths=paths, make=make)

        return self._booting(name, CONTAINER, container)

    def _booting(self, name: str, role: str, make: Callable[[Host], Node]) -> HostPlan:
        boot_spread_ms = self._scenario.broker_boot_spread_ms
        if not boot_spread_ms:
            return HostPlan(name, role, "", make)
        return HostPlan(name, role, "", lambda host: SlowBoot(host, boot_spread_ms, make))

    def _broker(
        self,
        host: Host,
        identity: BrokerOfContainer,
        config: BrokerConfig,
        nameservers: tuple[str, ...],
        shared: Shared | None = None,
    ) -> Broker:
        consumers = self._scenario.consumers
        single_active = (
            consumer.group for consumer in consumers if consumer.config.exclusivity is Exclusivity.SINGLE_ACTIVE
        )
        setup = BrokerSetup(
            cluster_name=identity.cluster_name,
            broker_name=identity.broker_name,
            broker_id=identity.broker_id,
            nameservers=self._known_to(host.ip, nameservers),
            topics=tuple(
                TopicConfig(topic.name, topic.queues, topic.queues, attributes=attributes_of(topic))
                for topic in self._scenario.topics
                if identity.broker_name in topic.brokers and not topic.created_later
            ),
            orderly_groups=tuple(consumer.group for consumer in consumers if consumer.orderly),
            single_active_groups=tuple(single_active),
            request_modes=tuple(
                SetMessageRequestModeRequestBody(
                    topic, consumer.group, MessageRequestMode.POP, consumer.pop_share_queue_num
                )
                for consumer in consumers
                for topic in consumer.topics
                if consumer.mode is ConsumerMode.POP
            ),
            controllers=self._controllers(),
            dledger_peers=self._dledger_peers(identity.broker_name) if config.enable_d_leger_commit_log else NO_PEERS,
            access=self._access,
            accounts=self._scenario.accounts,
        )
        return Broker(host, config, setup, shared)

    def proxy(self, spec: ProxySpec, nameservers: tuple[str, ...]) -> HostPlan:
        """A proxy."""

        def proxy(host: Host) -> Node:
            config = self._options.of(spec.name, spec.config)
            return Proxy(host, config, self._known_to(host.ip, nameservers), self._credentials(config))

        return HostPlan(spec.name, PROXY, "", proxy)

    def _credentials(self, config: ProxyConfig) -> SessionCredentials | None:
        """With which a proxy signs its requests."""
        access_key = config.inner_client_authentication_credentials
        if not (config.enable_acl_rpc_hook_for_cluster_mode and access_key):
            return None
        secrets = {account.access_key: account.secret_key for account in self._scenario.accounts}
        return SessionCredentials(access_key, secrets[access_key])

    def _endpoints(self, client: str, named: tuple[str, ...]) -> tuple[str, ...]:
        """`ip:port` of proxies, as a client reaches them; of all if none is named."""
        specs = {spec.name: spec for spec in self._scenario.proxies}
        own = tuple(f"{self._addresses[name]}:{specs[name].config.grpc_server_port}" for name in named or specs)
        return self._known_to(self._addresses[client], own)

    def _consumer5(self, spec: ConsumerGroupSpec, config: Consumer5Config, name: str) -> HostPlan:
        """A consumer of RocketMQ 5."""
        endpoints = self._endpoints(name, spec.endpoints)
        setup = Consumer5Setup(endpoints, spec.group, spec.topics, spec.consume_ms, spec.fail_times, spec.expressions)

        def consumer(host: Host) -> Node:
            options = self._options.of(name, config, spec.group)
            if isinstance(options, PushConsumer5Config):
                return PushConsumer5(host, setup, options)
            assert isinstance(options, SimpleConsumer5Config)
            return SimpleConsumer5(host, setup, options)

        return HostPlan(name, CONSUMER, spec.group, consumer)

    def _producer5(self, spec: ProducerSpec, config: Producer5Config) -> HostPlan:
        """A producer of RocketMQ 5."""
        endpoints = self._endpoints(spec.name, spec.endpoints)

        def producer(host: Host) -> Node:
            setup = Producer5Setup(
                endpoints,
                self._options.of(spec.name, config),
                spec.topics,
                spec.rate_per_s,
                tags=spec.tags,
                keys=spec.keys,
                partitions=spec.partitions,
                is_fifo=spec.fifo,
                transactions=spec.transactions,
                messages=spec.messages,
                timer_ms=spec.timer_ms,
            )
            return Producer5(host, setup)

        return HostPlan(spec.name, PRODUCER, "", producer)

    def consumer(self, spec: ConsumerGroupSpec, name: str, nameservers: tuple[str, ...]) -> HostPlan:
        """A consumer, or a process with the consumers of several groups."""
        groups = [
            spec,
            *(consumer for consumer in self._scenario.consumers if consumer.share_process_with == spec.group),
        ]
        if len(groups) > 1:

            def process(host: Host) -> Node:
                return ConsumerProcess(host, tuple(self._setup(group, name, nameservers) for group in groups))

            return HostPlan(name, CONSUMER, spec.group, process)
        if spec.config5 is not None:
            return self._consumer5(spec, spec.config5, name)
        statefulset = self._scenario.statefulset_of(spec.group)
        if statefulset is not None:
            return self._pod(spec, statefulset, name, nameservers)
        if not spec.has_listener:
            return HostPlan(name, CONSUMER, spec.group, lambda host: self._pull_consumer(host, spec, name, nameservers))
        return HostPlan(
            name, CONSUMER, spec.group, lambda host: PushConsumer(host, self._setup(spec, name, nameservers))
        )

    def _pull_consumer(
        self, host: Host, spec: ConsumerGroupSpec, name: str, nameservers: tuple[str, ...]
    ) -> LitePullConsumer | ClassicPullConsumer:
        """A consumer without listener on a host, with the options that the host has now."""
        options = self._options.of(name, spec.config, spec.group)
        known = self._nameservers_of(host.ip, options, nameservers)
        if isinstance(options, PullConsumerConfig):
            setup = PullSetup(spec.group, spec.topics, options, known, spec.consume_ms, spec.expressions)
            return ClassicPullConsumer(host, setup)
        assert isinstance(options, LitePullConsumerConfig)
        lite = LitePullSetup(spec.group, spec.topics, options, known, spec.consume_ms, spec.expressions)
        return LitePullConsumer(host, lite)

    def _setup(self, spec: ConsumerGroupSpec, name: str, nameservers: tuple[str, ...]) -> ConsumerSetup:
        """The consumer of a group on a host, with the options that the host has now."""
        options = self._options.of(name, spec.config, spec.group)
        return ConsumerSetup(
            spec.group,
            spec.topics,
            options,
            self._nameservers_of(self._addresses[name], options, nameservers),
            spec.consume_ms,
            spec.fail_times,
            spec.expressions,
            self._lock_services(),
        )

    def _known_to(self, ip: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """Addresses of nodes as a machine with an IP address reaches them, without those that it does not reach."""
        known = tuple(self._translation.known_to(ip, address) for address in addresses)
        return tuple(item for item in known if not self._translation.hides(ip, item)) or known

    def _nameservers_of(self, ip: str, options: ClientConfig, nameservers: tuple[str, ...]) -> tuple[str, ...]:
        """Addresses of the nameservers of a client at its start: those that its options name, none, or all.

        A proxy is named at its remoting port.
        """
        if options.namesrv_addr:
            return self._addresses_in(ip, options.namesrv_addr)
        return () if options.fetch_namesrv_addr_by_address_server else self._known_to(ip, nameservers)

    def _with_addresses(self, ip: str, config: BrokerConfig) -> BrokerConfig:
        """The options of a broker with addresses in place of the names of nameservers."""
        if not config.namesrv_addr:
            return config
        return attrs.evolve(config, namesrv_addr=";".join(self._addresses_in(ip, config.namesrv_addr)))

    def _addresses_in(self, ip: str, namesrv_addr: str) -> tuple[str, ...]:
        known = {
            **{
                spec.name: f"{self._addresses[spec.name]}:{spec.config.listen_port}"
                for spec in self._scenario.nameservers
            },
            **{
                spec.name: f"{self._addresses[spec.name]}:{spec.config.remoting_listen_port}"
                for spec in self._scenario.proxies
            },
        }
        known = {name: self._translation.known_to(ip, address) for name, address in known.items()}
        return tuple(known.get(name, name) for name in map(str.strip, namesrv_addr.split(";")) if name)

    def _lock_services(self) -> tuple[str, ...]:
        return tuple(f"{self._addresses[name]}:{LOCK_PORT}" for name in self._scenario.lock_services())

    def _pod(
        self, spec: ConsumerGroupSpec, statefulset: StatefulSetSpec, name: str, nameservers: tuple[str, ...]
    ) -> HostPlan:
        if statefulset.scaler is None:
            replicas_address = f"{self._addresses[statefulset.api]}:{API_PORT}"
        else:
            replicas_address = f"{self._addresses[statefulset.scaler]}:{SCALER_PORT}"
        is_notified = statefulset.scaler is not None
        environment = PodEnvironment(statefulset.name, replicas_address, is_notified, POD_PORT)
        return HostPlan(
            name,
            CONSUMER,
            spec.group,
            lambda host: ConsumerPod(host, self._setup(spec, name, nameservers), environment),
        )

    def api(self, name: str) -> HostPlan:
        """An API server of Kubernetes."""
        manifests = tuple(
            StatefulSet(spec.name, spec.replicas, spec.config)
            for spec in self._scenario.statefulsets
            if spec.api == name
        )
        return HostPlan(name, APISERVER, "", lambda host: Kubernetes(host, manifests, self._pods[name]))

    def scaler(self, name: str) -> HostPlan:
        """A scaler."""
        specs = [spec for spec in self._scenario.statefulsets if spec.scaler == name]
        period_s = {spec.name: spec.config.scaler_period_seconds for spec in specs}
        api = f"{self._addresses[specs[0].api]}:{API_PORT}"
        return HostPlan(name, SCALER, "", lambda host: Scaler(host, api, period_s))

    def producer(self, spec: ProducerSpec, nameservers: tuple[str, ...]) -> HostPlan:
        """A producer."""
        if spec.config5 is not None:
            return self._producer5(spec, spec.config5)

        def producer(host: Host) -> Node:
            options = self._options.of(spec.name, spec.config)
            setup = ProducerSetup(
                spec.group,
                options,
                self._nameservers_of(host.ip, options, nameservers),
                spec.topics,
                spec.rate_per_s,
                tags=spec.tags,
                keys=spec.keys,
                select=spec.select,
                partitions=spec.partitions,
                transactions=spec.transactions,
                messages=spec.messages,
                delay_level=spec.delay_level,
                timer_ms=spec.timer_ms,
            )
            return SteadyProducer(host, setup)

        return HostPlan(spec.name, PRODUCER, "", producer)


def attributes_of(topic: TopicSpec) -> Mapping[str, str]:
    """The attributes of a topic, as changes to none."""
    if topic.message_type is TopicMessageType.NORMAL:
        return {}
    return {"+message.type": topic.message_type.value}


def _printing(config: BrokerConfig, spec: BrokerSpec | None) -> BrokerConfig:
    """The options of a broker, with all that it prints as its configuration; None: an administrator has added it."""
    given = {} if spec is None else spec.not_emulated
    return attrs.evolve(config, other_fields={**defaults_not_emulated(), **given})
