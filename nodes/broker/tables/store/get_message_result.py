"""How a read of a queue ends, and what a master answers then."""

from enum import StrEnum
from typing import NamedTuple

from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import Message
from nodes.protocol.properties import KEYS


class GetMessageStatus(StrEnum):
    """How a read of a queue ended."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_RESET = "OFFSET_RESET"


_CODES = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


def pull_response_code(status: GetMessageStatus, offset: int) -> ResponseCode:
    """The code of a master's answer to a pull at `offset` with this result.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PullMessageProcessor#composeResponseHeader`.
    """
    if status is GetMessageStatus.NO_MESSAGE_IN_QUEUE:
        return ResponseCode.PULL_NOT_FOUND if offset == 0 else ResponseCode.PULL_OFFSET_MOVED
    return _CODES[status]


class GetMessageResult(NamedTuple):
    """Result of a read of a queue, and the next offset."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    """One more than the offset of the last message."""
    messages: tuple[Message, ...] = ()
    fall_behind_bytes: int = 0
    """From the last message that was read to the end of the log; 0 if none was."""
    filtered: tuple[Message, ...] = ()
    """Messages that were read and do not match."""
    found_bytes: int = 0
    """Size of the messages found, as the log counts it."""


def outside_queue(offset: int, low: int, high: int) -> tuple[GetMessageStatus, int]:
    """How a read ends at an offset that the queue does not have, and the offset to go on at."""
    if high == 0:
        return GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < low:
        return GetMessageStatus.OFFSET_TOO_SMALL, low
    return (GetMessageStatus.OFFSET_OVERFLOW_ONE if offset == high else GetMessageStatus.OFFSET_OVERFLOW_BADLY), high


def has_keys(message: Message) -> bool:
    """Whether the log of a compaction topic has a message: only with keys, which one of a batch may lack."""
    return bool(message.properties.get(KEYS, "").strip())


def compacted_result(result: GetMessageResult, *, is_lenient: bool) -> GetMessageResult:
    """The result of a read of a topic with `cleanup.policy=COMPACTION`, which has a log of its own, as clients see it.

    An offset above the end leads back to the first message, and nothing was filtered. Nothing is compacted: that begins
    when a file of 100 MiB is full.

    Args:
        result: of a read of the queue.
        is_lenient: whether bad offsets are left as they are.

    Mirrors:
        `org.apache.rocketmq.store.kv.CompactionLog#getMessage`.
    """
    is_back = result.status is GetMessageStatus.OFFSET_OVERFLOW_BADLY and result.min_offset == 0 and not is_lenient
    return result._replace(next_begin_offset=0 if is_back else result.next_begin_offset, filtered=())
