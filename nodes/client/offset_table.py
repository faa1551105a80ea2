"""The offsets that a consumer has reached and the broker may not know yet.

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
        """A copy of the table, in the order of the queues."""
        return {queue: self._offsets[queue].offset for queue in sorted(self._offsets)}

    def __contains__(self, queue: MessageQueue) -> bool:
        return queue in self._offsets

    def read(self, queue: MessageQueue) -> int:
        """The offset in memory, -1 where there is none."""
        entry = self._offsets.get(queue)
        return entry.offset if entry else NO_OFFSET

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Set an offset, unless it is frozen, or smaller than the present one and may only grow."""
        entry = self._offsets.get(queue)
        if entry is None:
            self._offsets[queue] = _ControllableOffset(offset)
        elif not entry.frozen:
            entry.offset = max(entry.offset, offset) if increase_only else offset

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that only another freeze may change until it is removed: the broker corrected it."""
        self._offsets[queue] = _ControllableOffset(offset, frozen=True)

    def remove(self, queue: MessageQueue) -> None:
        """Forget a queue."""
        self._offsets.pop(queue, None)

    def take_for_persist_all(self, queues: Iterable[MessageQueue]) -> tuple[tuple[MessageQueue, int], ...]:
        """What the timer commits.

        Args:
            queues: the process queue table; if it is empty nothing happens at all.

        Returns:
            The offsets to send, in the order of the queues; entries of other queues are forgotten unsent.
        """
        owned = dict.fromkeys(queues)
        if not owned:
            return ()
        for queue in [queue for queue in self._offsets if queue not in owned]:
            del self._offsets[queue]
        return tuple(self.offsets.items())
