"""A broker process: its parts, and the order in which they start and stop."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.admin.broker import AdminBroker
from nodes.broker.admin.clients import AdminClients
from nodes.broker.admin.groups import AdminGroups
from nodes.broker.admin.offsets import AdminOffsets
from nodes.broker.admin.progress import AdminProgress
from nodes.broker.admin.topics import AdminTopics
from nodes.broker.clients.access import AclHook
from nodes.broker.clients.assigner import Assigner
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.clients.lock_batch import LockBatchMq
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.clients.query_assignment import QueryAssignment
from nodes.broker.context import BrokerContext
from nodes.broker.files import (
    COMMIT_LOG_FILE,
    CONSUME_QUEUE_FILE,
    GROUP_FILE,
    TOPIC_FILE,
    load_delay_progress,
    load_timer,
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
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.clients.plain_access import NO_ACCOUNTS, PlainPermissionManager
from nodes.broker.tables.group.member_group import VIP_PORT_DISTANCE
from nodes.broker.tables.group.replica_role import ReplicaRole
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import SCHEDULE_TOPIC, TopicConfigManager
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC
from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.broker.tables.timer.timer_messages import TIMER_TOPIC
from nodes.broker.timer.recall_message import RecallMessage
from nodes.broker.timer.timer_message_store import TimerMessageStore
from nodes.broker.transactions.transactions import Transactions
from nodes.config import BrokerConfig
from nodes.host import Host
from nodes.live_config import with_stored_changes
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MASTER_ID, TopicConfig
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import Handlers, RpcServer


class Broker:
    """One broker.

    Args:
        topics: served from the first start on; later starts read them from the broker's files.
        single_active_groups: groups of whose consumers only one gets the messages of a queue; RocketMQ has none.
        request_modes: whether groups pull or pop, as an operator has reported this broker before its first start.
        shared: what it shares with the other brokers of a container; None: it is in none.
        controllers: addresses, for a broker in controller mode.
        access: who may do what, with `aclEnable`.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController`.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        *,
        cluster_name: str,
        broker_name: str,
        broker_id: int,
        nameservers: tuple[str, ...],
        topics: tuple[TopicConfig, ...] = (),
        single_active_groups: tuple[str, ...] = (),
        request_modes: tuple[SetMessageRequestModeRequestBody, ...] = (),
        shared: Shared | None = None,
        controllers: tuple[str, ...] = (),
        access: PlainPermissionManager = NO_ACCOUNTS,
    ) -> None:
        self._host = host
        self._shared = shared
        self._stopping = trio.Event()
        config = with_stored_changes(host.disk, config)
        self.context = broker = _new_context(
            host, config, cluster_name, broker_name, broker_id, nameservers, topics, single_active_groups
        )
        for request_mode in request_modes:
            broker.request_modes.set_mode(request_mode)
        levels = parse_delay_level(config.message_delay_level)
        arrivals = MessageArrivals()

        self._client = RpcClient(host, config) if shared is None else shared.client
        followed = Nameservers(host, self._client, nameservers) if shared is None else shared.nameservers
        self._routes = TopicRouteInfoManager(broker, followed)
        self._group = member_group(broker)
        self._registration = NameserverRegistration(broker, self._client, self._group)
        self._ha = (AutoSwitchHaService if config.enable_controller_mode else HaService)(broker, arrivals.notify)
        self._slave = SlaveSynchronize(broker, self._client, self._group)

        self._clients = ClientManage(broker, self._registration)
        self._server = RpcServer(
            host,
            config,
            on_channel_closed=self._clients.on_channel_closed,
            refusal=AclHook(host.log, access).refusal if config.acl_enable else None,
            broker_name=broker_name,
        )
        to_clients = BrokerToClient(broker, self._server.calls, self._clients.channel)
        self._offsets = OffsetManage(broker)
        self._assigner = Assigner(broker, self._routes, to_clients)
        self._assignments = QueryAssignment(broker, self._routes, self._assigner)
        tracked_min = None if shared is None else lambda: self._group.min_broker_id
        self._pulls = PullMessage(broker, self._offsets, tracked_min)

        messages = PutMessage(broker, levels, arrivals, self._ha.on_stored)
        send_out = BrokerOuterApi(self._client, followed).send_message_to_specific_broker
        self._cleaning = CleanCommitLog(broker)
        log = Log(messages.put, messages.put_due)
        peek_master = None if shared is None else shared.peek_master
        escape = escape_bridge(broker, log, self._routes, send_out, peek_master)
        self._send_back = ConsumerSendMsgBack(broker, self._registration, messages, peek_master)
        self.master = Master(log, self._send_back.send_back_from)
        """This broker, if it is a master, as slaves in its container use it."""
        foreign = ForeignMessages(broker, self._routes, self._client, shared)
        self._pops = Pops(broker, self._offsets, escape, messages.put, foreign)
        schedule = ScheduleMessageService(broker, levels, escape.async_put_message)
        transactions = Transactions(broker, self._registration, messages, to_clients, escape.put_message)
        self._timer = timer = (
            None if broker.timer_store is None else TimerMessageStore(broker, broker.timer_store, escape.put_message)
        )
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

        self._controlled = self._control(controllers)

        # Callbacks to parts that are made later than their callers.
        self._clients.on_left = self._pulls.single_active.on_left
        self._registration.on_registered = self._membership.on_registered
        arrivals.listen(
            self._pulls.hold.on_message_arrived,
            self._pops.on_message_arrived,
            self._cleaning.on_message_arrived,
        )
        arrivals.listen_to(SCHEDULE_TOPIC, schedule.on_message_arrived)
        arrivals.listen_to(HALF_TOPIC, transactions.check_service.on_message_arrived)
        if timer is not None:
            arrivals.listen_to(TIMER_TOPIC, timer.on_message_arrived)
            self._slave.on_check_point = timer.on_check_point
        self._server.serve(*self._handlers(messages, transactions, to_clients, special))

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
        broker = self.context
        sends = SendMessage(broker, self._registration, self._ha, messages)
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
            LockBatchMq(broker, self._client, self._group).handlers(),
            sends.handlers(),
            ReplyMessage(broker, sends, messages, to_clients).handlers(),
            self._send_back.handlers(),
            RecallMessage(broker, messages).handlers(),
            QueryMessage(broker).handlers(),
            MetadataHandlers(broker).handlers(),
            AdminTopics(broker, self._registration).handlers(),
            AdminGroups(broker).handlers(),
            AdminProgress(broker).handlers(),
            AdminOffsets(broker, to_clients).handlers(),
            AdminClients(broker, self._clients, to_clients).handlers(),
            AdminBroker(broker, self._registration, self._ha, special).handlers(),
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
        load_delay_progress(context)
        context.store.load()
        load_timer(context)
        self._persist_metadata()
        context.versions.believe()

    def _persist_metadata(self) -> None:
        persist_topics(self.context)
        persist_groups(self.context)
        persist_delay_offsets(self.context, self.context.delay_offsets.wrapper())
        persist_timer_check_point(self.context)


def _new_context(
    host: Host,
    config: BrokerConfig,
    cluster_name: str,
    broker_name: str,
    broker_id: int,
    nameservers: tuple[str, ...],
    topics: tuple[TopicConfig, ...],
    single_active_groups: tuple[str, ...],
) -> BrokerContext:
    """The identity of a new broker, and its tables as configured."""
    now_ms = host.clock.now_ms()
    context = BrokerContext(
        host,
        config,
        cluster_name,
        broker_name,
        broker_id,
        nameservers,
        TopicConfigManager(
            now_ms=now_ms,
            cluster=cluster_name,
            broker_name=broker_name,
            auto_create_topic_enable=config.auto_create_topic_enable,
            default_topic_queue_nums=config.default_topic_queue_nums,
            limits=config,
        ),
        SubscriptionGroupManager(
            now_ms=now_ms,
            auto_create_subscription_group=config.auto_create_subscription_group,
            max_groups=config.max_groups,
        ),
        ConsumerManager(channel_expired_timeout_ms=config.channel_expired_timeout, max_groups=config.max_groups),
        ConsumerOffsetManager(
            now_ms=now_ms,
            consumer_offset_update_version_step=config.consumer_offset_update_version_step,
            use_server_side_reset_offset=config.use_server_side_reset_offset,
            max_queues=config.max_queues,
        ),
        MessageStore(
            f"{host.ip}:{config.listen_port}",
            host.disk.map_files(COMMIT_LOG_FILE),
            config.commit_log_file_bytes,
            # Only in controller mode a log may have an end that no one may read yet.
            ReadableEnd(host.disk.map(CONSUME_QUEUE_FILE)) if config.enable_controller_mode else None,
        ),
        single_active_groups,
    )
    for topic in topics:
        context.topics.update_topic_config(topic, now_ms=now_ms)
    return context
