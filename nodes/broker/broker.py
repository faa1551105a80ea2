"""A broker process: what it is made of, and the order in which it starts and stops."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.admin_broker import AdminBroker
from nodes.broker.admin_clients import AdminClients
from nodes.broker.admin_groups import AdminGroups
from nodes.broker.admin_offsets import AdminOffsets
from nodes.broker.admin_progress import AdminProgress
from nodes.broker.admin_topics import AdminTopics
from nodes.broker.broker_to_client import BrokerToClient
from nodes.broker.client_manage import ClientManage
from nodes.broker.commit_log import load_commit_log
from nodes.broker.consumer_offsets import ConsumerOffsetManager
from nodes.broker.consumers import ConsumerManager
from nodes.broker.context import BrokerContext
from nodes.broker.delay_levels import parse_delay_level
from nodes.broker.escape import escape_way
from nodes.broker.escape_bridge import EscapeBridge
from nodes.broker.ha_service import HaService
from nodes.broker.lock_batch import LockBatchMq
from nodes.broker.member_group import VIP_PORT_DISTANCE, MemberGroup
from nodes.broker.membership import GroupMembership
from nodes.broker.message_store import MessageStore
from nodes.broker.metadata_files import (
    GROUP_FILE,
    TOPIC_FILE,
    load_progress_of_delays,
    persist_delay_offsets,
    persist_groups,
    persist_timer_check_point,
    persist_topics,
)
from nodes.broker.metadata_handlers import MetadataHandlers
from nodes.broker.offset_manage import OffsetManage
from nodes.broker.outer_api import BrokerOuterApi
from nodes.broker.pre_online_service import BrokerPreOnlineService
from nodes.broker.pull import PullMessage
from nodes.broker.put_message import PutMessage
from nodes.broker.query_assignment import QueryAssignment
from nodes.broker.query_message import QueryMessage
from nodes.broker.registration import Registration
from nodes.broker.schedule_message import ScheduleMessageService
from nodes.broker.send import SendMessage
from nodes.broker.send_back import ConsumerSendMsgBack
from nodes.broker.slave_synchronize import SlaveSynchronize
from nodes.broker.special_services import SpecialServices
from nodes.broker.subscription_groups import SubscriptionGroupManager
from nodes.broker.topic_routes import TopicRouteInfoManager
from nodes.broker.topics import TopicConfigManager
from nodes.broker.transactions import Transactions
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.live_config import with_kept_changes
from nodes.protocol.model import MASTER_ID, TopicConfig
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import RpcServer


class Broker:
    """One broker.

    Args:
        topics: that it serves from its first start on; later starts read its files.

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
    ) -> None:
        config = with_kept_changes(host.disk, config)
        now_ms = host.clock.now_ms()
        self._host = host
        self.context = BrokerContext(
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
            ),
            SubscriptionGroupManager(
                now_ms=now_ms, auto_create_subscription_group=config.auto_create_subscription_group
            ),
            ConsumerManager(channel_expired_timeout_ms=config.channel_expired_timeout),
            ConsumerOffsetManager(
                now_ms=now_ms,
                consumer_offset_update_version_step=config.consumer_offset_update_version_step,
                use_server_side_reset_offset=config.use_server_side_reset_offset,
            ),
            MessageStore(f"{host.ip}:{config.listen_port}"),
        )
        for topic in topics:
            self.context.topics.update_topic_config(topic, now_ms=now_ms)
        self._client = RpcClient(host, config)
        self._server = RpcServer(host, config, on_channel_closed=self._on_channel_closed)
        self._group = MemberGroup(
            broker_id=broker_id,
            address=self.context.address,
            ha_address=self.context.ha_address,
            enable_slave_acting_master=config.enable_slave_acting_master,
            sync_master_flush_offset_when_startup=config.sync_master_flush_offset_when_startup,
            isolated=config.enable_slave_acting_master and config.total_replicas > 1,
        )
        self._registration = Registration(self.context, self._client, self._group)
        self._clients = ClientManage(self.context, self._server, self._registration)
        self._offsets = OffsetManage(self.context, self._server)
        self._pulls = PullMessage(self.context, self._server, self._offsets)
        self._ha = HaService(self.context, self._on_arrived)
        asked = Nameservers(host, self._client, nameservers)
        self._routes = TopicRouteInfoManager(self.context, asked)
        self._assignments = QueryAssignment(self.context, self._server, self._routes)
        levels = parse_delay_level(config.message_delay_level)
        messages = PutMessage(self.context, levels, self._on_stored)
        escape = self._escape_bridge(asked, messages)
        self._schedule = ScheduleMessageService(self.context, levels, escape.async_put_message)
        self._sends = SendMessage(self.context, self._server, self._registration, self._ha, messages)
        self._to_clients = BrokerToClient(self.context, self._server.calls, self._clients.channel)
        self._transactions = Transactions(
            self.context, self._server, self._registration, messages, self._to_clients, escape.put_message
        )
        self._queries = QueryMessage(self.context, self._server)
        AdminTopics(self.context, self._server, self._registration)
        AdminGroups(self.context, self._server)
        AdminProgress(self.context, self._server)
        AdminOffsets(self.context, self._server, self._to_clients)
        AdminClients(self.context, self._server, self._clients, self._to_clients)
        AdminBroker(self.context, self._server, self._registration, self._ha, lambda: self._special.is_running)
        self._special = SpecialServices(self._schedule, self._transactions.check_service)
        self._send_backs = ConsumerSendMsgBack(self.context, self._server, self._registration, messages)
        self._membership = GroupMembership(
            self.context,
            self._group,
            self._client,
            self._server,
            self._registration,
            self._ha,
            asked,
            self._special,
            self._pulls.hold.on_master_online,
        )
        self._slave = SlaveSynchronize(self.context, self._client, self._group)
        self._metadata = MetadataHandlers(self.context, self._server)
        self._locks = LockBatchMq(self.context, self._client, self._server, self._group)
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Load, serve, register; and the way back when asked to stop."""
        config = self.context.config
        self._load()
        self._ha.start()
        for port in self._ports():
            self._host.listen(port, self._server)
        self._pulls.hold.start()
        self._clients.start()
        self._offsets.start()
        self._routes.start()
        if config.enable_slave_acting_master and not config.skip_pre_online:
            BrokerPreOnlineService(self.context, self._membership, self._ha, self._slave).start()
        if not self._group.isolated:
            await self._membership.start_without_isolation()
        if self.context.broker_id != MASTER_ID:
            self._slave.start(self._registration.thread)
        self._registration.start_periodic()
        self._membership.start()
        if config.skip_pre_online:
            await self._membership.start_service_without_condition()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Begin the orderly stop."""
        self._stopping.set()

    def _ports(self) -> tuple[int, ...]:
        """The port that everybody knows, and the second one, which is for metadata."""
        port = self.context.config.listen_port
        return (port, port - VIP_PORT_DISTANCE)

    def _escape_bridge(self, nameservers: Nameservers, messages: PutMessage) -> EscapeBridge:
        context = self.context
        way = escape_way(
            is_master=context.broker_id == MASTER_ID,
            enable_slave_acting_master=context.config.enable_slave_acting_master,
            enable_remote_escape=context.config.enable_remote_escape,
        )
        return EscapeBridge(
            context.broker_name,
            f"InnerProducerGroup_{context.broker_name}_{context.broker_id}",
            way,
            messages.put_due,
            self._routes,
            BrokerOuterApi(self._client, nameservers).send_message_to_specific_broker,
        )

    def _on_arrived(self, topic: str, queue_id: int) -> None:
        self._pulls.hold.on_message_arrived(topic, queue_id)
        self._schedule.on_message_arrived(topic, queue_id)
        self._transactions.check_service.on_message_arrived(topic, queue_id)

    def _on_stored(self, topic: str, queue_id: int) -> None:
        self._on_arrived(topic, queue_id)
        self._ha.on_stored()

    def _on_channel_closed(self, channel: Channel) -> None:
        self._clients.on_channel_closed(channel)

    async def _shutdown(self) -> None:
        """Farewells first: the port still answers while the nameservers forget this broker."""
        await self._registration.unregister_all()
        for port in self._ports():
            self._host.close_listener(port)
        self._ha.stop()
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
        self._offsets.load()
        load_progress_of_delays(context)
        load_commit_log(disk, context.store)
        self._persist_metadata()
        context.versions.believe()

    def _persist_metadata(self) -> None:
        persist_topics(self.context)
        persist_groups(self.context)
        persist_delay_offsets(self.context, self.context.delay_offsets.wrapper())
        persist_timer_check_point(self.context)
