"""Delay levels: how the option is read, and how a message is stored in a level and restored from it."""

from collections.abc import Mapping

from nodes.protocol.model import Message
from nodes.protocol.names import SCHEDULE_TOPIC
from nodes.protocol.properties import DELAY_TIME_LEVEL, REAL_QUEUE_ID, REAL_TOPIC, TIMER_DELAY_SEC, TIMER_DELIVER_MS
from nodes.values import frozen

_UNIT_MS: Mapping[str, int] = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS = 1_000


@frozen
class DelayLevels:
    """The levels of a broker, counted from 1.

    Mirrors:
        `org.apache.rocketmq.broker.schedule.ScheduleMessageService`, `HookUtils#transformDelayLevelMessage`.
    """

    delays_ms: Mapping[int, int]
    max_level: int
    """The highest level that was read; a higher level of a message counts as this one."""
    valid: bool = True
    """False: the option was malformed after these levels."""

    def compute_deliver_timestamp(self, level: int, store_timestamp: int) -> int:
        """When a message is due; an unknown level means one second."""
        return store_timestamp + self.delays_ms.get(level, _UNKNOWN_LEVEL_MS)

    def correct_deliver_timestamp(self, level: int, deliver_timestamp: int, now_ms: int) -> int:
        """When a message is delivered: now if it would wait longer than its whole level, as after a clock jump."""
        return now_ms if deliver_timestamp > now_ms + self.delays_ms[level] else deliver_timestamp

    def put_aside(self, message: Message) -> Message:
        """The message as it is stored in its level; a message without level is unchanged."""
        level = delay_level(message) if DELAY_TIME_LEVEL in message.properties else 0
        if level <= 0:
            return message
        level = min(level, self.max_level)
        properties = {
            **message.properties,
            DELAY_TIME_LEVEL: str(level),
            REAL_TOPIC: message.topic,
            REAL_QUEUE_ID: str(message.queue_id),
        }
        return message._replace(topic=SCHEDULE_TOPIC, queue_id=queue_id_of(level), properties=properties)


def parse_delay_level(text: str) -> DelayLevels:
    """Read levels such as `1s 5s 10m`; the first malformed one ends the list.

    Mirrors:
        `ScheduleMessageService#parseDelayLevel`.
    """
    delays_ms: dict[int, int] = {}
    max_level = 0
    for level, value in enumerate(text.rstrip(" ").split(" "), 1):
        if not value:
            return DelayLevels(delays_ms, max_level, valid=False)
        max_level = level
        number, unit = value[:-1], _UNIT_MS.get(value[-1])
        if unit is None or not number.removeprefix("-").removeprefix("+").isdecimal():
            return DelayLevels(delays_ms, max_level, valid=False)
        delays_ms[level] = unit * int(number)
    return DelayLevels(delays_ms, max_level)


def delay_level(message: Message) -> int:
    """The delay level of a message; 0: none."""
    text = message.properties.get(DELAY_TIME_LEVEL)
    return int(text) if text is not None and text.isdecimal() else 0


def level_of(queue_id: int) -> int:
    """The level of a queue."""
    return queue_id + 1


def queue_id_of(level: int) -> int:
    """The queue of a level."""
    return level - 1


def take_out(waiting: Message) -> Message:
    """A message that is due, restored for its real topic and queue; it keeps the property of its level.

    Mirrors:
        `ScheduleMessageService#messageTimeUp`.
    """
    dropped = (TIMER_DELIVER_MS, TIMER_DELAY_SEC)
    properties = {name: value for name, value in waiting.properties.items() if name not in dropped}
    return waiting._replace(
        topic=properties[REAL_TOPIC],
        queue_id=int(properties[REAL_QUEUE_ID]),
        properties=properties,
    )
