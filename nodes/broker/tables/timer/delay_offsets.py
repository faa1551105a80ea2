"""Progress of delayed messages: the offset of each delay level, and the check point of the timer.

Mirrors:
    `org.apache.rocketmq.broker.schedule.ScheduleMessageService`, its table of offsets;
    `org.apache.rocketmq.store.timer.TimerCheckpoint`.
"""

import struct
from collections.abc import Mapping

import attrs

from nodes.protocol.bodies import DelayOffsetSerializeWrapper
from nodes.protocol.errors import ProtocolError
from nodes.protocol.json_text import data_version_of, from_json, to_json
from nodes.protocol.model import DataVersion
from nodes.values import frozen

_CHECK_POINT = struct.Struct(">7q")
_WITHOUT_VERSION = struct.Struct(">4q")


class DelayOffsets:
    """The delay levels of one broker."""

    def __init__(self, *, now_ms: int, delay_offset_update_version_step: int = 200) -> None:
        self._step = delay_offset_update_version_step
        self._offsets: dict[int, int] = {}
        self._updates = 0
        self.data_version = DataVersion(timestamp=now_ms)
        """Incremented with every n-th update since the start of the process, over all levels."""

    @property
    def offsets(self) -> Mapping[int, int]:
        """Delay level -> next offset of its queue to deliver."""
        return self._offsets

    def update_offset(self, level: int, offset: int, *, now_ms: int, state_version: int = 0) -> None:
        """Set the offset of a level; an unchanged one counts as an update, too."""
        self._offsets[level] = offset
        self._updates += 1
        if self._updates % self._step == 0:
            self.data_version = self.data_version.next_version(now_ms, state_version)

    def correct_offset(self, level: int, offset: int) -> None:
        """Correct the offset of a level; this does not count as an update."""
        self._offsets[level] = offset

    def put_all(self, other: DelayOffsetSerializeWrapper) -> None:
        """Adopt the offsets and the version of another broker; levels that it lacks stay.

        Raises:
            VersionWithoutCounterError: its version has no counter; the levels are adopted.
        """
        self._offsets.update(other.offset_table)
        self.data_version = self.data_version.assign_new_one(other.data_version)

    def wrapper(self) -> DelayOffsetSerializeWrapper:
        """All levels with their version."""
        return DelayOffsetSerializeWrapper(dict(self._offsets), self.data_version)

    def decode(self, content: bytes, *, now_ms: int) -> None:
        """Read the file `delayOffset.json`.

        Raises:
            ValueError: the file is damaged.
        """
        loaded = from_json(content.decode())
        offsets = {int(level): int(offset) for level, offset in loaded.get("offsetTable", {}).items()}
        self.put_all(
            DelayOffsetSerializeWrapper(offsets, data_version_of(loaded.get("dataVersion") or {}, now_ms=now_ms))
        )


def encode_delay_offsets(offsets: DelayOffsetSerializeWrapper) -> bytes:
    """The file `delayOffset.json`."""
    return to_json(offsets, standard=True).encode()


@frozen
class TimerCheckPoint:
    """Progress of a timer; encoded as seven numbers of eight bytes."""

    last_read_time_ms: int = 0
    """Up to this time it has delivered messages."""
    last_timer_log_flush_pos: int = 0
    last_timer_queue_offset: int = 0
    """Next message of the timer's topic to read."""
    master_timer_queue_offset: int = 0
    """The same at the master."""
    data_version: DataVersion = DataVersion()

    def encode(self) -> bytes:
        """Its 56 bytes."""
        version = self.data_version
        return _CHECK_POINT.pack(
            self.last_read_time_ms,
            self.last_timer_log_flush_pos,
            self.last_timer_queue_offset,
            self.master_timer_queue_offset,
            version.state_version,
            version.timestamp,
            version.counter or 0,
        )

    @classmethod
    def decode(cls, content: bytes | None) -> "TimerCheckPoint":
        """Read 56 bytes, or the 32 of an old release, which has no version.

        Raises:
            ProtocolError: they are more or fewer.
        """
        if content is not None and len(content) == _WITHOUT_VERSION.size:
            return cls(*_WITHOUT_VERSION.unpack(content))
        try:
            read, flushed, taken, masters, *version = _CHECK_POINT.unpack(content or b"")
        except struct.error as error:
            raise ProtocolError(f"a timer check point has {_CHECK_POINT.size} bytes: {error}") from error
        return cls(read, flushed, taken, masters, DataVersion(*version))


@attrs.define
class TimerProgress:
    """The timer of a broker, as far as other brokers copy it."""

    check_point: TimerCheckPoint
    should_running_dequeue: bool = False
    """Whether this broker delivers timed messages; if so, it copies no check point."""

    def move(self, read_time_ms: int) -> None:
        """Move the read time of the check point; the rest stays, and so does its version."""
        self.check_point = attrs.evolve(self.check_point, last_read_time_ms=read_time_ms)

    def follow(self, other: TimerCheckPoint) -> None:
        """Adopt another broker's check point, except for what concerns its own files."""
        self.check_point = attrs.evolve(
            self.check_point,
            last_read_time_ms=other.last_read_time_ms,
            master_timer_queue_offset=other.master_timer_queue_offset,
            data_version=self.check_point.data_version.assign_new_one(other.data_version),
        )
