"""Consumed offsets of a consumer in memory, which may not be committed yet.

Mirrors:
    `org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore`, its memory.
"""

from collections.abc import Iterable, Mapping

import attrs

from nodes.protocol.model import MessageQueue

NO_OFFSET = -1


@attrs.define
class _ControllableOffset:
    offset: int
    frozen: bool = False


class OffsetTable:
    """Queue -> offset, in memory."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, _ControllableOffset] = {}

    @property
    def offsets(self) -> Mapping[MessageQueue, int]:
        """A copy of the table, sorted by queue."""
        return {queue: self._offsets[queue].offset for queue in sorted(self._offsets)}

    def __contains__(self, queue: MessageQueue) -> bool:
        return queue in self._offsets

    def read(self, queue: MessageQueue) -> int:
        """The offset of a queue, -1 if there is none."""
        entry = self._offsets.get(queue)
        return entry.offset if entry else NO_OFFSET

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Set an offset, unless the present one is frozen, or larger and `increase_only` is set."""
        entry = self._offsets.get(queue)
        if entry is None:
            self._offsets[queue] = _ControllableOffset(offset)
        elif not entry.frozen:
            entry.offset = max(entry.offset, offset) if increase_only else offset

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that the broker has corrected; until it is removed only another freeze changes it."""
        self._offsets[queue] = _ControllableOffset(offset, frozen=True)

    def remove(self, queue: MessageQueue) -> None:
        """Forget a queue."""
        self._offsets.pop(queue, None)

    def take_for_persist_all(self, queues: Iterable[MessageQueue]) -> tuple[tuple[MessageQueue, int], ...]:
        """The offsets for a periodic commit.

        Args:
            queues: the process queue table; if it is empty, nothing is committed or removed.

        Returns:
            The offsets to commit, sorted by queue; entries of other queues are removed.
        """
        owned = dict.fromkeys(queues)
        if not owned:
            return ()
        for queue in [queue for queue in self._offsets if queue not in owned]:
            del self._offsets[queue]
        return tuple(self.offsets.items())
