"""RocketMQ's values that are exchanged between nodes, frozen.

Mirrors:
    `org.apache.rocketmq.common.*` and `org.apache.rocketmq.remoting.protocol.{route,heartbeat,subscription}.*`.
"""

from collections.abc import Mapping
from enum import IntFlag, StrEnum
from types import MappingProxyType
from typing import NamedTuple

import attrs

from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen

MASTER_ID = 0
"""The broker id of a master."""
RETRY_TOPIC_PREFIX = "%RETRY%"
DLQ_TOPIC_PREFIX = "%DLQ%"
SYNC_BROKER_MEMBER_TOPIC_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
AUTO_CREATE_TOPIC = "TBW102"

NO_TEXTS: Mapping[str, str] = MappingProxyType({})


class PermName(IntFlag):
    """Bits of a permission.

    Mirrors:
        `org.apache.rocketmq.common.constant.PermName`.
    """

    INHERIT = 1
    WRITE = 2
    READ = 4
    PRIORITY = 8


class TopicSysFlag(IntFlag):
    """Bits of a topic's system flag: whether it, or its subscribers, belong to a unit.

    Mirrors:
        `org.apache.rocketmq.common.sysflag.TopicSysFlag`.
    """

    UNIT = 1
    UNIT_SUB = 2


READ_WRITE = 6
"""READ and WRITE."""


def is_readable(perm: int) -> bool:
    """Whether the READ bit is set."""
    return bool(perm & 4)


def is_writeable(perm: int) -> bool:
    """Whether the WRITE bit is set."""
    return bool(perm & 2)


class MessageModel(StrEnum):
    """Whether the members of a group share the queues, or each consumes all."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeType(StrEnum):
    """How a consumer gets messages: pull, push or pop."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class ConsumeFromWhere(StrEnum):
    """Where a group starts on a queue without a stored offset."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    """Deprecated, like the two that follow: all three mean CONSUME_FROM_LAST_OFFSET."""
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"


class MessageRequestMode(StrEnum):
    """How a member gets the messages of a queue that a broker has assigned to it."""

    PULL = "PULL"
    POP = "POP"


@frozen(cache_hash=True)
class MessageQueue:
    """A queue of a topic on a broker, ordered by topic, broker name and queue id.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageQueue`.
    """

    topic: str
    broker_name: str
    queue_id: Int32

    def __str__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"

    def __lt__(self, other: "MessageQueue") -> bool:
        # The order that attrs would make takes twelve times as long, and consumers sort their queues all the time.
        return (self.topic, self.broker_name, self.queue_id) < (other.topic, other.broker_name, other.queue_id)


class VersionWithoutCounterError(ValueError):
    """A version without counter was to be incremented, compared or assigned."""

    def __init__(self, left: "DataVersion") -> None:
        super().__init__("a data version has no counter; its sender wrote null")
        self.left = left
        """RocketMQ's version object after the failure: its other fields have changed already."""


@frozen
class DataVersion:
    """The version of a table that other nodes copy.

    Equality looks at all three fields; `compare` looks at state version, then
    counter, then timestamp.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.DataVersion`.
    """

    state_version: int = 0
    timestamp: int = 0
    """Milliseconds since 1970."""
    counter: int | None = 0
    """None: a peer sent null; such a version can only be compared for equality."""

    def next_version(self, now_ms: int, state_version: int = 0) -> "DataVersion":
        """The version after one change.

        Args:
            now_ms: wall clock of the node that changes its table.
            state_version: the store's state machine version; 0 outside controller mode.

        Raises:
            VersionWithoutCounterError: there is no counter to increment.
        """
        if self.counter is None:
            raise VersionWithoutCounterError(DataVersion(state_version, now_ms, None))
        return DataVersion(state_version, now_ms, self.counter + 1)

    def assign_new_one(self, other: "DataVersion") -> "DataVersion":
        """The version after adopting that of another table.

        Raises:
            VersionWithoutCounterError: one of the two has no counter.
        """
        if self.counter is None or other.counter is None:
            raise VersionWithoutCounterError(attrs.evolve(other, counter=self.counter))
        return other

    def compare(self, other: "DataVersion") -> int:
        """-1, 0 or 1: older than, as old as, newer than `other`.

        Raises:
            VersionWithoutCounterError: the state versions are equal and one of the two has no counter.
        """
        if self.state_version != other.state_version:
            return 1 if self.state_version > other.state_version else -1
        if self.counter is None or other.counter is None:
            raise VersionWithoutCounterError(self)
        mine, others = (self.counter, self.timestamp), (other.counter, other.timestamp)
        return (mine > others) - (mine < others)


@frozen
class QueueData:
    """The queues that one broker name serves of one topic."""

    broker_name: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_sys_flag: Int32 = 0


@frozen
class BrokerData:
    """The members of one broker name."""

    cluster: str
    broker_name: str
    broker_addrs: Mapping[int, str]
    """broker id -> address, ordered by id."""
    zone_name: str | None = None
    enable_acting_master: bool = False


@frozen
class TopicQueueMappingInfo:
    """The mapping of a static topic on one broker, as a nameserver has it."""

    topic: str
    total_queues: Int32
    bname: str
    epoch: int
    scope: str = "__global__"
    curr_id_map: Mapping[int, int] = MappingProxyType({})
    """Logical queue -> physical queue, for those that this broker serves now."""
    dirty: bool = False


@frozen
class TopicRouteData:
    """The route of a topic: its queues, and the addresses of their brokers."""

    queue_datas: tuple[QueueData, ...]
    broker_datas: tuple[BrokerData, ...]
    order_topic_conf: str | None = None
    filter_server_table: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """address -> filter servers."""
    topic_queue_mapping_by_broker: Mapping[str, TopicQueueMappingInfo] | None = None


FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


@frozen
class TopicConfig:
    """A topic as a broker holds it.

    Mirrors:
        `org.apache.rocketmq.common.TopicConfig`.
    """

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = READ_WRITE
    topic_sys_flag: Int32 = 0
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    attributes: Mapping[str, str] = NO_TEXTS


@frozen
class SubscriptionGroupConfig:
    """A consumer group as a broker is configured for it.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig`.
    """

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: int = MASTER_ID
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: Int32 = 0
    consume_timeout_minute: Int32 = 15
    attributes: Mapping[str, str] = NO_TEXTS


@frozen
class SubscriptionData:
    """A group's subscription to a topic.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData`.
    """

    topic: str
    sub_string: str = "*"
    tags_set: tuple[str, ...] = ()
    """Sorted."""
    code_set: tuple[Int32, ...] = ()
    """Sorted hash codes of the tags."""
    sub_version: int = 0
    """Wall clock of the client in milliseconds; the larger version wins."""
    expression_type: str = "TAG"
    class_filter_mode: bool = False


@frozen
class ConsumerData:
    """One consumer group inside a heartbeat."""

    group_name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscription_data_set: tuple[SubscriptionData, ...]
    """Sorted by topic."""
    unit_mode: bool = False


@frozen
class ProducerData:
    """One producer group inside a heartbeat."""

    group_name: str


@frozen
class HeartbeatData:
    """Body of a heartbeat from a client instance."""

    client_id: str = attrs.field(metadata=wire("clientID"))
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: Int32 = 0
    without_sub: bool = False


class Message(NamedTuple):
    """A stored message, with the fields that the control plane needs.

    Encoded as a row, not as a map: the answer to a pull has up to 32 of them. A named tuple, since each send makes
    two: it is made in a third of the time of an attrs value.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageExt`.
    """

    topic: str
    queue_id: Int32
    queue_offset: int
    commit_log_offset: int
    born_timestamp: int
    """Wall clock of the producer, milliseconds."""
    store_timestamp: int
    """Wall clock of the broker, milliseconds."""
    body: bytes
    properties: Mapping[str, str] = NO_TEXTS
    reconsume_times: Int32 = 0
    sys_flag: Int32 = 0
    flag: Int32 = 0
    born_host: str = ""
    store_host: str = ""
