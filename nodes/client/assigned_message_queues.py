"""The queues that a lite pull consumer has at present, and how far each is pulled and polled."""

from collections.abc import Iterable, Mapping

import attrs

from nodes.client.process_queue import ProcessQueue
from nodes.protocol.model import MessageQueue

NO_OFFSET = -1


@attrs.define(eq=False)
class AssignedQueue:
    """One queue as long as it is assigned."""

    process_queue: ProcessQueue
    pull_offset: int = NO_OFFSET
    """Where the next pull begins; -1: nothing was pulled yet."""
    consume_offset: int = NO_OFFSET
    """What a commit says: after what polls have returned; -1: none has returned anything."""


class AssignedMessageQueues:
    """Queue -> its state; the table of process queues belongs to the rebalance, this one to pulls and polls.

    Args:
        process_queues: those of the rebalance.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.AssignedMessageQueue`.
    """

    def __init__(self, process_queues: Mapping[MessageQueue, ProcessQueue]) -> None:
        self._process_queues = process_queues
        self._assigned: dict[MessageQueue, AssignedQueue] = {}

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """All assigned queues, in the order in which they came."""
        return tuple(self._assigned)

    def get(self, queue: MessageQueue) -> AssignedQueue | None:
        """The state of a queue; None where it is not assigned."""
        return self._assigned.get(queue)

    def update(self, topic: str, queues: Iterable[MessageQueue], *, now_ms: int) -> None:
        """Take over which queues of a topic are assigned from now on; those that stay keep their state.

        A queue that the rebalance was given but could not take up gets a process queue that only this table knows:
        it is pulled and polled, and not committed before the rebalance has it, too.
        """
        wanted = dict.fromkeys(queues)
        for queue in [queue for queue in self._assigned if queue.topic == topic and queue not in wanted]:
            self._assigned.pop(queue).process_queue.dropped = True
        for queue in wanted:
            if queue not in self._assigned:
                shared = self._process_queues.get(queue)
                self._assigned[queue] = AssignedQueue(ProcessQueue(now_ms=now_ms) if shared is None else shared)

    def update_pull_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Note where the next pull begins, unless the queue has gone, or gone and come back, meanwhile."""
        state = self._assigned.get(queue)
        if state is not None and state.process_queue is process_queue:
            state.pull_offset = offset
