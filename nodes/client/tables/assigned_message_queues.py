"""Assigned queues of a lite pull consumer, with their pull and consume offsets."""

from collections.abc import Iterable, Mapping

import attrs

from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol.model import MessageQueue

NO_OFFSET = -1


@attrs.define(eq=False)
class AssignedQueue:
    """The state of an assigned queue."""

    process_queue: ProcessQueue
    pull_offset: int = NO_OFFSET
    """Offset of the next pull; -1: no pull so far."""
    consume_offset: int = NO_OFFSET
    """Offset to commit: after the last polled message; -1: no message was polled."""


class AssignedMessageQueues:
    """Queue -> state, for pulls and polls; the process queue table is that of the rebalance.

    Args:
        process_queues: the table of the rebalance.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.AssignedMessageQueue`.
    """

    def __init__(self, process_queues: Mapping[MessageQueue, ProcessQueue]) -> None:
        self._process_queues = process_queues
        self._assigned: dict[MessageQueue, AssignedQueue] = {}

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """All assigned queues, in the order of assignment."""
        return tuple(self._assigned)

    def get(self, queue: MessageQueue) -> AssignedQueue | None:
        """The state of a queue; None if it is not assigned."""
        return self._assigned.get(queue)

    def update(self, topic: str, queues: Iterable[MessageQueue], *, now_ms: int) -> None:
        """Set the assigned queues of a topic; queues that stay keep their state.

        An assigned queue that the rebalance could not add gets a process queue in this table only: it is pulled and
        polled, but not committed before the rebalance has added it.
        """
        wanted = dict.fromkeys(queues)
        for queue in [queue for queue in self._assigned if queue.topic == topic and queue not in wanted]:
            self._assigned.pop(queue).process_queue.dropped = True
        for queue in wanted:
            if queue not in self._assigned:
                shared = self._process_queues.get(queue)
                self._assigned[queue] = AssignedQueue(ProcessQueue(now_ms=now_ms) if shared is None else shared)

    def update_pull_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Set the offset of the next pull, unless the queue was removed or replaced meanwhile."""
        state = self._assigned.get(queue)
        if state is not None and state.process_queue is process_queue:
            state.pull_offset = offset
