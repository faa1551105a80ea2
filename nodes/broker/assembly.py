"""The parts of one broker: each family is made of those before it, and all are connected at the end."""

from functools import partial

from nodes.broker.admin.auth import AdminAuth
from nodes.broker.admin.broker import AdminBroker
from nodes.broker.admin.clients import AdminClients
from nodes.broker.admin.groups import AdminGroups
from nodes.broker.admin.offsets import AdminOffsets
from nodes.broker.admin.progress import AdminProgress
from nodes.broker.admin.runtime_info import RuntimeInfo
from nodes.broker.admin.store import AdminStore
from nodes.broker.admin.topics import AdminTopics
from nodes.broker.broker_setup import BrokerSetup, BrokerTables
from nodes.broker.clients.access import AclHook, AuthPipeline, Refusal
from nodes.broker.clients.assigner import Assigner
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.clients.denied_beliefs import DeniedBeliefs
from nodes.broker.clients.lock_batch import LockBatchMq
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.clients.query_assignment import QueryAssignment
from nodes.broker.context import BrokerContext
from nodes.broker.files import TopicAndGroupFiles
from nodes.broker.group.controlled_replica import ControlledReplica
from nodes.broker.group.dledger_replica import DLedgerReplica
from nodes.broker.group.membership import GroupMembership, SpecialServices, member_group
from nodes.broker.group.pre_online_service import BrokerPreOnlineService
from nodes.broker.group.slave_synchronize import MetadataHandlers, SlaveSynchronize
from nodes.broker.ha.auto_switch_service import AutoSwitchHaService
from nodes.broker.ha.dledger_service import DLedgerHaService
from nodes.broker.ha.service import HaService
from nodes.broker.messages.clean_commit_log import CleanCommitLog
from nodes.broker.messages.escape_bridge import BrokerOuterApi, escape_bridge
from nodes.broker.messages.foreign_messages import ForeignMessages
from nodes.broker.messages.other_masters import OtherMasters
from nodes.broker.messages.pull import PullMessage
from nodes.broker.messages.put_message import MessageArrivals, PutMessage
from nodes.broker.messages.query_message import QueryMessage
from nodes.broker.messages.reply_message import ReplyMessage
from nodes.broker.messages.schedule_message import ScheduleMessageService
from nodes.broker.messages.send import SendMessage
from nodes.broker.messages.send_back import ConsumerSendMsgBack
from nodes.broker.messages.static_topics import StaticTopics
from nodes.broker.part import Part
from nodes.broker.pop.pops import Pops
from nodes.broker.registration.nameserver_list import NameserverList
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.requests.request_executors import RequestExecutors
from nodes.broker.shared import Log, Shared
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC
from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.broker.tables.timer.timer_messages import TIMER_TOPIC
from nodes.broker.timer.recall_message import RecallMessage
from nodes.broker.timer.timer_message_store import TimerMessageStore
from nodes.broker.transactions.transactions import Transactions
from nodes.protocol.acl_signature import signed
from nodes.protocol.names import SCHEDULE_TOPIC, VIP_PORT_DISTANCE
from nodes.rpc.client import RpcClient, Sign
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import RpcServer, Wake
from nodes.values import frozen


class BrokerPorts(Part):
    """The listen port, and the VIP port, over which slaves fetch metadata."""

    def __init__(self, broker: BrokerContext, server: RpcServer) -> None:
        self._broker = broker
        self._server = server

    async def start(self) -> None:
        """Listen."""
        for port in self._ports():
            self._broker.host.listen(port, self._server)

    async def stop(self) -> None:
        """Close the ports and all connections."""
        for port in self._ports():
            self._broker.host.close_listener(port)
        self._server.shutdown()

    def _ports(self) -> tuple[int, ...]:
        port = self._broker.config.listen_port
        return (port, port - VIP_PORT_DISTANCE)


@frozen(eq=False)
class GroupParts:
    """How a broker reaches nameservers and other brokers."""

    client: RpcClient
    nameservers: Nameservers
    nameserver_list: NameserverList
    routes: TopicRouteInfoManager
    members: MemberGroup
    registration: NameserverRegistration
    ha: HaService
    slave: SlaveSynchronize


def group_parts(
    tables: BrokerTables, setup: BrokerSetup, arrivals: MessageArrivals, shared: Shared | None
) -> GroupParts:
    """Make them; brokers of one container share the client and the nameserver that they follow."""
    broker = tables.core
    client = RpcClient(broker.host, broker.config, sign=_sign(tables, setup)) if shared is None else shared.client
    nameservers = Nameservers(broker.host, client, broker.nameservers) if shared is None else shared.nameservers
    routes = TopicRouteInfoManager(broker, nameservers)
    members = member_group(broker)
    registration = NameserverRegistration(broker, client, members)
    nameserver_list = NameserverList(broker, nameservers if shared is None else None, registration.thread)
    ha = ha_service(broker, arrivals, len(setup.dledger_peers))
    slave = SlaveSynchronize(broker, tables.clients, tables.timer, client, members, registration.thread)
    return GroupParts(client, nameservers, nameserver_list, routes, members, registration, ha, slave)


def ha_service(broker: BrokerContext, arrivals: MessageArrivals, dledger_members: int) -> HaService:
    """What replicates the log, according to what decides on the role of the broker."""
    if broker.config.enable_d_leger_commit_log:
        return DLedgerHaService(broker, arrivals.notify, dledger_members)
    if broker.config.enable_controller_mode:
        return AutoSwitchHaService(broker, arrivals.notify)
    return HaService(broker, arrivals.notify)


def _sign(tables: BrokerTables, setup: BrokerSetup) -> Sign | None:
    """What signs requests to other nodes; None: they are not signed."""
    access_key = tables.auth.config.inner_client_authentication_credentials
    if not access_key:
        return None
    return partial(signed, access_key=access_key, secret_key=setup.account(access_key).secret_key.reveal())


@frozen(eq=False)
class ClientParts:
    """What consumers and producers ask of a broker, except for messages that they send or pop."""

    manage: ClientManage
    executors: RequestExecutors | None
    """None: no request takes time."""
    server: RpcServer
    to_clients: BrokerToClient
    offsets: OffsetManage
    assigner: Assigner
    assignments: QueryAssignment
    pulls: PullMessage
    denied: DeniedBeliefs

    @property
    def wake(self) -> Wake | None:
        """Gives a held request to a thread; None: it is answered when it is woken."""
        return None if self.executors is None else self.executors.wake


def client_parts(tables: BrokerTables, setup: BrokerSetup, group: GroupParts, shared: Shared | None) -> ClientParts:
    """Make them, and the server that all requests go through."""
    broker, clients = tables.core, tables.clients
    manage = ClientManage(broker, clients, group.registration)
    executors = RequestExecutors(broker) if broker.config.processing_times else None
    denied = DeniedBeliefs(broker.host)
    server = RpcServer(
        broker.host,
        broker.config,
        on_channel_closed=manage.on_channel_closed,
        refusal=_refusal(tables, setup, denied),
        broker_name=setup.broker_name,
        executors=executors,
    )
    to_clients = BrokerToClient(broker, clients.producers, server.calls, manage.channel)
    offsets = OffsetManage(broker, clients.offsets, clients.single_active)
    assigner = Assigner(broker, clients, group.routes, to_clients)
    assignments = QueryAssignment(broker, clients, group.routes, assigner)
    tracked_min = None if shared is None else lambda: group.members.min_broker_id
    pulls = PullMessage(broker, clients, offsets, tracked_min, None if executors is None else executors.wake)
    return ClientParts(manage, executors, server, to_clients, offsets, assigner, assignments, pulls, denied)


def _refusal(tables: BrokerTables, setup: BrokerSetup, denied: DeniedBeliefs) -> Refusal | None:
    """What refuses requests; None: nothing does."""
    host, config = tables.core.host, tables.core.config
    if config.acl_enable and config.knows_plain_acl:
        return AclHook(host.log, setup.access, denied).refusal
    auth = tables.auth.config
    if auth.has_auth:
        return AuthPipeline(host, tables.auth, denied).refusal
    return None


@frozen(eq=False)
class MessageParts:
    """What stores messages, and what delivers those that wait."""

    put: PutMessage
    log: Log
    cleaning: CleanCommitLog
    send_back: ConsumerSendMsgBack
    pops: Pops
    schedule: ScheduleMessageService
    transactions: Transactions
    timer: TimerMessageStore | None
    """None: the timer wheel is disabled."""

    def special_services(self) -> SpecialServices:
        """The services that only one member of the group runs."""
        services = (self.schedule, self.timer, self.transactions.check_service)
        return SpecialServices(*(service for service in services if service is not None), revive=self.pops.revive)


def message_parts(
    tables: BrokerTables, group: GroupParts, clients: ClientParts, arrivals: MessageArrivals, shared: Shared | None
) -> MessageParts:
    """Make them; what an acting master may not store itself escapes to other brokers."""
    broker, wheel, registration = tables.core, tables.timer.wheel, group.registration
    levels = parse_delay_level(broker.config.message_delay_level)
    executors = clients.executors
    put = PutMessage(broker, levels, wheel, arrivals, group.ha.on_stored, executors)
    cleaning = CleanCommitLog(broker, group.ha.on_files_deleted)
    log = Log(put.put_in_turn, put.put_due_in_turn)
    send_out = BrokerOuterApi(group.client, group.nameservers).send_message_to_specific_broker
    peek_master = None if shared is None else shared.peek_master
    escape = escape_bridge(broker, log, group.routes, send_out, peek_master)
    foreign = ForeignMessages(broker, group.routes, group.client, shared)
    consumers, offsets = tables.clients.consumers, tables.clients.offsets
    denied, wake = clients.denied, clients.wake
    pops = Pops(broker, tables.pop, consumers, clients.offsets, escape, put.put, foreign, wheel, denied, wake)
    return MessageParts(
        put,
        log,
        cleaning,
        ConsumerSendMsgBack(broker, registration, put, peek_master),
        pops,
        ScheduleMessageService(broker, tables.timer.delay_offsets, levels, escape.async_put_message),
        Transactions(broker, offsets, registration, put, clients.to_clients, escape.put_message),
        None if wheel is None else TimerMessageStore(broker, wheel, escape.put_message),
    )


class BrokerParts:
    """All parts of a broker.

    Args:
        tables: of this process.
        setup: of the broker.
        shared: what it shares with the other brokers of a container; None: it is in none.
    """

    def __init__(self, tables: BrokerTables, setup: BrokerSetup, shared: Shared | None) -> None:
        broker, arrivals = tables.core, MessageArrivals()
        self._tables, self._setup = tables, setup
        self.group = group = group_parts(tables, setup, arrivals, shared)
        self.clients = clients = client_parts(tables, setup, group, shared)
        self.messages = messages = message_parts(tables, group, clients, arrivals, shared)
        self._special = messages.special_services()
        self._membership = GroupMembership(
            broker,
            group.members,
            group.client,
            group.registration,
            group.ha,
            group.nameservers,
            self._special,
            clients.pulls.hold.on_master_online,
        )
        self.elected = self._elected_replica(setup)
        """None: its role is fixed."""
        self._ports = BrokerPorts(broker, clients.server)
        others = OtherMasters(broker, group.client, group.nameservers)
        self.static_topics = StaticTopics(broker, tables.clients.offsets, group.registration, others, group.nameservers)
        self.in_order = self._in_order()
        """All parts, in the order in which they load their files and start; those that only answer come last."""
        self._connect(arrivals)

    def _in_order(self) -> tuple[Part, ...]:
        group, clients, messages = self.group, self.clients, self.messages
        pre_online = BrokerPreOnlineService(self._tables.core, self._membership, group.ha, group.slave)
        parts = (
            TopicAndGroupFiles(self._tables.core),
            self.static_topics,
            messages.cleaning,
            group.ha,
            self.elected,
            self._ports,
            messages.schedule,
            messages.timer,
            messages.pops,
            clients.pulls,
            clients.manage,
            clients.offsets,
            group.routes,
            pre_online,
            group.slave,
            group.registration,
            self._membership,
            *self._answering(),
        )
        return tuple(part for part in parts if part is not None)

    @property
    def in_order_of_stop(self) -> tuple[Part, ...]:
        """All parts, in the order in which they stop.

        It is neither the order of the start nor its reverse: the port still answers while nameservers remove the
        broker, and it is closed before the pops that are held are answered.
        """
        group, messages = self.group, self.messages
        first = (messages.timer, group.registration, self._ports, messages.pops, group.ha)
        rest = (part for part in self.in_order if part not in first)
        return (*(part for part in first if part is not None), *rest)

    def _answering(self) -> tuple[Part, ...]:
        """Parts that answer requests; the first two have a file, too."""
        broker, group, clients, messages = self._tables.core, self.group, self.clients, self.messages
        tables, pop, timer = self._tables.clients, self._tables.pop, self._tables.timer
        runtime = RuntimeInfo(broker, timer, clients.executors, lambda: self._special.is_running)
        sends = SendMessage(broker, tables.locks, group.registration, group.ha, messages.put)
        return (
            clients.assignments,
            clients.assigner,
            messages.transactions,
            LockBatchMq(broker, tables.locks, group.client, group.members),
            sends,
            ReplyMessage(broker, tables.producers, sends, messages.put, clients.to_clients),
            messages.send_back,
            RecallMessage(broker, messages.put),
            QueryMessage(broker),
            MetadataHandlers(broker, tables, timer),
            AdminTopics(broker, tables.offsets, pop.in_flight, group.registration, self.static_topics),
            AdminGroups(broker, tables.offsets, pop.in_flight),
            AdminProgress(broker, tables, self.static_topics),
            AdminOffsets(broker, tables, pop, clients.to_clients),
            AdminClients(broker, tables, clients.manage, clients.to_clients),
            AdminStore(broker),
            group.nameserver_list,
            AdminAuth(broker, self._tables.auth, self._setup.accounts),
            AdminBroker(broker, runtime, group.registration, group.ha, group.nameserver_list, group.members),
        )

    def _elected_replica(self, setup: BrokerSetup) -> ControlledReplica | DLedgerReplica | None:
        group, broker, controllers = self.group, self._tables.core, setup.controllers
        if isinstance(group.ha, DLedgerHaService):
            return DLedgerReplica(broker, group.client, setup.dledger_peers, group.ha, self._membership, group.slave)
        if not isinstance(group.ha, AutoSwitchHaService):
            return None
        return ControlledReplica(
            broker, group.client, controllers, group.ha, self._membership, group.registration, group.slave
        )

    def _connect(self, arrivals: MessageArrivals) -> None:
        """Set the callbacks to parts that are made later than their callers."""
        group, clients, messages = self.group, self.clients, self.messages
        clients.manage.on_left = clients.pulls.single_active.on_left
        group.registration.on_registered = self._membership.on_registered
        arrivals.listen(
            clients.pulls.hold.on_message_arrived,
            messages.pops.on_message_arrived,
            messages.cleaning.on_message_arrived,
        )
        arrivals.listen_to(SCHEDULE_TOPIC, messages.schedule.on_message_arrived)
        arrivals.listen_to(HALF_TOPIC, messages.transactions.check_service.on_message_arrived)
        if messages.timer is not None:
            arrivals.listen_to(TIMER_TOPIC, messages.timer.on_message_arrived)
            group.slave.on_check_point = messages.timer.on_check_point
