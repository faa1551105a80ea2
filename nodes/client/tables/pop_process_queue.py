"""A queue that a consumer pops, and how many of its messages are not answered yet.

Mirrors:
    `org.apache.rocketmq.client.impl.consumer.PopProcessQueue`.
"""

import attrs

from nodes.client.tables.process_queue import PULL_MAX_IDLE_TIME_MS
from nodes.protocol.model import MessageQueue
from nodes.values import frozen


@attrs.define(eq=False)
class PopProcessQueue:
    """One queue that a broker has assigned for popping, or all queues of a broker."""

    last_pop_ms: int
    wait_ack: int = 0
    """Messages found and neither acknowledged nor put off; a batch whose handling fails leaves its rest counted."""
    dropped: bool = False

    def is_pull_expired(self, now_ms: int) -> bool:
        """Whether the last pop is so long ago that the queue has to be added again."""
        return now_ms - self.last_pop_ms > PULL_MAX_IDLE_TIME_MS


@frozen(eq=False)
class PopRequest:
    """The pop of a queue; there is one per queue, sent or waiting."""

    queue: MessageQueue
    """Its queue id is -1 for all queues of the broker."""
    process_queue: PopProcessQueue
