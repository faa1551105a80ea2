"""Which queue a producer sends to next.

Mirrors:
    `org.apache.rocketmq.client.impl.producer.TopicPublishInfo#selectOneMessageQueue`.
"""

from collections.abc import Callable

import attrs

from nodes.protocol.java_order import as_int
from nodes.protocol.model import MessageQueue

_POSITIVE_MASK = 0x7FFF_FFFF
QueueFilter = Callable[[MessageQueue], bool]


@attrs.define
class SendWhichQueue:
    """Whose turn it is; a number that runs through Java's `int` and begins again below zero.

    Mirrors:
        `org.apache.rocketmq.client.common.ThreadLocalIndex`.
    """

    index: int
    """Of the last turn."""

    def next_of(self, queues: tuple[MessageQueue, ...]) -> MessageQueue:
        """The next queue in turn.

        Raises:
            ZeroDivisionError: there is none; who asks sees to that.
        """
        self.index = as_int(self.index + 1)
        return queues[(self.index & _POSITIVE_MASK) % len(queues)]

    def next_that(self, queues: tuple[MessageQueue, ...], suits: QueueFilter) -> MessageQueue | None:
        """The next queue in turn that suits; None after one turn of each, which all count."""
        return next((queue for _ in queues if suits(queue := self.next_of(queues))), None)
