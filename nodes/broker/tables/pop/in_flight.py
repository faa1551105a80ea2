"""How many popped messages of a queue are neither acknowledged nor revived, as far as this process has counted.

Mirrors:
    `org.apache.rocketmq.broker.processor.PopInflightMessageCounter`.
"""

from collections.abc import Mapping

_SEPARATOR = "@"


class PopInflightMessageCounter:
    """The counters of one broker, in memory only.

    Args:
        should_start_ms: pops before this time were counted by an earlier process, so they are not subtracted.
    """

    def __init__(self, *, should_start_ms: int = 0) -> None:
        self._should_start_ms = should_start_ms
        self._counts: dict[str, dict[int, int]] = {}

    @property
    def counts(self) -> Mapping[str, Mapping[int, int]]:
        """`topic@group` -> queue id -> messages."""
        return self._counts

    def get(self, topic: str, group: str, queue_id: int) -> int:
        """Messages of a queue in flight."""
        return self._counts.get(_key(topic, group), {}).get(queue_id, 0)

    def increment(self, topic: str, group: str, queue_id: int, count: int) -> None:
        """So many were popped."""
        if count > 0:
            queues = self._counts.setdefault(_key(topic, group), {})
            queues[queue_id] = queues.get(queue_id, 0) + count

    def decrement(self, topic: str, group: str, queue_id: int, pop_time_ms: int, count: int = 1) -> None:
        """So many were acknowledged or revived; no one checks whether they were before, so 0 is the least."""
        key = _key(topic, group)
        if pop_time_ms < self._should_start_ms or key not in self._counts:
            return
        queues = self._counts[key]
        if queue_id in queues:
            queues[queue_id] -= count
            if queues[queue_id] <= 0:
                del queues[queue_id]
        self._drop_if_empty(key)

    def clear_queue(self, topic: str, group: str, queue_id: int) -> None:
        """Forget a queue."""
        key = _key(topic, group)
        self._counts.get(key, {}).pop(queue_id, None)
        self._drop_if_empty(key)

    def clear_group(self, group: str) -> None:
        """Forget a group."""
        self._forget(1, group)

    def clear_topic(self, topic: str) -> None:
        """Forget a topic; its retry topics are topics of their own."""
        self._forget(0, topic)

    def _forget(self, place: int, name: str) -> None:
        for key in list(self._counts):
            named = key.split(_SEPARATOR)
            if len(named) == 2 and named[place] == name:
                del self._counts[key]

    def _drop_if_empty(self, key: str) -> None:
        if not self._counts.get(key, True):
            del self._counts[key]


def _key(topic: str, group: str) -> str:
    return f"{topic}{_SEPARATOR}{group}"
