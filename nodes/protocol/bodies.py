"""Bodies of requests and responses that are not nouns of their own.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.*`.
"""

from collections.abc import Mapping

import attrs

from nodes.protocol.assigning import AssignmentClaim, RebalanceSetting
from nodes.protocol.model import (
    BrokerData,
    DataVersion,
    Message,
    MessageModel,
    MessageQueue,
    MessageRequestMode,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicQueueMappingInfo,
)
from nodes.protocol.static_topics import TopicQueueMappingDetail
from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen


@frozen
class TopicConfigSerializeWrapper:
    """A broker's topics and their version."""

    topic_config_table: Mapping[str, TopicConfig]
    """topic -> config."""
    data_version: DataVersion
    topic_queue_mapping_info_map: Mapping[str, TopicQueueMappingInfo] = attrs.field(factory=dict)
    """static topic -> mapping."""


@frozen
class TopicQueueMappingSerializeWrapper:
    """A broker's static topics and their version: its file."""

    topic_queue_mapping_info_map: Mapping[str, TopicQueueMappingDetail]
    data_version: DataVersion


@frozen
class SubscriptionGroupTable:
    """A broker's consumer groups and their version: its file, and the answer to 201."""

    subscription_group_table: Mapping[str, SubscriptionGroupConfig]
    """group -> config."""
    data_version: DataVersion


@frozen
class ConsumerOffsetSerializeWrapper:
    """A broker's consumer offsets and their version: the answer to 43."""

    offset_table: Mapping[str, Mapping[int, int]]
    """topic@group -> queue id -> offset."""
    data_version: DataVersion
    group_topic_map: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """group -> topics, sorted; never read."""


@frozen
class DelayOffsetSerializeWrapper:
    """The offset of each delay level, and their version: the broker's file, and the answer to 45."""

    offset_table: Mapping[int, int]
    """delay level -> offset."""
    data_version: DataVersion


@frozen
class TimerMetric:
    """The timed messages of one topic that wait."""

    count: int
    """May be less than none: some deletes are counted twice."""
    time_stamp: int
    """Of the last change; ms since 1970."""


@frozen
class TimerMetricsSerializeWrapper:
    """The timed messages of each topic, and their version: the broker's file, and the answer to 61."""

    timing_count: Mapping[str, TimerMetric]
    data_version: DataVersion


@frozen
class RegisterBrokerBody:
    """Body of REGISTER_BROKER (103)."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper
    filter_server_list: tuple[str, ...] | None = ()
    """None: a broker before 3.0.11."""


@frozen
class KvTable:
    """Texts by key: the order configuration in the answer to 103, and the answer to 219."""

    table: Mapping[str, str]


@frozen
class BrokerMemberGroup:
    """The members of a broker name under their true ids."""

    cluster: str
    broker_name: str
    broker_addrs: Mapping[int, str]
    """broker id -> address, ordered by id."""


@frozen
class GetBrokerMemberGroupResponseBody:
    """Body of the answer to 901."""

    broker_member_group: BrokerMemberGroup


@frozen
class ClusterInfo:
    """Body of the answer to 106: the brokers of each cluster, under true ids."""

    broker_addr_table: Mapping[str, BrokerData]
    cluster_addr_table: Mapping[str, tuple[str, ...]]
    """cluster -> broker names, sorted."""


@frozen
class TopicList:
    """Body of the answers to 206, 224, 304 and 311 to 313."""

    topic_list: tuple[str, ...]
    """Sorted."""
    broker_addr: str | None = None
    """Only with system topics: the address of one broker, which has further system topics."""


@frozen
class GetConsumerListByGroupResponseBody:
    """Body of the answer to 38: client ids, one per channel."""

    consumer_id_list: tuple[str, ...]
    setting: RebalanceSetting | None = None
    """Who allocates the queues of the group; None: no operator has said it to this broker."""


@frozen
class LockBatchRequestBody:
    """Body of 41 and 42: queues that a client wants to lock or unlock."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...]
    """Sorted."""
    only_this_broker: bool = False


@frozen
class LockBatchResponseBody:
    """Body of the answer to 41: the queues that are locked now."""

    lock_ok_mq_set: tuple[MessageQueue, ...] = attrs.field(metadata=wire("lockOKMQSet"))
    """Sorted."""


@frozen
class QueryAssignmentRequestBody:
    """Body of QUERY_ASSIGNMENT (400): a member requests its queues of a topic."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str
    message_model: MessageModel
    claim: AssignmentClaim | None = None
    """Asks this broker as the assigner; None: as RocketMQ's clients ask."""


@frozen
class MessageQueueAssignment:
    """One assigned queue; None: an entry without queue."""

    message_queue: MessageQueue | None
    mode: MessageRequestMode = MessageRequestMode.PULL


@frozen
class QueryAssignmentResponseBody:
    """Body of the answer to 400."""

    message_queue_assignments: tuple[MessageQueueAssignment, ...] | None
    """Sorted; None: the broker has no answer, the member keeps its queues; empty: the member drops all queues."""
    epoch: int = 0
    """Of the assigner's allocation; 0: none."""
    setting: RebalanceSetting | None = None
    """Who allocates the queues of the group; None: no operator has said it to this broker."""


@frozen
class SetMessageRequestModeRequestBody:
    """Body of SET_MESSAGE_REQUEST_MODE (401): the mode of a topic and a group."""

    topic: str
    consumer_group: str
    mode: MessageRequestMode = MessageRequestMode.PULL
    pop_share_queue_num: Int32 = 0


@frozen
class MessageRequestModeSerializeWrapper:
    """All request modes of a broker: its file, and the answer to 402."""

    message_request_mode_map: Mapping[str, Mapping[str, SetMessageRequestModeRequestBody]]
    """topic -> group -> mode."""


@frozen
class CheckClientRequestBody:
    """Body of CHECK_CLIENT_CONFIG (46)."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None


@frozen
class PullMessageResponseBody:
    """The messages of a pull, in queue order."""

    messages: tuple[Message, ...]


@frozen
class BatchAck:
    """Acknowledged messages of one pop; the wire names are RocketMQ's letters."""

    consumer_group: str = attrs.field(metadata=wire("c"))
    topic: str = attrs.field(metadata=wire("t"))
    """Without the prefix of retry, which `retry` stands for."""
    retry: str = attrs.field(metadata=wire("r"))
    """A mark of `nodes.protocol.extra_info.RetryMark`."""
    start_offset: int = attrs.field(metadata=wire("so"))
    queue_id: Int32 = attrs.field(metadata=wire("q"))
    revive_queue_id: Int32 = attrs.field(metadata=wire("rq"))
    pop_time: int = attrs.field(metadata=wire("pt"))
    invisible_time: int = attrs.field(metadata=wire("it"))
    bit_set: str = attrs.field(metadata=wire("b"))
    """Bit i: the message at start offset + i; the bytes of a Java `BitSet`, lowest first, in base64."""


@frozen
class BatchAckMessageRequestBody:
    """Body of BATCH_ACK_MESSAGE (200151)."""

    broker_name: str
    acks: tuple[BatchAck, ...]
