"""What clients and brokers say to each other: messages, offsets, groups.

The rules of `nodes.protocol.headers` hold.
"""

from enum import StrEnum
from typing import ClassVar

import attrs

from nodes.protocol.wire_names import wire


class BoundaryType(StrEnum):
    """Which of several messages with the same time a search means."""

    LOWER = "LOWER"
    UPPER = "UPPER"


@attrs.frozen
class EmptyHeader:
    """A header without fields."""


@attrs.frozen
class SendMessageRequestHeader:
    """Header of SEND_MESSAGE (10); the frame's body is the message body itself."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: int | None = None
    bname: str | None = None


@attrs.frozen
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


@attrs.frozen
class SendMessageResponseHeader:
    """Where the message was stored."""

    msg_id: str
    queue_id: int
    queue_offset: int
    transaction_id: str | None = None


@attrs.frozen
class PullMessageRequestHeader:
    """Header of PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361)."""

    FAST_CODES: ClassVar[bool] = True

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    """Bits: 1 commit offset, 2 suspend, 4 subscription, 8 class filter, 16 lite pull."""
    commit_offset: int
    suspend_timeout_millis: int
    sub_version: int
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: int | None = None
    bname: str | None = None


@attrs.frozen
class PullMessageResponseHeader:
    """Where to pull next, and from whom."""

    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int


@attrs.frozen
class QueryConsumerOffsetRequestHeader:
    """Header of QUERY_CONSUMER_OFFSET (14)."""

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None
    bname: str | None = None


@attrs.frozen
class OffsetResponseHeader:
    """One offset: the answer to 14, 29, 30 and 31."""

    offset: int


@attrs.frozen
class UpdateConsumerOffsetRequestHeader:
    """Header of UPDATE_CONSUMER_OFFSET (15); the broker itself asks whether queue and offset are there."""

    consumer_group: str
    topic: str
    queue_id: int | None = None
    commit_offset: int | None = None
    bname: str | None = None


@attrs.frozen
class SearchOffsetRequestHeader:
    """Header of SEARCH_OFFSET_BY_TIMESTAMP (29)."""

    topic: str
    queue_id: int
    timestamp: int
    boundary_type: BoundaryType | None = None
    bname: str | None = None


@attrs.frozen
class GetMaxOffsetRequestHeader:
    """Header of GET_MAX_OFFSET (30)."""

    topic: str
    queue_id: int
    committed: bool = True
    bname: str | None = None


@attrs.frozen
class GetMinOffsetRequestHeader:
    """Header of GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: int
    bname: str | None = None


@attrs.frozen
class HeartbeatResponseHeader:
    """What a broker says about heartbeats of version 2."""

    is_support_heart_beat_v2: bool | None = attrs.field(default=None, metadata=wire("IS_SUPPORT_HEART_BEAT_V2"))
    is_sub_change: bool | None = attrs.field(default=None, metadata=wire("IS_SUB_CHANGE"))


@attrs.frozen
class UnregisterClientRequestHeader:
    """Header of UNREGISTER_CLIENT (35)."""

    client_id: str = attrs.field(metadata=wire("clientID"))
    producer_group: str | None = None
    consumer_group: str | None = None


@attrs.frozen
class ConsumerSendMsgBackRequestHeader:
    """Header of CONSUMER_SEND_MSG_BACK (36)."""

    offset: int
    """Commit log offset of the message."""
    group: str
    delay_level: int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    bname: str | None = None


@attrs.frozen
class EndTransactionRequestHeader:
    """Header of END_TRANSACTION (37)."""

    producer_group: str
    tran_state_table_offset: int
    commit_log_offset: int
    commit_or_rollback: int
    """8 commit, 12 rollback, 0 unknown."""
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    topic: str | None = None
    bname: str | None = None


@attrs.frozen
class ConsumerGroupRequestHeader:
    """A consumer group: the header of 38 and of 40.

    Mirrors:
        `GetConsumerListByGroupRequestHeader`, `NotifyConsumerIdsChangedRequestHeader`.
    """

    consumer_group: str
