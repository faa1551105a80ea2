"""All tables of one broker about its clients."""

from nodes.broker.tables.clients.assignments import MessageRequestModeManager, RebalanceSettings
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.clients.lmq_offsets import LmqConsumerOffsetManager
from nodes.broker.tables.clients.pinned_assignments import PinnedAssignments
from nodes.broker.tables.clients.producers import ProducerManager
from nodes.broker.tables.clients.queue_locks import RebalanceLockManager
from nodes.broker.tables.clients.single_active import SingleActiveConsumers
from nodes.config import BrokerConfig
from nodes.values import frozen


@frozen(eq=False)
class ClientTables:
    """What a broker knows of its clients, of the queues of each, and of how far each group has consumed."""

    consumers: ConsumerManager
    producers: ProducerManager
    offsets: ConsumerOffsetManager
    locks: RebalanceLockManager
    single_active: SingleActiveConsumers
    request_modes: MessageRequestModeManager
    pinned: PinnedAssignments
    rebalance_settings: RebalanceSettings


def client_tables(config: BrokerConfig, *, single_active_groups: tuple[str, ...] = (), now_ms: int) -> ClientTables:
    """The empty tables of a process that starts now.

    Args:
        config: their limits, among others.
        single_active_groups: groups whose queues have a single active consumer.
        now_ms: wall clock.
    """
    return ClientTables(
        ConsumerManager(channel_expired_timeout_ms=config.channel_expired_timeout, max_groups=config.max_groups),
        ProducerManager(max_groups=config.max_groups),
        (LmqConsumerOffsetManager if config.enable_lmq else ConsumerOffsetManager)(
            now_ms=now_ms,
            consumer_offset_update_version_step=config.consumer_offset_update_version_step,
            use_server_side_reset_offset=config.use_server_side_reset_offset,
            max_queues=config.max_queues,
        ),
        RebalanceLockManager(max_queues=config.max_queues),
        SingleActiveConsumers(single_active_groups, max_queues=config.max_queues),
        MessageRequestModeManager(config.default_message_request_mode, config.default_pop_share_queue_num),
        PinnedAssignments(grace_period_ms=config.assigner_grace_period_ms),
        RebalanceSettings(max_groups=config.max_groups),
    )
