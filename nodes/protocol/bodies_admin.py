"""Bodies of requests of operators and their tools to brokers.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.admin.*`, `org.apache.rocketmq.remoting.protocol.body.*`.
"""

from collections.abc import Mapping

import attrs

from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumeType,
    MessageModel,
    MessageQueue,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
)
from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen

# Topics and groups


@frozen
class CreateTopicListRequestBody:
    """Body of UPDATE_AND_CREATE_TOPIC_LIST (18)."""

    topic_config_list: tuple[TopicConfig, ...]


@frozen
class SubscriptionGroupList:
    """Body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)."""

    group_config_list: tuple[SubscriptionGroupConfig, ...]


@frozen
class GroupList:
    """Body of the answer to 300."""

    group_list: tuple[str, ...]
    """Sorted."""


@frozen
class GroupForbidden:
    """Body of the answer to 353: the permissions of a group for a topic."""

    topic: str
    group: str
    readable: bool


@frozen
class QuerySubscriptionResponseBody:
    """Body of the answer to 345."""

    group: str
    topic: str
    subscription_data: SubscriptionData | None = None


# Progress


@frozen
class TopicOffset:
    """The ends of a queue."""

    min_offset: int
    max_offset: int
    last_update_timestamp: int
    """Store time of its last message; 0: it has none."""


@frozen
class TopicStatsTable:
    """Body of the answer to 202."""

    topic_put_tps: float
    offset_table: Mapping[MessageQueue, TopicOffset]


@frozen
class OffsetWrapper:
    """Progress of a group in a queue."""

    broker_offset: int
    consumer_offset: int
    pull_offset: int
    last_timestamp: int
    """Store time of the message before the group's offset; 0: there is none."""


@frozen
class ConsumeStats:
    """Body of the answer to 208."""

    offset_table: Mapping[MessageQueue, OffsetWrapper]
    consume_tps: float

    @property
    def total_diff(self) -> int:
        """Number of messages that the group has not committed."""
        return sum(at.broker_offset - at.consumer_offset for at in self.offset_table.values())

    @property
    def inflight_total_diff(self) -> int:
        """Number of messages that the group has pulled and not committed."""
        return sum(at.pull_offset - at.consumer_offset for at in self.offset_table.values())


@frozen
class ConsumeStatsList:
    """Body of the answer to 317."""

    consume_stats_list: tuple[Mapping[str, tuple[ConsumeStats, ...]], ...]
    """For each group: name -> statistics of each topic."""
    broker_addr: str
    total_diff: int
    total_inflight_diff: int


@frozen
class QueueTimeSpan:
    """Store times of the first and the last message of a queue, and the delay of a group."""

    message_queue: MessageQueue
    min_time_stamp: int
    max_time_stamp: int
    consume_time_stamp: int
    delay_time: int


@frozen
class QueryConsumeTimeSpanBody:
    """Body of the answer to 303."""

    consume_time_span_set: tuple[QueueTimeSpan, ...]


@frozen
class QueryCorrectionOffsetBody:
    """Body of the answer to 308."""

    correction_offsets: Mapping[int, int]


@frozen
class ResetOffsetBody:
    """Body of the answer to 222, and of request 220."""

    offset_table: Mapping[MessageQueue, int]


@frozen
class GetConsumerStatusBody:
    """Body of the answers to 221 and 223."""

    message_queue_table: Mapping[MessageQueue, int] = attrs.field(factory=dict)
    """Of one client: its offsets."""
    consumer_table: Mapping[str, Mapping[MessageQueue, int]] = attrs.field(factory=dict)
    """Client id -> its offsets."""


@frozen
class ConsumeQueueData:
    """One entry of a queue."""

    physic_offset: int
    physic_size: Int32
    tags_code: int
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@frozen
class QueryConsumeQueueResponseBody:
    """Body of the answer to 321."""

    queue_data: tuple[ConsumeQueueData, ...]
    max_queue_index: int
    min_queue_index: int
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None


# Clients


@frozen
class Connection:
    """One client."""

    client_id: str
    client_addr: str
    language: str
    version: Int32


@frozen
class ConsumerConnection:
    """Body of the answer to 203."""

    connection_set: tuple[Connection, ...]
    subscription_table: Mapping[str, SubscriptionData]
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere


@frozen
class ProducerConnection:
    """Body of the answer to 204."""

    connection_set: tuple[Connection, ...]


@frozen
class ProducerInfo:
    """One producer."""

    client_id: str
    remote_ip: str = attrs.field(metadata=wire("remoteIP"))
    language: str
    version: Int32
    last_update_timestamp: int


@frozen
class ProducerTableInfo:
    """Body of the answer to 328."""

    data: Mapping[str, tuple[ProducerInfo, ...]]
    """Group -> members."""


# The broker itself


@frozen
class BrokerStatsItem:
    """The counts of a period of time."""

    sum: int
    tps: float
    avgpt: float


@frozen
class BrokerStatsData:
    """Body of the answer to 315."""

    stats_minute: BrokerStatsItem
    stats_hour: BrokerStatsItem
    stats_day: BrokerStatsItem


@frozen
class HAConnectionRuntimeInfo:
    """A master's end of one link."""

    addr: str
    slave_ack_offset: int
    diff: int
    in_sync: bool
    transferred_byte_in_second: int
    transfer_from_where: int


@frozen
class HAClientRuntimeInfo:
    """A slave's end of its link."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    activated: bool = False


@frozen
class HARuntimeInfo:
    """Body of the answer to 907."""

    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: Int32
    ha_connection_info: tuple[HAConnectionRuntimeInfo, ...]
    ha_client_runtime_info: HAClientRuntimeInfo
