"""Messages of transactions: how a half message is put aside, put back, asked about, and ended.

Mirrors:
    `org.apache.rocketmq.broker.transaction.queue.TransactionalMessageUtil`, `TransactionalMessageBridge`,
    `org.apache.rocketmq.broker.processor.EndTransactionProcessor#endMessageTransaction`.
"""

import re
from collections.abc import Iterable, Mapping

import attrs

from nodes.protocol.java_order import as_long
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
"""In whose name the broker notes how far it has checked."""
REMOVE_TAG = "d"
"""Tag of a message that names half messages which have ended."""
OFFSET_SEPARATOR = ","
_LONG = re.compile(r"[+-]?[0-9]+")


def is_prepared(message: Message) -> bool:
    """Whether a message asks to be kept until its transaction has ended."""
    if message.properties.get(TRANSACTION_PREPARED, "").lower() != "true":
        return False
    level = message.properties.get(DELAY_TIME_LEVEL, "0")
    return not (message.reconsume_times > 0 and level.isdecimal() and int(level) > 0)


def half_message(message: Message) -> Message:
    """The message as it waits for the end of its transaction."""
    properties = dict(message.properties)
    unique = properties.get(UNIQ_KEY)
    if unique:
        properties[TRANSACTION_ID] = unique
    properties |= {REAL_TOPIC: message.topic, REAL_QUEUE_ID: str(message.queue_id)}
    flag = MessageSysFlag.reset_transaction_value(message.sys_flag, MessageSysFlag.TRANSACTION_NOT_TYPE)
    return attrs.evolve(message, topic=HALF_TOPIC, queue_id=0, properties=properties, sys_flag=flag)


def committed_message(half: Message, commit_or_rollback: int) -> Message:
    """The message that consumers get; its properties lose what was noted while it waited."""
    dropped = (REAL_TOPIC, REAL_QUEUE_ID, TRANSACTION_PREPARED)
    properties = half.properties
    return attrs.evolve(
        half,
        topic=properties[REAL_TOPIC],
        queue_id=int(properties[REAL_QUEUE_ID]),
        properties={name: value for name, value in properties.items() if name not in dropped},
        sys_flag=MessageSysFlag.reset_transaction_value(half.sys_flag, commit_or_rollback),
    )


def escaping_message(half: Message) -> Message:
    """The half message as another broker gets it: prepared, for its real topic.

    Mirrors:
        `TransactionalMessageUtil#buildTransactionalMessageFromHalfMessage`.
    """
    dropped = (TRANSACTION_PREPARED_QUEUE_OFFSET, REAL_QUEUE_ID)
    properties = {name: value for name, value in half.properties.items() if name not in dropped}
    properties[TRANSACTION_PREPARED] = "true"
    real_queue_id = half.properties.get(REAL_QUEUE_ID, "")
    return attrs.evolve(
        half,
        topic=half.properties[REAL_TOPIC],
        queue_id=int(real_queue_id) if real_queue_id.isdecimal() else 0,
        properties=properties,
        sys_flag=half.sys_flag | MessageSysFlag.TRANSACTION_PREPARED_TYPE,
    )


def immune_message(half: Message) -> Message:
    """The half message as it is put back while nobody may ask about it: it remembers where it lay first."""
    properties = {**half.properties}
    properties.setdefault(TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
    return attrs.evolve(half, properties=properties)


def checked_message(half: Message) -> Message:
    """The half message with one check more."""
    times = half.properties.get(TRANSACTION_CHECK_TIMES)
    return attrs.evolve(
        half,
        properties={**half.properties, TRANSACTION_CHECK_TIMES: "1" if times is None else str(_number(times) + 1)},
    )


def is_checked_too_often(half: Message, transaction_check_max: int) -> bool:
    """Whether a half message has been asked about as often as may be."""
    times = half.properties.get(TRANSACTION_CHECK_TIMES)
    return times is not None and _number(times) >= transaction_check_max


def asked_about(half: Message) -> Message:
    """The half message as its producer is shown it: under its real topic and queue."""
    properties = half.properties
    return attrs.evolve(half, topic=properties[REAL_TOPIC], queue_id=int(properties[REAL_QUEUE_ID]))


def op_message(offsets: Iterable[str], *, now_ms: int, broker: str) -> Message:
    """The message that tells which half messages have ended."""
    body = "".join(offsets).encode()
    return Message(OP_TOPIC, 0, 0, 0, now_ms, 0, body, {TAGS: REMOVE_TAG}, born_host=broker)


def ended_offsets(op: Message) -> tuple[int, ...]:
    """The half messages that an op message names, by their offsets."""
    if op.properties.get(TAGS) != REMOVE_TAG:
        return ()
    parts = op.body.decode().split(OFFSET_SEPARATOR)
    return tuple(_number(part) for part in parts if part)


def get_immunity_time(text: str | None, transaction_timeout_ms: int) -> int:
    """How long nobody may ask, in ms, as the end of a transaction is judged by it: never below the time-out.

    Mirrors:
        `TransactionalMessageUtil#getImmunityTime`.
    """
    seconds = _java_long(text or "")
    return max(as_long((seconds or 0) * 1_000), transaction_timeout_ms)


def check_immunity_time(text: str, transaction_timeout_ms: int) -> int:
    """The same as a check judges by it: it may be below the time-out, and what is no number means the time-out.

    Mirrors:
        `TransactionalMessageServiceImpl#getImmunityTime`.
    """
    seconds = _number(text)
    return transaction_timeout_ms if seconds == -1 else as_long(seconds * 1_000)


def prepared_queue_offset(properties: Mapping[str, str]) -> int | None:
    """Where a half message lay first that was put back; None: it was not, -1: what it says is no number."""
    text = properties.get(TRANSACTION_PREPARED_QUEUE_OFFSET)
    return None if text is None else _number(text)


def _number(text: str) -> int:
    """A number, or -1, as `getInt` and `getLong` of RocketMQ read it."""
    number = _java_long(text)
    return -1 if number is None else number


def _java_long(text: str) -> int | None:
    """What `Long.parseLong` reads; None where it throws."""
    number = int(text) if _LONG.fullmatch(text) else None
    return number if number is not None and as_long(number) == number else None
