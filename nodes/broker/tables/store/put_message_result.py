"""How a put of a message ended, and what its client is answered.

Mirrors:
    `org.apache.rocketmq.store.PutMessageStatus`, `PutMessageResult`.
"""

from enum import StrEnum
from typing import NamedTuple

from nodes.config.timer import TimerConfig
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import Message


class PutMessageStatus(StrEnum):
    """Result of a put, by RocketMQ's names."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"
    PUT_TO_REMOTE_BROKER_FAIL = "PUT_TO_REMOTE_BROKER_FAIL"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    WHEEL_TIMER_FLOW_CONTROL = "WHEEL_TIMER_FLOW_CONTROL"
    WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"
    WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class PutMessageResult(NamedTuple):
    """Result of a put, and the stored message."""

    status: PutMessageStatus
    stored: Message | None = None
    """None: the message is not in this log."""


def put_refusal(status: PutMessageStatus, config: TimerConfig) -> tuple[ResponseCode, str]:
    """What a client is answered about a message that was not stored: the code, and the reason in words.

    Mirrors:
        `org.apache.rocketmq.broker.processor.SendMessageProcessor#handlePutMessageResult`,
        `EndTransactionProcessor#sendFinalMessage`.
    """
    match status:
        case PutMessageStatus.SERVICE_NOT_AVAILABLE:
            return ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is a slave: its log takes no message"
        case PutMessageStatus.OS_PAGE_CACHE_BUSY:
            return ResponseCode.SYSTEM_BUSY, "[PC_SYNCHRONIZED]broker busy, start flow control for a while"
        case PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL:
            return ResponseCode.MESSAGE_ILLEGAL, (
                f"the time of the message cannot be read, or is more than {config.timer_max_delay_sec} s ahead "
                "(timerMaxDelaySec), or is over for a message that takes another one back"
            )
        case PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL:
            maximum = config.timer_congest_num_each_slot
            return ResponseCode.SYSTEM_ERROR, (
                f"too many messages for that time: from {maximum} on some are refused by chance, "
                f"from {2 * maximum} on all"
            )
        case PutMessageStatus.WHEEL_TIMER_NOT_ENABLE:
            return ResponseCode.SYSTEM_ERROR, "accurate timer message is not enabled, timerWheelEnable is false"
        case _:
            failed = status is PutMessageStatus.CREATE_MAPPED_FILE_FAILED
            remark = "create mapped file failed, server is busy or broken." if failed else status.value
            return ResponseCode.SYSTEM_ERROR, remark
