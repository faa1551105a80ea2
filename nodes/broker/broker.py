"""A broker process: what it is made of, and the order in which it starts and stops."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.client_manage import ClientManage
from nodes.broker.commit_log import load_commit_log
from nodes.broker.consumer_offsets import ConsumerOffsetManager
from nodes.broker.consumers import ConsumerManager
from nodes.broker.context import BrokerContext
from nodes.broker.message_store import MessageStore
from nodes.broker.offset_manage import OffsetManage
from nodes.broker.pull import PullMessage
from nodes.broker.registration import Registration
from nodes.broker.send import SendMessage
from nodes.broker.subscription_groups import SubscriptionGroupManager
from nodes.broker.topics import TopicConfigManager
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.protocol.model import TopicConfig
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer

TOPIC_FILE = "topics"
GROUP_FILE = "subscriptionGroups"


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
                now_ms=now_ms, consumer_offset_update_version_step=config.consumer_offset_update_version_step
            ),
            MessageStore(f"{host.ip}:{config.listen_port}"),
        )
        for topic in topics:
            self.context.topics.update_topic_config(topic, now_ms=now_ms)
        self._client = RpcClient(
            host,
            config,
        )
        self._server = RpcServer(host, config, on_channel_closed=self._on_channel_closed)
        self._registration = Registration(self.context, self._client)
        self._clients = ClientManage(self.context, self._server, self._registration)
        self._offsets = OffsetManage(self.context, self._server)
        self._pulls = PullMessage(self.context, self._server, self._offsets)
        self._sends = SendMessage(self.context, self._server, self._registration, self._pulls.on_message_arrived)
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Load, serve, register; and the way back when asked to stop."""
        self._load()
        self._host.listen(self.context.config.listen_port, self._server)
        self._clients.start()
        self._offsets.start()
        await self._registration.register_all(force=self.context.config.force_register)
        self._registration.start_periodic()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Begin the orderly stop."""
        self._stopping.set()

    def _on_channel_closed(self, channel: Channel) -> None:
        self._clients.on_channel_closed(channel)

    async def _shutdown(self) -> None:
        """Farewells first: the port still answers while the nameservers forget this broker."""
        await self._registration.unregister_all()
        self._host.close_listener(self.context.config.listen_port)
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
        self._offsets.load()
        load_commit_log(disk, context.store)
        self._persist_metadata()

    def _persist_metadata(self) -> None:
        self._host.disk.write(TOPIC_FILE, self.context.topics.encode())
        self._host.disk.write(GROUP_FILE, self.context.groups.encode())
