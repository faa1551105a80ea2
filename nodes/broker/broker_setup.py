"""What an operator sets up a broker with, and its tables before its first start."""

from nodes.broker.context import BrokerContext
from nodes.broker.files import COMMIT_LOG_FILE, CONSUME_QUEUE_FILE
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.clients.plain_access import NO_ACCOUNTS, PlainPermissionManager
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.config import BrokerConfig
from nodes.host import Host
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import TopicConfig
from nodes.values import frozen


@frozen
class BrokerSetup:
    """The identity of a broker, and what it knows before its first start."""

    cluster_name: str
    broker_name: str
    broker_id: int
    nameservers: tuple[str, ...]
    topics: tuple[TopicConfig, ...] = ()
    """Served from the first start on; later starts read them from the broker's files."""
    single_active_groups: tuple[str, ...] = ()
    """Groups of whose consumers only one gets the messages of a queue; RocketMQ has none."""
    request_modes: tuple[SetMessageRequestModeRequestBody, ...] = ()
    """Whether groups pull or pop, as an operator has set it before the first start."""
    controllers: tuple[str, ...] = ()
    """Addresses, for a broker in controller mode."""
    access: PlainPermissionManager = NO_ACCOUNTS
    """Which account has which permissions, with `aclEnable`."""

    def context(self, host: Host, config: BrokerConfig) -> BrokerContext:
        """The identity of the new broker, and its tables as configured."""
        now_ms = host.clock.now_ms()
        context = BrokerContext(
            host,
            config,
            self.cluster_name,
            self.broker_name,
            self.broker_id,
            self.nameservers,
            TopicConfigManager(
                now_ms=now_ms,
                cluster=self.cluster_name,
                broker_name=self.broker_name,
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
            self.single_active_groups,
        )
        for topic in self.topics:
            context.topics.update_topic_config(topic, now_ms=now_ms)
        for request_mode in self.request_modes:
            context.request_modes.set_mode(request_mode)
        return context
