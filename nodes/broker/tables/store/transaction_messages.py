"""Messages of transactions: half messages, checks, ends.

Mirrors:
    `org.apache.rocketmq.broker.transaction.queue.TransactionalMessageUtil`, `TransactionalMessageBridge`,
    `org.apache.rocketmq.broker.processor.EndTransactionProcessor#endMessageTransaction`.
"""

import re
from collections.abc import Iterable, Mapping

import attrs

from nodes.beliefs import DiscardReason, MessageEvent, MessageRecord
from nodes.broker.tables.store.get_message_result import GetMessageStatus
from nodes.broker.tables.store.message_store import MessageStore
from nodes.protocol.java import as_long
from nodes.protocol.model import Message
from nodes.protocol.properties import (
    DELAY_TIME_LEVEL,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_ID,
    TRANSACTION_PREPARED,
    TRANSACTION_PREPARED_QUEUE_OFFSET,
    UNIQ_KEY,
)
from nodes.protocol.sys_flags import MessageSysFlag

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_GROUP = "CID_RMQ_SYS_TRANS"
"""The group of the broker's own offsets of half and op messages."""
REMOVE_TAG = "d"
"""Tag of an op message, which lists half messages that have ended."""
OFFSET_SEPARATOR = ","
_LONG = re.compile(r"[+-]?[0-9]+")


def is_prepared(message: Message) -> bool:
    """Whether a message is sent as a half message."""
    if message.properties.get(TRANSACTION_PREPARED, "").lower() != "true":
        return False
    level = message.properties.get(DELAY_TIME_LEVEL, "0")
    return not (message.reconsume_times > 0 and level.isdecimal() and int(level) > 0)


def half_message(message: Message) -> Message:
    """A message as it is stored until its transaction ends."""
    properties = dict(message.properties)
    unique = properties.get(UNIQ_KEY)
    if unique:
        properties[TRANSACTION_ID] = unique
    properties |= {REAL_TOPIC: message.topic, REAL_QUEUE_ID: str(message.queue_id)}
    flag = MessageSysFlag.reset_transaction_value(message.sys_flag, MessageSysFlag.TRANSACTION_NOT_TYPE)
    return message._replace(topic=HALF_TOPIC, queue_id=0, properties=properties, sys_flag=flag)


def committed_message(half: Message, commit_or_rollback: int) -> Message:
    """The message for consumers, without the properties of a half message."""
    dropped = (REAL_TOPIC, REAL_QUEUE_ID, TRANSACTION_PREPARED)
    properties = half.properties
    return half._replace(
        topic=properties[REAL_TOPIC],
        queue_id=int(properties[REAL_QUEUE_ID]),
        properties={name: value for name, value in properties.items() if name not in dropped},
        sys_flag=MessageSysFlag.reset_transaction_value(half.sys_flag, commit_or_rollback),
    )


def half_record(half: Message, broker_name: str) -> MessageRecord | None:
    """What a broker records about a half message that it has stored; None: a client sent it to the topic itself."""
    return _record_of(half, broker_name, MessageEvent.HALF, "")


def discard_record(half: Message, broker_name: str, reason: DiscardReason) -> MessageRecord | None:
    """What a broker records about a half message that it gives up; None: a client sent it to the topic itself."""
    return _record_of(half, broker_name, MessageEvent.DISCARDED, reason.value)


def _record_of(half: Message, broker_name: str, event: MessageEvent, tags: str) -> MessageRecord | None:
    properties = half.properties
    queue_id = properties.get(REAL_QUEUE_ID, "")
    if REAL_TOPIC not in properties or not queue_id.isdecimal():
        return None
    place = properties[REAL_TOPIC], broker_name, int(queue_id), half.queue_offset
    return MessageRecord(event, "", *place, "", half.store_timestamp, tags, properties.get(UNIQ_KEY, ""))


def escaping_message(half: Message) -> Message:
    """The half message as it is sent to another broker: prepared, with its real topic.

    Mirrors:
        `TransactionalMessageUtil#buildTransactionalMessageFromHalfMessage`.
    """
    dropped = (TRANSACTION_PREPARED_QUEUE_OFFSET, REAL_QUEUE_ID)
    properties = {name: value for name, value in half.properties.items() if name not in dropped}
    properties[TRANSACTION_PREPARED] = "true"
    real_queue_id = half.properties.get(REAL_QUEUE_ID, "")
    return half._replace(
        topic=half.properties[REAL_TOPIC],
        queue_id=int(real_queue_id) if real_queue_id.isdecimal() else 0,
        properties=properties,
        sys_flag=half.sys_flag | MessageSysFlag.TRANSACTION_PREPARED_TYPE,
    )


def immune_message(half: Message) -> Message:
    """The half message as it is put back during its immunity; it keeps its first offset."""
    properties = {**half.properties}
    properties.setdefault(TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
    return half._replace(properties=properties)


def checked_message(half: Message) -> Message:
    """The half message with its number of checks incremented."""
    times = half.properties.get(TRANSACTION_CHECK_TIMES)
    return half._replace(
        properties={**half.properties, TRANSACTION_CHECK_TIMES: "1" if times is None else str(_number(times) + 1)},
    )


def is_checked_too_often(half: Message, transaction_check_max: int) -> bool:
    """Whether a half message has been checked as often as allowed."""
    times = half.properties.get(TRANSACTION_CHECK_TIMES)
    return times is not None and _number(times) >= transaction_check_max


def message_to_check(half: Message) -> Message:
    """The half message as it is sent to its producer, with its real topic and queue."""
    properties = half.properties
    return half._replace(topic=properties[REAL_TOPIC], queue_id=int(properties[REAL_QUEUE_ID]))


def op_message(offsets: Iterable[str], *, now_ms: int, broker: str) -> Message:
    """The op message that lists half messages which have ended."""
    body = "".join(offsets).encode()
    return Message(OP_TOPIC, 0, 0, 0, now_ms, 0, body, {TAGS: REMOVE_TAG}, born_host=broker)


def ended_offsets(op: Message) -> tuple[int, ...]:
    """The offsets of half messages in an op message."""
    if op.properties.get(TAGS) != REMOVE_TAG:
        return ()
    parts = op.body.decode().split(OFFSET_SEPARATOR)
    return tuple(_number(part) for part in parts if part)


def get_immunity_time(text: str | None, transaction_timeout_ms: int) -> int:
    """The immunity of a half message in ms for the end of its transaction: never below the time-out.

    Mirrors:
        `TransactionalMessageUtil#getImmunityTime`.
    """
    seconds = _java_long(text or "")
    return max(as_long((seconds or 0) * 1_000), transaction_timeout_ms)


def check_immunity_time(text: str, transaction_timeout_ms: int) -> int:
    """The immunity in ms for a check: it may be below the time-out, which also replaces a malformed number.

    Mirrors:
        `TransactionalMessageServiceImpl#getImmunityTime`.
    """
    seconds = _number(text)
    return transaction_timeout_ms if seconds == -1 else as_long(seconds * 1_000)


def prepared_queue_offset(properties: Mapping[str, str]) -> int | None:
    """The first offset of a half message that was put back; None: it was not put back, -1: malformed number."""
    text = properties.get(TRANSACTION_PREPARED_QUEUE_OFFSET)
    return None if text is None else _number(text)


def _number(text: str) -> int:
    """A number, or -1, as `getInt` and `getLong` of RocketMQ read it."""
    number = _java_long(text)
    return -1 if number is None else number


def _java_long(text: str) -> int | None:
    """The result of `Long.parseLong`; None if it throws."""
    number = int(text) if _LONG.fullmatch(text) else None
    return number if number is not None and as_long(number) == number else None


_OP_MSG_PULL_NUMS = 32
NO_NEW_MESSAGE = (GetMessageStatus.NO_MESSAGE_IN_QUEUE, GetMessageStatus.OFFSET_OVERFLOW_ONE)
"""Results of a read at the end of a queue."""


@attrs.define
class EndedHalfMessages:
    """The op messages that were read so far.

    Args:
        store: holds the op messages.
        op_offset: of the first op message that is not done.
        half_offset: of the first half message that is not done; earlier ones do not matter any more.

    Mirrors:
        `TransactionalMessageServiceImpl#fillOpRemoveMap`, `#calculateOpOffset`.
    """

    store: MessageStore
    op_offset: int
    half_offset: int
    found: tuple[Message, ...] = ()
    """Op messages of the last read; empty: there were no more."""
    _next_begin_offset: int = attrs.field(init=False)
    _ended_by: dict[int, int] = attrs.field(init=False, factory=dict)
    """Half offset -> op offset."""
    _open: dict[int, dict[int, None]] = attrs.field(init=False, factory=dict)
    """Op offset -> half offsets that are not done."""
    _done: list[int] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._next_begin_offset = self.op_offset

    def read_more(self) -> int | None:
        """Read more op messages; returns the corrected offset if the stored progress is outside of the queue."""
        result = self.store.get_message(OP_TOPIC, 0, self._next_begin_offset, _OP_MSG_PULL_NUMS)
        self._next_begin_offset = result.next_begin_offset
        self.found = result.messages
        for op in result.messages:
            self._take_in(op)
        if result.status is GetMessageStatus.FOUND or result.status in NO_NEW_MESSAGE:
            return None
        return result.next_begin_offset

    def take(self, half_offset: int) -> bool:
        """Whether a half message has ended; if so, it is done."""
        op_offset = self._ended_by.pop(half_offset, None)
        if op_offset is None:
            return False
        waiting = self._open[op_offset]
        del waiting[half_offset]
        if not waiting:
            del self._open[op_offset]
            self._done.append(op_offset)
        return True

    @property
    def new_op_offset(self) -> int:
        """Offset of the first op message that is not done now."""
        offset = self.op_offset
        for done in sorted(self._done):
            if done != offset:
                break
            offset += 1
        return offset

    def _take_in(self, op: Message) -> None:
        named = [offset for offset in ended_offsets(op) if offset >= self.half_offset]
        for offset in named:
            self._ended_by[offset] = op.queue_offset
        if named:
            self._open[op.queue_offset] = dict.fromkeys(named)
        else:
            self._done.append(op.queue_offset)
