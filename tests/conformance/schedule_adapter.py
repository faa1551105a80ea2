"""Family schedule: delay levels and their offsets, and how long a half message is immune."""

import json

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS, shown_version
from nodes.broker.tables.store.transaction_messages import get_immunity_time
from nodes.broker.tables.timer.delay_levels import level_of, parse_delay_level, queue_id_of
from nodes.broker.tables.timer.delay_offsets import DelayOffsets, encode_delay_offsets


class Schedule(Adapter):
    def __init__(self, message_delay_level="1s", delay_offset_update_version_step=200):
        self.levels = parse_delay_level(message_delay_level)
        self.offsets = DelayOffsets(now_ms=ORIGIN_MS, delay_offset_update_version_step=delay_offset_update_version_step)

    def parse_delay_level(self):
        table = {str(level): delay_ms for level, delay_ms in self.levels.delays_ms.items()}
        return {"result": self.levels.valid, "table": table, "maxDelayLevel": self.levels.max_level}

    def compute_deliver_timestamp(self, delay_level, store_timestamp):
        return {"result": self.levels.compute_deliver_timestamp(delay_level, store_timestamp)}

    def correct_deliver_timestamp(self, delay_level, now, deliver_timestamp):
        try:
            return {"result": self.levels.correct_deliver_timestamp(delay_level, deliver_timestamp, now)}
        except KeyError:  # asked about by nobody: a level without a thread of its own is never delivered
            return {"error": "NullPointerException"}

    def update_offset(self, delay_level, offset):
        self.offsets.update_offset(delay_level, offset, now_ms=ORIGIN_MS + self.at_ms)
        return {
            "offsetTable": {str(level): self.offsets.offsets[level] for level in sorted(self.offsets.offsets)},
            "dataVersion": shown_version(self.offsets.data_version),
        }

    def encode(self):
        written = json.loads(encode_delay_offsets(self.offsets.wrapper()))
        written["dataVersion"]["timestamp"] = shown_version(self.offsets.data_version)[1]
        return {"json": written}

    def queue_id2_delay_level(self, queue_id):
        level = level_of(queue_id)
        return {"delayLevel": level, "back": queue_id_of(level)}

    def get_immunity_time(self, check_immunity_time, transaction_timeout):
        return {"result": get_immunity_time(check_immunity_time, transaction_timeout)}
