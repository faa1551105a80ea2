"""The timer log, and how many timed messages each topic has.

Mirrors:
    `org.apache.rocketmq.store.timer.TimerLog`, `TimerMetrics`.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

from nodes.protocol.bodies import TimerMetric, TimerMetricsSerializeWrapper
from nodes.protocol.java import as_int
from nodes.protocol.json_text import data_version_of, from_json, to_json
from nodes.protocol.model import DataVersion
from nodes.protocol.names import LMQ_PREFIX, SYSTEM_TOPIC_PREFIX
from nodes.values import frozen

UNIT_SIZE = 52
"""Bytes of a record."""
_BLANK_SIZE = 16
_UNIT = struct.Struct(">iqiqiqiiq")
_UNUSED = 0
"""In place of the hash of a topic, which only repairs counts, and of a reserved field."""


class TimerLogPositions:
    """Where records stand: a file ends with a filler, which takes whatever a record and a filler do not fit into."""

    def __init__(self, *, file_size: int = 100 * 1024 * 1024) -> None:
        self._file_size = file_size
        self.end = 0

    def append(self, size: int = UNIT_SIZE) -> int:
        """The position of the next record."""
        left = self._file_size - self.end % self._file_size
        if size + _BLANK_SIZE > left:
            self.end += left
        position = self.end
        self.end += size
        return position


@frozen
class TimerRecord:
    """A timed message in the timer log."""

    prev_pos: int
    """Where the record before it in the same slot stands, or -1."""
    magic: int
    write_time_ms: int
    """When it was written: write time of the wheel."""
    slot_ms: int
    offset: int
    """Of the message in the commit log."""
    size: int
    """Of the message."""


class TimerLog:
    """The records of one broker, in the bytes of RocketMQ.

    Args:
        records: content of the file, to which this log alone appends; files follow each other in it.
    """

    def __init__(self, records: bytearray, *, file_size: int) -> None:
        self._records = records
        self._positions = TimerLogPositions(file_size=file_size)
        self.last_pos: int | None = None
        """Where the newest record stands."""

    def load(self) -> Iterator[tuple[int, TimerRecord]]:
        """Find the records of an earlier process; returns each with its position."""
        while True:
            position = self._positions.append()
            if position + UNIT_SIZE > len(self._records):
                self._positions.end = position
                return
            self.last_pos = position
            yield position, self.record(position)

    def append(self, record: TimerRecord) -> int:
        """Append a record; returns its position."""
        position = self.last_pos = self._positions.append()
        self._records += bytes(position - len(self._records))
        delay_ms = as_int(record.slot_ms - record.write_time_ms)
        self._records += _UNIT.pack(
            UNIT_SIZE,
            record.prev_pos,
            record.magic,
            record.write_time_ms,
            delay_ms,
            record.offset,
            record.size,
            _UNUSED,
            _UNUSED,
        )
        return position

    def record(self, position: int) -> TimerRecord:
        """The record at a position."""
        _, prev_pos, magic, write_time_ms, delay_ms, offset, size, _, _ = _UNIT.unpack_from(self._records, position)
        return TimerRecord(prev_pos, magic, write_time_ms, write_time_ms + delay_ms, offset, size)

    @property
    def end(self) -> int:
        """Bytes of all records."""
        return len(self._records)


class TimerMetrics:
    """Timed messages that wait, by their real topic; a delete subtracts one whether it finds its target or not."""

    def __init__(self, *, now_ms: int) -> None:
        self._timing_count: dict[str, TimerMetric] = {}
        self.data_version = DataVersion(timestamp=now_ms)

    @property
    def timing_count(self) -> Mapping[str, TimerMetric]:
        """Topic -> its messages, which may be less than none."""
        return self._timing_count

    def add_and_get(self, real_topic: str, value: int, now_ms: int) -> int:
        """Count messages of a topic."""
        found = self._timing_count.get(real_topic)
        count = value + (found.count if found else 0)
        self._timing_count[real_topic] = TimerMetric(count, now_ms)
        self.data_version = self.data_version.next_version(now_ms, 0)
        return count

    def clean_metrics(self, topics: Sequence[str]) -> None:
        """Forget topics that do not exist; without any topic nothing happens."""
        if not topics:
            return
        retained = (SYSTEM_TOPIC_PREFIX, LMQ_PREFIX)
        self._timing_count = {
            topic: found for topic, found in self._timing_count.items() if topic in topics or topic.startswith(retained)
        }

    def adopt(self, other: TimerMetricsSerializeWrapper) -> bool:
        """Take over another broker's counts and version, unless the versions are equal; returns whether it did.

        Raises:
            VersionWithoutCounterError: its version has no counter.
        """
        if other.data_version == self.data_version:
            return False
        self.data_version = self.data_version.assign_new_one(other.data_version)
        self._timing_count = dict(other.timing_count)
        return True

    def wrapper(self) -> TimerMetricsSerializeWrapper:
        """All counts with their version."""
        return TimerMetricsSerializeWrapper(dict(self._timing_count), self.data_version)

    def decode(self, content: bytes, *, now_ms: int) -> None:
        """Read the file `timermetrics`.

        Raises:
            ValueError: the file is damaged.
        """
        loaded = from_json(content.decode())
        for topic, found in loaded.get("timingCount", {}).items():
            self._timing_count[topic] = TimerMetric(int(found["count"]), int(found["timeStamp"]))
        self.data_version = data_version_of(loaded.get("dataVersion") or {}, now_ms=now_ms)


def encode_timer_metrics(metrics: TimerMetricsSerializeWrapper) -> bytes:
    """The file `timermetrics`."""
    return to_json(metrics, standard=True).encode()
