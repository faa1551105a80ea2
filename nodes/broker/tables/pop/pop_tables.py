"""All tables of POP of one broker."""

from nodes.broker.tables.pop.buffer import PopBufferMerge, PopBufferOptions
from nodes.broker.tables.pop.consumer_cache import PopConsumerCache
from nodes.broker.tables.pop.consumer_order_info import ConsumerOrderInfoManager
from nodes.broker.tables.pop.consumer_records import PopConsumerStore
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.broker.tables.pop.queue_locks import PopQueueLocks
from nodes.config import BrokerConfig
from nodes.values import frozen


@frozen(eq=False)
class PopTables:
    """What a broker knows of the messages that it has handed out to pops."""

    buffer: PopBufferMerge
    in_flight: PopInflightMessageCounter
    queue_locks: PopQueueLocks
    group_locks: PopQueueLocks
    """Locks of groups and topics, for pops whose records go to the database."""
    records: PopConsumerStore
    """What stands in the database."""
    cache: PopConsumerCache
    """Records that are not in the database yet."""
    order_infos: ConsumerOrderInfoManager


def pop_tables(config: BrokerConfig, *, now_ms: int) -> PopTables:
    """The empty tables of a process that starts now."""
    buffer = PopBufferOptions(
        config.enable_pop_buffer_merge,
        config.enable_pop_batch_ack,
        config.pop_ck_stay_buffer_time,
        config.pop_ck_stay_buffer_time_out,
        config.pop_ck_max_buffer_size,
        config.pop_ck_offset_max_queue_size,
    )
    return PopTables(
        PopBufferMerge(buffer),
        PopInflightMessageCounter(should_start_ms=now_ms - 1),
        PopQueueLocks(),
        PopQueueLocks(),
        PopConsumerStore(),
        PopConsumerCache(stay_ms=config.pop_ck_stay_buffer_time, max_size=config.pop_ck_max_buffer_size),
        ConsumerOrderInfoManager(),
    )
