"""A broker process: its parts, and the order in which they start and stop."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.admin.broker import AdminBroker
from nodes.broker.admin.clients import AdminClients
from nodes.broker.admin.groups import AdminGroups
from nodes.broker.admin.offsets import AdminOffsets
from nodes.broker.admin.progress import AdminProgress
from nodes.broker.admin.topics import AdminTopics
from nodes.broker.broker_setup import BrokerSetup
from nodes.broker.clients.access import AclHook
from nodes.broker.clients.assigner import Assigner
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.clients.lock_batch import LockBatchMq
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.clients.query_assignment import QueryAssignment
from nodes.broker.files import (
    GROUP_FILE,
    TOPIC_FILE,
    load_delay_offsets,
    load_timer,
    load_timer_check_point,
    persist_delay_offsets,
    persist_groups,
    persist_timer_check_point,
    persist_topics,
)
from nodes.broker.group.controlled_replica import ControlledReplica
from nodes.broker.group.membership import GroupMembership, SpecialServices, member_group
from nodes.broker.group.pre_online_service import BrokerPreOnlineService
from nodes.broker.group.slave_synchronize import MetadataHandlers, SlaveSynchronize
from nodes.broker.ha.auto_switch_service import AutoSwitchHaService
from nodes.broker.ha.service import HaService
from nodes.broker.messages.clean_commit_log import CleanCommitLog
from nodes.broker.messages.escape_bridge import BrokerOuterApi, escape_bridge
from nodes.broker.messages.foreign_messages import ForeignMessages
from nodes.broker.messages.pull import PullMessage
from nodes.broker.messages.put_message import MessageArrivals, PutMessage
from nodes.broker.messages.query_message import QueryMessage
from nodes.broker.messages.reply_message import ReplyMessage
from nodes.broker.messages.schedule_message import ScheduleMessageService
from nodes.broker.messages.send import SendMessage
from nodes.broker.messages.send_back import ConsumerSendMsgBack
from nodes.broker.pop.pops import Pops
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.shared import Log, Master, Shared
from nodes.broker.tables.group.member_group import VIP_PORT_DISTANCE
from nodes.broker.tables.group.replica_role import ReplicaRole
from nodes.broker.tables.metadata.topics import SCHEDULE_TOPIC
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC
from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.broker.tables.timer.timer_messages import TIMER_TOPIC
from nodes.broker.timer.recall_message import RecallMessage
from nodes.broker.timer.timer_message_store import TimerMessageStore
from nodes.broker.transactions.transactions import Transactions
from nodes.config import BrokerConfig
from nodes.host import Host
from nodes.live_config import with_stored_changes
from nodes.protocol.model import MASTER_ID
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import Handlers, RpcServer


class Broker:
    """One broker.

    Args:
        shared: what it shares with the other brokers of a container; None: it is in none.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController`.
    """

    def __init__(self, host: Host, config: BrokerConfig, setup: BrokerSetup, shared: Shared | None = None) -> None:
        self._host = host
        self._shared = shared
        self._stopping = trio.Event()
        config = with_stored_changes(host.disk, config)
        self.tables = tables = setup.tables(host, config)
        self.context, clients = tables.core, tables.clients
        broker = self.context
        levels = parse_delay_level(config.message_delay_level)
        arrivals = MessageArrivals()

        self._client = RpcClient(host, config) if shared is None else shared.client
        followed = Nameservers(host, self._client, setup.nameservers) if shared is None else shared.nameservers
        self._routes = TopicRouteInfoManager(broker, followed)
        self._group = member_group(broker)
        self._registration = NameserverRegistration(broker, self._client, self._group)
        self._ha = (AutoSwitchHaService if config.enable_controller_mode else HaService)(broker, arrivals.notify)
        self._slave = SlaveSynchronize(broker, clients, tables.timer, self._client, self._group)

        self._clients = ClientManage(broker, clients, self._registration)
        self._server = RpcServer(
            host,
            config,
            on_channel_closed=self._clients.on_channel_closed,
            refusal=AclHook(host.log, setup.access).refusal if config.acl_enable else None,
            broker_name=setup.broker_name,
        )
        to_clients = BrokerToClient(broker, clients.producers, self._server.calls, self._clients.channel)
        self._offsets = OffsetManage(broker, clients.offsets, clients.single_active)
        self._assigner = Assigner(broker, clients, self._routes, to_clients)
        self._assignments = QueryAssignment(broker, clients, self._routes, self._assigner)
        tracked_min = None if shared is None else lambda: self._group.min_broker_id
        self._pulls = PullMessage(broker, clients, self._offsets, tracked_min)

        messages = PutMessage(broker, levels, tables.timer.wheel, arrivals, self._ha.on_stored)
        send_out = BrokerOuterApi(self._client, followed).send_message_to_specific_broker
        self._cleaning = CleanCommitLog(broker)
        log = Log(messages.put, messages.put_due)
        peek_master = None if shared is None else shared.peek_master
        escape = escape_bridge(broker, log, self._routes, send_out, peek_master)
        self._send_back = ConsumerSendMsgBack(broker, self._registration, messages, peek_master)
        self.master = Master(log, self._send_back.send_back_from)
        """This broker, if it is a master, as slaves in its container use it."""
        foreign = ForeignMessages(broker, self._routes, self._client, shared)
        self._pops = Pops(
            broker, tables.pop, clients.consumers, self._offsets, escape, messages.put, foreign, tables.timer.wheel
        )
        schedule = ScheduleMessageService(broker, tables.timer.delay_offsets, levels, escape.async_put_message)
        transactions = Transactions(
            broker, clients.offsets, self._registration, messages, to_clients, escape.put_message
        )
        wheel = tables.timer.wheel
        self._timer = timer = None if wheel is None else TimerMessageStore(broker, wheel, escape.put_message)
        services = (schedule, timer, transactions.check_service)
        special = SpecialServices(*(service for service in services if service is not None), revive=self._pops.revive)
        self._membership = GroupMembership(
            broker,
            self._group,
            self._client,
            self._registration,
            self._ha,
            followed,
            special,
            self._pulls.hold.on_master_online,
        )

        self._controlled = self._control(setup.controllers)

        self._connect(arrivals, schedule, transactions)
        self._server.serve(*self._handlers(messages, transactions, to_clients, special))

    def _connect(self, arrivals: MessageArrivals, schedule: ScheduleMessageService, transactions: Transactions) -> None:
        """Set the callbacks to parts that are made later than their callers."""
        self._clients.on_left = self._pulls.single_active.on_left
        self._registration.on_registered = self._membership.on_registered
        arrivals.listen(
            self._pulls.hold.on_message_arrived,
            self._pops.on_message_arrived,
            self._cleaning.on_message_arrived,
        )
        arrivals.listen_to(SCHEDULE_TOPIC, schedule.on_message_arrived)
        arrivals.listen_to(HALF_TOPIC, transactions.check_service.on_message_arrived)
        if self._timer is not None:
            arrivals.listen_to(TIMER_TOPIC, self._timer.on_message_arrived)
            self._slave.on_check_point = self._timer.on_check_point

    @property
    def replica_role(self) -> ReplicaRole | None:
        """Its role as controllers decide it; None: not in controller mode."""
        return None if self._controlled is None else self._controlled.role

    def _control(self, controllers: tuple[str, ...]) -> ControlledReplica | None:
        """What a broker in controller mode is besides; None: it is not."""
        if not isinstance(self._ha, AutoSwitchHaService):
            return None
        controlled = ControlledReplica(
            self.context, self._client, controllers, self._ha, self._membership, self._registration, self._slave
        )
        self._server.serve(controlled.handlers())
        return controlled

    async def main(self) -> None:
        """Load the files, serve, register; then wait for the stop and shut down."""
        config = self.context.config
        self._load()
        self._cleaning.start()
        self._ha.start()
        if self._controlled is not None:
            await self._controlled.start()
        for port in self._ports():
            self._host.listen(port, self._server)
        if self._timer is not None:
            self._timer.start()
        self._pops.start()
        self._pulls.hold.start()
        self._clients.start()
        self._offsets.start()
        self._routes.start()
        if config.enable_slave_acting_master and not config.skip_pre_online:
            BrokerPreOnlineService(self.context, self._membership, self._ha, self._slave).start()
        if not self._group.isolated and self._controlled is None:
            await self._membership.start_without_isolation()
        if self.context.broker_id != MASTER_ID and self._controlled is None:
            self._slave.start(self._registration.thread)
        self._registration.start_periodic()
        self._membership.start()
        if config.skip_pre_online:
            await self._membership.start_service_without_condition()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    def _ports(self) -> tuple[int, ...]:
        """The listen port, and the VIP port, over which slaves fetch metadata."""
        port = self.context.config.listen_port
        return (port, port - VIP_PORT_DISTANCE)

    def _handlers(
        self, messages: PutMessage, transactions: Transactions, to_clients: BrokerToClient, special: SpecialServices
    ) -> tuple[Handlers, ...]:
        broker, clients, pop, timer = self.context, self.tables.clients, self.tables.pop, self.tables.timer
        sends = SendMessage(broker, clients.locks, self._registration, self._ha, messages)
        return (
            self._clients.handlers(),
            self._offsets.handlers(),
            self._assignments.handlers(),
            self._assigner.handlers(),
            self._pulls.handlers(),
            self._pops.handlers(),
            self._cleaning.handlers(),
            self._membership.handlers(),
            transactions.handlers(),
            LockBatchMq(broker, clients.locks, self._client, self._group).handlers(),
            sends.handlers(),
            ReplyMessage(broker, clients.producers, sends, messages, to_clients).handlers(),
            self._send_back.handlers(),
            RecallMessage(broker, messages).handlers(),
            QueryMessage(broker).handlers(),
            MetadataHandlers(broker, clients, timer).handlers(),
            AdminTopics(broker, clients.offsets, pop.in_flight, self._registration).handlers(),
            AdminGroups(broker, clients.offsets, pop.in_flight).handlers(),
            AdminProgress(broker, clients).handlers(),
            AdminOffsets(broker, clients, pop, to_clients).handlers(),
            AdminClients(broker, clients, self._clients, to_clients).handlers(),
            AdminBroker(broker, timer.delay_offsets, self._registration, self._ha, special).handlers(),
        )

    async def _shutdown(self) -> None:
        """Unregister first: the port still answers while the nameservers remove this broker."""
        if self._timer is not None:
            self._timer.shutdown()
        await self._registration.unregister_all()
        for port in self._ports():
            self._host.close_listener(port)
        self._server.shutdown()
        await self._pops.stop()
        self._ha.stop()
        if self._shared is None:
            self._client.close_all()
        self._offsets.persist()
        self._persist_metadata()

    def _load(self) -> None:
        context, disk = self.context, self._host.disk
        topics, groups = disk.read(TOPIC_FILE), disk.read(GROUP_FILE)
        if topics is not None:
            context.topics.decode(topics)
        if groups is not None:
            context.groups.decode(groups)
        self._assignments.load()
        self._assigner.load()
        self._offsets.load()
        self._pops.load()
        load_delay_offsets(context, self.tables.timer.delay_offsets)
        context.store.load()
        wheel = self.tables.timer.wheel
        if wheel is not None:
            load_timer_check_point(context, wheel)
            load_timer(context, wheel)
        self._persist_metadata()
        context.versions.believe()

    def _persist_metadata(self) -> None:
        persist_topics(self.context)
        persist_groups(self.context)
        persist_delay_offsets(self.context, self.tables.timer.delay_offsets.wrapper())
        if self.tables.timer.wheel is not None:
            persist_timer_check_point(self.context, self.tables.timer.wheel)
