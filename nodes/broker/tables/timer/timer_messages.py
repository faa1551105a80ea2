"""Timed messages: which are admitted, to which slot they go, and what becomes of a failed delivery.

Mirrors:
    `org.apache.rocketmq.broker.util.HookUtils#handleScheduleMessage`,
    `org.apache.rocketmq.store.timer.TimerMessageStore`, `TimerLog`.
"""

from collections.abc import Callable
from enum import Enum, auto

from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.delay_levels import delay_level
from nodes.config.timer import TimerConfig
from nodes.fields import LONG_MAX
from nodes.protocol.java import as_long
from nodes.protocol.model import Message
from nodes.protocol.names import SYSTEM_TOPIC_PREFIX
from nodes.protocol.properties import (
    DELAY_TIME_LEVEL,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
)
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.widths import int64_of
from nodes.values import frozen

TIMER_TOPIC = f"{SYSTEM_TOPIC_PREFIX}wheel_timer"
MAGIC_DEFAULT = 1
MAGIC_ROLL = 2
MAGIC_DELETE = 4
ASKING = frozenset((TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS))
"""How a message asks for a time."""
NEVER_ENQUEUED = LONG_MAX
"""Time of entry of a message that was due before it could enter the wheel."""
_VISIBLE = (MessageSysFlag.TRANSACTION_NOT_TYPE, MessageSysFlag.TRANSACTION_COMMIT_TYPE)


def admit_timer_message(
    message: Message, now_ms: int, options: TimerConfig, is_reject: Callable[[int], bool]
) -> Message | PutMessageStatus:
    """A message as it is stored: in the topic of the timer if its time is still to come.

    Args:
        is_reject: whether the slot of an instant is congested.

    Returns:
        The message, or the reason for a refusal.
    """
    flag = message.sys_flag
    if message.topic == TIMER_TOPIC or (flag and MessageSysFlag.transaction_value(flag) not in _VISIBLE):
        return message
    if DELAY_TIME_LEVEL in message.properties and delay_level(message) > 0:
        retained = {name: value for name, value in message.properties.items() if name not in ASKING}
        return message._replace(properties=retained)
    if TIMER_OUT_MS in message.properties or ASKING.isdisjoint(message.properties):
        return message
    if not options.timer_wheel_enable:
        return PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
    try:
        return _placed(message, requested_ms(message, now_ms), now_ms, options, is_reject)
    except ValueError:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL


def _placed(
    message: Message, deliver_ms: int, now_ms: int, options: TimerConfig, is_reject: Callable[[int], bool]
) -> Message | PutMessageStatus:
    if deliver_ms <= now_ms and TIMER_DEL_UNIQKEY not in message.properties:
        return message
    if not 0 < deliver_ms - now_ms <= options.timer_max_delay_sec * 1000:
        return PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
    slot_ms = slot_of(deliver_ms, options.precision_ms)
    if is_reject(slot_ms):
        return PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL
    added = {TIMER_OUT_MS: str(slot_ms), REAL_TOPIC: message.topic, REAL_QUEUE_ID: str(message.queue_id)}
    return message._replace(topic=TIMER_TOPIC, queue_id=0, properties={**message.properties, **added})


def slot_of(deliver_ms: int, precision_ms: int) -> int:
    """The slot that is released at an instant or less than a unit after it: a full unit goes one slot earlier."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def requested_ms(message: Message, now_ms: int) -> int:
    """The instant for which a message asks.

    Raises:
        ValueError: what it says is no number.
    """
    properties = message.properties
    if TIMER_DELAY_SEC in properties:
        return as_long(now_ms + int64_of(properties[TIMER_DELAY_SEC]) * 1000)
    if TIMER_DELAY_MS in properties:
        return as_long(now_ms + int64_of(properties[TIMER_DELAY_MS]))
    return int64_of(properties[TIMER_DELIVER_MS])


def is_congested(num: int, congest_num_each_slot: int, drawn: int) -> bool:
    """Whether a slot takes no more messages.

    Args:
        num: messages in the slot.
        congest_num_each_slot: up to so many always enter, and from twice as many on none.
        drawn: 0 to 999, by chance. Between the two limits it decides with a bias to the wrong side: a slot that is
            just above the first one refuses nearly all.
    """
    if num <= congest_num_each_slot:
        return False
    if num >= congest_num_each_slot * 2:
        return True
    # RocketMQ divides by the limit and a tenth.
    return drawn * (congest_num_each_slot * 10 + 1) > 10_000 * (num - congest_num_each_slot)


@frozen
class Enqueued:
    """Where a timed message enters the wheel."""

    slot_ms: int
    magic: int

    @property
    def delta(self) -> int:
        """By how much the count of its slot and of its topic changes."""
        return -1 if self.magic & MAGIC_DELETE else 1


def place_in_wheel(
    slot_ms: int, write_time_ms: int, *, is_delete: bool, roll_window_slots: int, precision_ms: int
) -> Enqueued:
    """The slot of a timed message; one further away than the window enters a nearer one, and is put again then.

    Mirrors:
        `TimerMessageStore#doEnqueue`.
    """
    window_ms = roll_window_slots * precision_ms
    beyond_ms = slot_ms - write_time_ms - window_ms
    magic = MAGIC_DEFAULT | (MAGIC_DELETE if is_delete else 0)
    if beyond_ms < 0:
        return Enqueued(slot_ms, magic)
    half = beyond_ms < roll_window_slots // 3 * precision_ms
    return Enqueued(write_time_ms + (roll_window_slots // 2 * precision_ms if half else window_ms), magic | MAGIC_ROLL)


def build_delete_key(real_topic: str, unique_key: str) -> str:
    """How a delete names its target; it finds it only in the slot in which both are."""
    return f"{real_topic}+{unique_key}"


class PutOutcome(Enum):
    """What becomes of a message that was put at its time."""

    DONE = auto()
    RETRY = auto()
    HOLD = auto()
    """Put again, but for an unknown reason a moment later."""
    DROP = auto()


def put_outcome(status: PutMessageStatus | None, *, skip_unknown_error: bool = False) -> PutOutcome:
    """What a delivery does next; a message that was stored softly is put again, so that there are copies.

    Args:
        status: None: the put failed before there was one.
        skip_unknown_error: option `timerSkipUnknownError`.
    """
    match status:
        case PutMessageStatus.PUT_OK:
            return PutOutcome.DONE
        case (
            PutMessageStatus.MESSAGE_ILLEGAL
            | PutMessageStatus.PROPERTIES_SIZE_EXCEEDED
            | PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
            | PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
        ):
            return PutOutcome.DROP
        case (
            None
            | PutMessageStatus.SERVICE_NOT_AVAILABLE
            | PutMessageStatus.OS_PAGE_CACHE_BUSY
            | PutMessageStatus.CREATE_MAPPED_FILE_FAILED
            | PutMessageStatus.FLUSH_DISK_TIMEOUT
            | PutMessageStatus.FLUSH_SLAVE_TIMEOUT
            | PutMessageStatus.SLAVE_NOT_AVAILABLE
        ):
            return PutOutcome.RETRY
        case _:
            return PutOutcome.DROP if skip_unknown_error else PutOutcome.HOLD
