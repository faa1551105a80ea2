"""What a consumer answers to administrators about itself; queues are keys in it, which is no standard JSON.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo`, `ProcessQueueInfo`, `PopProcessQueueInfo`,
    `ConsumeStatus`, `ConsumeMessageDirectlyResult`, `CMResult`.
"""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from nodes.protocol.model import MessageQueue, SubscriptionData
from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen


@frozen
class ProcessQueueInfo:
    """A queue that a consumer owns."""

    commit_offset: int
    """Offset in memory, or else that of the broker; -1: there is none, -2: the broker did not answer."""
    cached_msg_min_offset: int
    cached_msg_max_offset: int
    cached_msg_count: Int32
    cached_msg_size_mib: Int32 = attrs.field(metadata=wire("cachedMsgSizeInMiB"))
    transaction_msg_min_offset: int
    transaction_msg_max_offset: int
    transaction_msg_count: Int32
    locked: bool
    try_unlock_times: int
    last_lock_timestamp: int
    dropped: bool = attrs.field(metadata=wire("droped"))
    last_pull_timestamp: int
    last_consume_timestamp: int


@frozen
class PopProcessQueueInfo:
    """A queue that a consumer pops; its id is -1 for all queues of a broker."""

    wait_ack_count: Int32
    dropped: bool = attrs.field(metadata=wire("droped"))
    last_pop_timestamp: int


@frozen
class ConsumeStatus:
    """Rates and times of one topic."""

    pull_rt: float = attrs.field(default=0.0, metadata=wire("pullRT"))
    """Milliseconds for each pull that found messages."""
    pull_tps: float = attrs.field(default=0.0, metadata=wire("pullTPS"))
    consume_rt: float = attrs.field(default=0.0, metadata=wire("consumeRT"))
    """Milliseconds for each batch."""
    consume_ok_tps: float = attrs.field(default=0.0, metadata=wire("consumeOKTPS"))
    consume_failed_tps: float = attrs.field(default=0.0, metadata=wire("consumeFailedTPS"))
    consume_failed_msgs: int = 0
    """Of the last hour."""


@frozen
class ConsumerRunningInfo:
    """Body of the answer to 307."""

    properties: Mapping[str, str]
    subscription_set: tuple[SubscriptionData, ...]
    mq_table: Mapping[MessageQueue, ProcessQueueInfo]
    mq_pop_table: Mapping[MessageQueue, PopProcessQueueInfo] = attrs.field(factory=dict)
    status_table: Mapping[str, ConsumeStatus] = attrs.field(factory=dict)
    user_consumer_info: Mapping[str, str] = attrs.field(factory=dict)


class CMResult(StrEnum):
    """What a listener returned for a message that an administrator had it consume."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"


@frozen
class ConsumeMessageDirectlyResult:
    """Body of the answer to 309."""

    order: bool
    consume_result: CMResult
    spent_time_mills: int
    auto_commit: bool = True
    remark: str | None = None
