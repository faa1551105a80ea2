"""Headers of queries for single messages, and of requests of brokers to clients.

The rules of `nodes.protocol.headers` hold.
"""

import attrs

from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen


@frozen
class QueryMessageRequestHeader:
    """Header of QUERY_MESSAGE (12)."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: int
    end_timestamp: int
    unique_key_query: bool | None = attrs.field(default=None, metadata=wire("_UNIQUE_KEY_QUERY"))
    """Whether the key is the unique id of a message."""
    bname: str | None = None


@frozen
class QueryMessageResponseHeader:
    """Progress of the index."""

    index_last_update_timestamp: int
    index_last_update_phyoffset: int


@frozen
class ViewMessageRequestHeader:
    """Header of VIEW_MESSAGE_BY_ID (33)."""

    offset: int
    """In the commit log."""
    topic: str | None = None


@frozen
class GetEarliestMsgStoretimeRequestHeader:
    """Header of GET_EARLIEST_MSG_STORETIME (32)."""

    topic: str
    queue_id: Int32
    bname: str | None = None
    lo: bool | None = None


@frozen
class GetEarliestMsgStoretimeResponseHeader:
    """Store time of the first message of a queue; -1: there is none."""

    timestamp: int


@frozen
class CheckTransactionStateRequestHeader:
    """Header of CHECK_TRANSACTION_STATE (39), from a broker to a producer."""

    tran_state_table_offset: int
    commit_log_offset: int
    topic: str | None = None
    """RocketMQ sets the topic of half messages here; the message in the body has the real one."""
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


@frozen
class ReplyMessageRequestHeader:
    """Header of PUSH_REPLY_MESSAGE_TO_CLIENT (326): that of the reply, and where it came from and was."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: int
    flag: Int32
    born_host: str
    """`ip:port` of who replied."""
    store_host: str
    """`ip:port` of the broker."""
    store_timestamp: int
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False


@frozen
class ResumeCheckHalfMessageRequestHeader:
    """Header of RESUME_CHECK_HALF_MESSAGE (323)."""

    msg_id: str
    topic: str | None = None


@frozen
class RecallMessageRequestHeader:
    """Header of RECALL_MESSAGE (370)."""

    topic: str
    recall_handle: str
    producer_group: str | None = None
    bname: str | None = None


@frozen
class RecallMessageResponseHeader:
    """Which message is taken back."""

    msg_id: str


@frozen
class GetConsumerRunningInfoRequestHeader:
    """Header of GET_CONSUMER_RUNNING_INFO (307), to a broker and from there to the client."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@frozen
class ConsumeMessageDirectlyResultRequestHeader:
    """Header of CONSUME_MESSAGE_DIRECTLY (309), to a broker and from there to the client."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


@frozen
class ResetOffsetRequestHeader:
    """Header of INVOKE_BROKER_TO_RESET_OFFSET (222) and RESET_CONSUMER_CLIENT_OFFSET (220)."""

    group: str
    topic: str
    queue_id: Int32 | None = None
    """None or -1: all queues."""
    offset: int | None = None
    """None or -1: by time."""
    timestamp: int = 0
    """-1: the end of each queue."""
    is_force: bool = False


@frozen
class GetConsumerStatusRequestHeader:
    """Header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223) and GET_CONSUMER_STATUS_FROM_CLIENT (221)."""

    topic: str
    group: str
    client_addr: str | None = None
    """A client id; None: all clients of the group."""
