"""Records of pops in a database: one per message, in the order in which the messages are visible again.

RocketMQ keeps them in RocksDB; here a sorted map takes its place, and one file that is written whole.

Mirrors:
    `org.apache.rocketmq.broker.pop.PopConsumerRecord`, `PopConsumerRocksdbStore`.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable

import attrs

from nodes.protocol.extra_info import RetryMark
from nodes.protocol.json_text import from_json
from nodes.values import frozen

REWRITE_INTERVALS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""How much longer a message stays hidden after each revival that failed; after the last one it is given up."""
_LONG_BYTES, _INT_BYTES = 8, 4
_SEPARATOR = b"@"


@frozen
class PopConsumerRecord:
    """One message that was popped and not acknowledged."""

    pop_time_ms: int
    group: str
    topic: str
    """The retry topic, if it was popped from there."""
    queue_id: int
    retry_flag: RetryMark
    """What the topic is, as far as known: a record that follows a change of the invisible time says `NORMAL`."""
    invisible_time_ms: int
    offset: int
    attempt_times: int = 0
    """How often it could not be revived."""
    attempt_id: str | None = None

    @property
    def visibility_timeout_ms(self) -> int:
        """When the message may be popped again."""
        return self.pop_time_ms + self.invisible_time_ms

    @property
    def is_retry(self) -> bool:
        """Whether it was popped from a retry topic, as far as known."""
        return self.retry_flag is not RetryMark.NORMAL

    @property
    def key(self) -> bytes:
        """What stands for the record: an acknowledgement with another time deletes nothing."""
        names = (self.group.encode(), self.topic.encode(), _bytes_of(self.queue_id, _INT_BYTES))
        parts = (*names, _bytes_of(self.offset, _LONG_BYTES))
        return _bytes_of(self.visibility_timeout_ms, _LONG_BYTES) + _SEPARATOR.join(parts)

    def after_failure(self, now_ms: int) -> "PopConsumerRecord":
        """The record for the next try to revive the message.

        Raises:
            IndexError: there were more tries than the table has steps.
        """
        added_ms = REWRITE_INTERVALS_S[self.attempt_times] * 1000
        return attrs.evolve(
            self,
            pop_time_ms=now_ms,
            invisible_time_ms=self.invisible_time_ms + added_ms,
            attempt_times=self.attempt_times + 1,
        )


class PopConsumerStore:
    """All records of one broker, which it alone knows."""

    def __init__(self) -> None:
        self._records: dict[bytes, PopConsumerRecord] = {}
        self._keys: list[bytes] = []

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> tuple[PopConsumerRecord, ...]:
        """All records, the one that is visible first in front."""
        return tuple(map(self._records.__getitem__, self._keys))

    def write_records(self, records: Iterable[PopConsumerRecord]) -> None:
        """Write records; one with the same key is replaced."""
        for record in records:
            key = record.key
            if key not in self._records:
                self._keys.insert(bisect_left(self._keys, key), key)
            self._records[key] = record

    def delete_records(self, records: Iterable[PopConsumerRecord]) -> None:
        """Delete the records with the same keys; no answer says which of them there were."""
        for record in records:
            key = record.key
            if self._records.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    def scan_expired_records(self, lower_ms: int, upper_ms: int, max_count: int) -> tuple[PopConsumerRecord, ...]:
        """The first records that are visible from the lower instant on, and before the upper one."""
        first = bisect_left(self._keys, _bytes_of(lower_ms, _LONG_BYTES))
        end = bisect_left(self._keys, _bytes_of(upper_ms, _LONG_BYTES))
        return tuple(self._records[key] for key in self._keys[first : min(end, first + max_count)])


def encode_pop_records(records: Iterable[PopConsumerRecord]) -> bytes:
    """The file of the records, each as RocketMQ writes it."""
    return json.dumps([_fields(record) for record in records], ensure_ascii=False, separators=(",", ":")).encode()


def decode_pop_records(content: bytes) -> tuple[PopConsumerRecord, ...]:
    """The records in a file.

    Raises:
        ValueError: the file is damaged.
    """
    return tuple(
        PopConsumerRecord(
            read["popTime"],
            read["groupId"],
            read["topicId"],
            read["queueId"],
            RetryMark(str(read["retryFlag"])),
            read["invisibleTime"],
            read["offset"],
            read["attemptTimes"],
            read.get("attemptId"),
        )
        for read in from_json(content.decode())
    )


def _fields(record: PopConsumerRecord) -> dict[str, int | str]:
    fields: dict[str, int | str] = {
        "popTime": record.pop_time_ms,
        "groupId": record.group,
        "topicId": record.topic,
        "queueId": record.queue_id,
        "retryFlag": int(record.retry_flag),
        "invisibleTime": record.invisible_time_ms,
        "offset": record.offset,
        "attemptTimes": record.attempt_times,
    }
    return fields if record.attempt_id is None else {**fields, "attemptId": record.attempt_id}


def _bytes_of(number: int, size: int) -> bytes:
    """A number as Java writes it into a key: a negative one stands behind all others."""
    return (number & (1 << 8 * size) - 1).to_bytes(size)
