"""What a client is answered about a message that was not stored.

Mirrors:
    `org.apache.rocketmq.broker.processor.SendMessageProcessor#handlePutMessageResult`,
    `EndTransactionProcessor#sendFinalMessage`.
"""

from collections.abc import Mapping

from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.config.timer import TimerConfig
from nodes.protocol.codes import ResponseCode

_REMARKS: Mapping[PutMessageStatus, str] = {
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: "create mapped file failed, server is busy or broken.",
}


def put_refusal(status: PutMessageStatus, config: TimerConfig) -> tuple[ResponseCode, str]:
    """The code of the answer, and the reason in words."""
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
            return ResponseCode.SYSTEM_ERROR, _REMARKS.get(status, status.value)
