"""Delay levels: what the levels of a configuration mean, and how a message is put aside and taken out again."""

from collections.abc import Mapping

import attrs

from nodes.broker.topics import SCHEDULE_TOPIC
from nodes.protocol.model import Message
from nodes.protocol.properties import DELAY_TIME_LEVEL, REAL_QUEUE_ID, REAL_TOPIC, TIMER_DELAY_SEC, TIMER_DELIVER_MS

_UNIT_MS: Mapping[str, int] = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS = 1_000


@attrs.frozen
class DelayLevels:
    """The levels of a broker, counted from 1.

    Mirrors:
        `org.apache.rocketmq.broker.schedule.ScheduleMessageService`, `HookUtils#transformDelayLevelMessage`.
    """

    delays_ms: Mapping[int, int]
    max_level: int
    """The highest level that was looked at; a higher one of a message counts as this."""
    valid: bool = True
    """False: the configuration could be read only so far."""

    def compute_deliver_timestamp(self, level: int, store_timestamp: int) -> int:
        """When a message is due; an unknown level means a second."""
        return store_timestamp + self.delays_ms.get(level, _UNKNOWN_LEVEL_MS)

    def correct_deliver_timestamp(self, level: int, deliver_timestamp: int, now_ms: int) -> int:
        """When it is delivered: now, where it would wait longer than its whole level, as after a jump of the clock."""
        return now_ms if deliver_timestamp > now_ms + self.delays_ms[level] else deliver_timestamp

    def put_aside(self, message: Message) -> Message:
        """The message as it waits; one without a level stays as it is."""
        level = delay_level(message)
        if level <= 0:
            return message
        level = min(level, self.max_level)
        properties = {
            **message.properties,
            DELAY_TIME_LEVEL: str(level),
            REAL_TOPIC: message.topic,
            REAL_QUEUE_ID: str(message.queue_id),
        }
        return attrs.evolve(message, topic=SCHEDULE_TOPIC, queue_id=queue_id_of(level), properties=properties)


def parse_delay_level(text: str) -> DelayLevels:
    """Read levels such as `1s 5s 10m`; from the first one on that is none, the rest is not looked at.

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
    """The level that a message asks for; 0: none."""
    text = message.properties.get(DELAY_TIME_LEVEL, "0")
    return int(text) if text.isdecimal() else 0


def level_of(queue_id: int) -> int:
    """The level that waits in a queue."""
    return queue_id + 1


def queue_id_of(level: int) -> int:
    """The queue in which a level waits."""
    return level - 1


def take_out(waiting: Message) -> Message:
    """The message that is due, for the topic and queue that it was sent to; it still says how long it has waited.

    Mirrors:
        `ScheduleMessageService#messageTimeUp`.
    """
    dropped = (TIMER_DELIVER_MS, TIMER_DELAY_SEC)
    properties = {name: value for name, value in waiting.properties.items() if name not in dropped}
    return attrs.evolve(
        waiting,
        topic=properties[REAL_TOPIC],
        queue_id=int(properties[REAL_QUEUE_ID]),
        properties=properties,
    )
