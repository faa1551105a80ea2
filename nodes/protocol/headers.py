"""Request and response headers, one class per RocketMQ header class.

A field with a default of None may be absent. The other fields are always sent;
if one is missing, it decodes to "", 0 or False. Headers of
tools are in `headers_admin`, those about single messages in `headers_message`.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.header.**`.
"""

from enum import StrEnum
from typing import ClassVar

import attrs

from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen


class BoundaryType(StrEnum):
    """Which of several messages with the same time a search returns."""

    LOWER = "LOWER"
    UPPER = "UPPER"


@frozen
class EmptyHeader:
    """A header without fields."""


@frozen
class SendMessageRequestHeader:
    """Header of SEND_MESSAGE (10); the frame's body is the message body itself."""

    NULLS_FAIL: ClassVar[bool] = True

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: int
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: Int32 | None = None
    bname: str | None = None


@frozen
class SendMessageRequestHeaderV2(SendMessageRequestHeader):
    """Header of SEND_MESSAGE_V2 (310): the same fields under one-letter names."""

    FAST_CODES: ClassVar[bool] = True
    WIRE_NAMES: ClassVar[dict[str, str]] = {
        "producer_group": "a",
        "topic": "b",
        "default_topic": "c",
        "default_topic_queue_nums": "d",
        "queue_id": "e",
        "sys_flag": "f",
        "born_timestamp": "g",
        "flag": "h",
        "properties": "i",
        "reconsume_times": "j",
        "unit_mode": "k",
        "max_reconsume_times": "l",
        "batch": "m",
        "bname": "n",
    }


@frozen
class SendMessageResponseHeader:
    """Where the message was stored."""

    msg_id: str
    queue_id: Int32
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    """What takes a timed message back, see `nodes.protocol.recall_handle`."""


@frozen
class PullMessageRequestHeader:
    """Header of PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361)."""

    FAST_CODES: ClassVar[bool] = True

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: int
    max_msg_nums: Int32
    sys_flag: Int32
    """Bits: 1 commit offset, 2 suspend, 4 subscription, 8 class filter, 16 lite pull."""
    commit_offset: int
    suspend_timeout_millis: int
    sub_version: int
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    bname: str | None = None
    lo: bool | None = None
    """False: the queue is a physical one of a static topic, for which another broker asks."""
    fencing_token: int | None = None
    """Not RocketMQ's: the number of the sender's lock of the queue."""


@frozen
class PullMessageResponseHeader:
    """The offset and the broker of the next pull."""

    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offset_delta: int | None = None
    """Of a static topic: what is added to the offsets of messages."""


@frozen
class QueryConsumerOffsetRequestHeader:
    """Header of QUERY_CONSUMER_OFFSET (14)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None
    bname: str | None = None
    lo: bool | None = None


@frozen
class OffsetResponseHeader:
    """One offset: the answer to 14, 29, 30 and 31."""

    offset: int


@frozen
class UpdateConsumerOffsetRequestHeader:
    """Header of UPDATE_CONSUMER_OFFSET (15); the handler checks for missing queue and offset."""

    consumer_group: str
    topic: str
    queue_id: Int32 | None = None
    commit_offset: int | None = None
    bname: str | None = None
    lo: bool | None = None
    fencing_token: int | None = None
    """As of a pull."""


@frozen
class SearchOffsetRequestHeader:
    """Header of SEARCH_OFFSET_BY_TIMESTAMP (29)."""

    topic: str
    queue_id: Int32
    timestamp: int
    boundary_type: BoundaryType | None = None
    bname: str | None = None
    lo: bool | None = None


@frozen
class GetMaxOffsetRequestHeader:
    """Header of GET_MAX_OFFSET (30)."""

    topic: str
    queue_id: Int32
    committed: bool = True
    bname: str | None = None
    lo: bool | None = None


@frozen
class GetMinOffsetRequestHeader:
    """Header of GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: Int32
    bname: str | None = None
    lo: bool | None = None


@frozen
class HeartbeatResponseHeader:
    """A broker's answer to heartbeats of version 2."""

    is_support_heart_beat_v2: bool | None = attrs.field(default=None, metadata=wire("IS_SUPPORT_HEART_BEAT_V2"))
    is_sub_change: bool | None = attrs.field(default=None, metadata=wire("IS_SUB_CHANGE"))


@frozen
class UnregisterClientRequestHeader:
    """Header of UNREGISTER_CLIENT (35)."""

    client_id: str = attrs.field(metadata=wire("clientID"))
    producer_group: str | None = None
    consumer_group: str | None = None


@frozen
class ConsumerSendMsgBackRequestHeader:
    """Header of CONSUMER_SEND_MSG_BACK (36)."""

    offset: int
    """Commit log offset of the message."""
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    bname: str | None = None


@frozen
class EndTransactionRequestHeader:
    """Header of END_TRANSACTION (37)."""

    producer_group: str
    tran_state_table_offset: int
    commit_log_offset: int
    commit_or_rollback: Int32
    """8 commit, 12 rollback, 0 unknown."""
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    topic: str | None = None
    bname: str | None = None


@frozen
class ConsumerGroupRequestHeader:
    """A consumer group: the header of 38 and of 40.

    Mirrors:
        `GetConsumerListByGroupRequestHeader`, `NotifyConsumerIdsChangedRequestHeader`.
    """

    consumer_group: str


@frozen
class RegisterBrokerRequestHeader:
    """Header of REGISTER_BROKER (103)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: int
    heartbeat_timeout_millis: int | None = None
    enable_acting_master: bool | None = None
    """None: a broker too old to know the flag."""
    compressed: bool = False
    body_crc32: Int32 = 0
    zone_name: str | None = attrs.field(default=None, metadata=wire("__ZONE_NAME"))
    zone_mode: bool | None = attrs.field(default=None, metadata=wire("__ZONE_MODE"))


@frozen
class RegisterBrokerResponseHeader:
    """The master of the group, for a slave."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@frozen
class UnregisterBrokerRequestHeader:
    """Header of UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@frozen
class QueryDataVersionRequestHeader:
    """Header of QUERY_DATA_VERSION (322)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@frozen
class QueryDataVersionResponseHeader:
    """Whether the nameserver has another version."""

    changed: bool


@frozen
class BrokerHeartbeatRequestHeader:
    """Header of BROKER_HEARTBEAT (904); what follows the name is for controllers alone."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int | None = None
    epoch: Int32 | None = None
    """The last epoch of the broker's log."""
    max_offset: int | None = None
    confirm_offset: int | None = None
    heartbeat_timeout_mills: int | None = None
    election_priority: Int32 | None = None
    """The lower is elected."""


@frozen
class GetBrokerMemberGroupRequestHeader:
    """Header of GET_BROKER_MEMBER_GROUP (901)."""

    cluster_name: str
    broker_name: str


@frozen
class NotifyMinBrokerIdChangeRequestHeader:
    """Header of NOTIFY_MIN_BROKER_ID_CHANGE (905); RocketMQ's nameserver never sets the broker name."""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


@frozen
class ExchangeHaInfoHeader:
    """Header of EXCHANGE_BROKER_HA_INFO (906), both ways."""

    master_ha_address: str | None = None
    master_flush_offset: int | None = None
    master_address: str | None = None


@frozen
class GetRouteInfoRequestHeader:
    """Header of GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: bool | None = None
    zone_name: str | None = attrs.field(default=None, metadata=wire("__ZONE_NAME"))
    zone_mode: bool | None = attrs.field(default=None, metadata=wire("__ZONE_MODE"))


@frozen
class WritePermRequestHeader:
    """Header of WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327)."""

    broker_name: str


@frozen
class WipeWritePermResponseHeader:
    """How many topics lost the WRITE bit."""

    wipe_topic_count: Int32


@frozen
class AddWritePermResponseHeader:
    """How many topics were made readable and writeable."""

    add_topic_count: Int32


@frozen
class DeleteTopicFromNamesrvRequestHeader:
    """Header of DELETE_TOPIC_IN_NAMESRV (216)."""

    topic: str
    cluster_name: str | None = None


@frozen
class RegisterTopicRequestHeader:
    """Header of REGISTER_TOPIC_IN_NAMESRV (217)."""

    topic: str


@frozen
class PutKvConfigRequestHeader:
    """Header of PUT_KV_CONFIG (100)."""

    namespace: str | None = None
    key: str | None = None
    value: str | None = None


@frozen
class KvConfigRequestHeader:
    """An entry of the configuration: the header of 101 and 102.

    Mirrors:
        `GetKVConfigRequestHeader`, `DeleteKVConfigRequestHeader`.
    """

    namespace: str
    key: str


@frozen
class GetKvConfigResponseHeader:
    """The value of an entry."""

    value: str | None = None


@frozen
class GetKvListByNamespaceRequestHeader:
    """Header of GET_KVLIST_BY_NAMESPACE (219)."""

    namespace: str


@frozen
class GetTopicsByClusterRequestHeader:
    """Header of GET_TOPICS_BY_CLUSTER (224)."""

    cluster: str
