"""Family timer_admit: `HookUtils#handleScheduleMessage`."""

import re

from conformance.executing import Adapter
from conformance.revive_log import ORIGIN_MS
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.broker.tables.timer.timer_messages import admit_timer_message
from nodes.config.timer import TimerConfig
from nodes.protocol.model import Message
from nodes.protocol.sys_flags import MessageSysFlag

LEVELS = parse_delay_level("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
PREPARED = MessageSysFlag.TRANSACTION_PREPARED_TYPE
TAKEN = re.compile(r"now\+(-?\d+)")


class TimerAdmit(Adapter):
    def __init__(self, timer_wheel_enable=True, timer_precision_ms=1000, timer_max_delay_sec=259_200, reject=False):
        self.options = TimerConfig(
            timer_wheel_enable=timer_wheel_enable,
            timer_precision_ms=timer_precision_ms,
            timer_max_delay_sec=timer_max_delay_sec,
        )
        self.reject = reject

    def handle_schedule_message(self, topic, queue_id, sys_flag, **properties):
        given = {
            name.upper(): TAKEN.sub(lambda found: str(ORIGIN_MS + int(found[1])), text)
            for name, text in properties.items()
        }
        message = Message(topic, queue_id, 0, 0, 0, 0, b"", given, sys_flag=sys_flag)
        found = admit_timer_message(message, ORIGIN_MS + self.at_ms, self.options, lambda _: self.reject)
        refused = found if isinstance(found, PutMessageStatus) else None
        # A half message has no level yet.
        stored = message if refused or sys_flag == PREPARED else LEVELS.put_aside(found)
        shown = {name: reported(text) for name, text in stored.properties.items()}
        return {"refused": refused, "topic": stored.topic, "queueId": stored.queue_id, "properties": shown}


def reported(text):
    return f"now+{int(text) - ORIGIN_MS}" if text.isdecimal() and int(text) >= ORIGIN_MS else text
