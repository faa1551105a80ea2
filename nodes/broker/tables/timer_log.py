"""Positions in the timer log, and how many timed messages each topic has.

Mirrors:
    `org.apache.rocketmq.store.timer.TimerLog`, `TimerMetrics`.
"""

from collections.abc import Mapping, Sequence

import attrs

from nodes.protocol.model import DataVersion
from nodes.protocol.names import LMQ_PREFIX, SYSTEM_TOPIC_PREFIX

UNIT_SIZE = 52
"""Bytes of a record."""
_BLANK_SIZE = 16


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

    @property
    def last_unit_in_file(self) -> int:
        """Where the last record of a full file stands."""
        usable = self._file_size - _BLANK_SIZE
        return usable - usable % UNIT_SIZE - UNIT_SIZE


@attrs.frozen
class Metric:
    """The timed messages of one topic."""

    count: int
    timestamp_ms: int


class TimerMetrics:
    """Timed messages that wait, by their real topic; a delete subtracts one whether it finds its target or not."""

    def __init__(self, *, now_ms: int) -> None:
        self._timing_count: dict[str, Metric] = {}
        self.data_version = DataVersion(timestamp=now_ms)

    @property
    def timing_count(self) -> Mapping[str, Metric]:
        """Topic -> its messages, which may be less than none."""
        return self._timing_count

    def add_and_get(self, real_topic: str, value: int, now_ms: int) -> int:
        """Count messages of a topic."""
        found = self._timing_count.get(real_topic)
        count = value + (found.count if found else 0)
        self._timing_count[real_topic] = Metric(count, now_ms)
        self.data_version = self.data_version.next_version(now_ms, 0)
        return count

    def clean_metrics(self, topics: Sequence[str]) -> None:
        """Forget topics that do not exist; without any topic nothing happens."""
        if not topics:
            return
        kept = (SYSTEM_TOPIC_PREFIX, LMQ_PREFIX)
        self._timing_count = {
            topic: found for topic, found in self._timing_count.items() if topic in topics or topic.startswith(kept)
        }
