"""Records of pops in memory: what is acknowledged soon never reaches the database.

Mirrors:
    `org.apache.rocketmq.broker.pop.PopConsumerCache`.
"""

from collections.abc import Callable, Iterable, Mapping

from nodes.broker.tables.clients.consumer_offsets import NO_OFFSET
from nodes.broker.tables.pop.consumer_records import PopConsumerRecord
from nodes.values import frozen

QueueKey = tuple[str, str, int]
"""Group, topic and queue id."""


@frozen
class LeftCache:
    """What leaves memory for one queue."""

    queue: QueueKey
    to_store: tuple[PopConsumerRecord, ...]
    to_revive: tuple[PopConsumerRecord, ...] = ()
    """Their time is over."""
    commit: int = NO_OFFSET
    """The offset to commit: of the first message that is left."""


class PopConsumerCache:
    """The records of one broker that are not in its database yet; a stop loses them.

    Args:
        stay_ms: how long a record stays at most.
        max_size: with more records than this it takes none.
    """

    def __init__(self, *, stay_ms: int, max_size: int) -> None:
        self._stay_ms = stay_ms
        self._max_size = max_size
        self._size = 0
        self._queues: dict[QueueKey, dict[int, PopConsumerRecord]] = {}

    @property
    def queues(self) -> Mapping[QueueKey, Mapping[int, PopConsumerRecord]]:
        """Queue -> offset -> record; queues without records are left out."""
        return self._queues

    @property
    def is_full(self) -> bool:
        """Whether it takes no more records."""
        return self._size > self._max_size

    def min_offset(self, group: str, topic: str, queue_id: int) -> int:
        """Offset of the first message in memory; -1 if there is none."""
        return min(self._queues.get((group, topic, queue_id), ()), default=NO_OFFSET)

    def in_flight(self, group: str, topic: str, queue_id: int) -> int:
        """Messages of a queue in memory."""
        return len(self._queues.get((group, topic, queue_id), ()))

    def write_records(self, records: Iterable[PopConsumerRecord]) -> None:
        """Keep records; one of the same message is replaced."""
        for record in records:
            self._queues.setdefault(_queue(record), {})[record.offset] = record
            self._size += 1

    def delete_record(self, record: PopConsumerRecord) -> bool:
        """Forget the record of a message, whatever its times; returns whether there was one."""
        records = self._queues.get(_queue(record), {})
        if records.pop(record.offset, None) is None:
            return False
        self._size -= 1
        if not records:
            del self._queues[_queue(record)]
        return True

    def remove_records(self, group: str, topic: str, queue_id: int) -> None:
        """Forget a queue; the size is corrected with the next clean-up."""
        self._queues.pop((group, topic, queue_id), None)

    def cleanup_records(self, now_ms: int, is_offline: Callable[[str, str], bool]) -> tuple[LeftCache, ...]:
        """Take out what was in memory long enough, or is visible again.

        Args:
            now_ms: wall clock of the broker.
            is_offline: whether a group has not popped a topic lately: then all its records go to the database.
        """
        left = tuple(self._clean(queue, now_ms, is_offline) for queue in tuple(self._queues))
        self._size = sum(map(len, self._queues.values()))
        return left

    def _clean(self, queue: QueueKey, now_ms: int, is_offline: Callable[[str, str], bool]) -> LeftCache:
        group, topic, queue_id = queue
        records = self._queues[queue]
        if is_offline(group, topic):
            del self._queues[queue]
            return LeftCache(queue, tuple(records[offset] for offset in sorted(records)))
        expired = [records.pop(offset) for offset in sorted(records) if self._is_expired(records[offset], now_ms)]
        if not records:
            del self._queues[queue]
        return LeftCache(
            queue,
            tuple(record for record in expired if record.visibility_timeout_ms > now_ms),
            tuple(record for record in expired if record.visibility_timeout_ms <= now_ms),
            self.min_offset(group, topic, queue_id),
        )

    def _is_expired(self, record: PopConsumerRecord, now_ms: int) -> bool:
        return min(record.visibility_timeout_ms, record.pop_time_ms + self._stay_ms) <= now_ms


def _queue(record: PopConsumerRecord) -> QueueKey:
    return record.group, record.topic, record.queue_id
