"""What every allocation strategy is, and what it refuses.

Mirrors:
    `org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy` and its abstract base.
"""

from collections.abc import Sequence
from typing import Protocol

from nodes.protocol.model import MessageQueue


class AllocationError(ValueError):
    """A strategy was given nothing to work with; the caller keeps the queues it has."""


class AllocateMessageQueueStrategy(Protocol):
    """A pure function from what all members see to what one of them gets."""

    def __call__(
        self, consumer_group: str, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str], /
    ) -> list[MessageQueue]:
        """The queues of one member.

        Args:
            consumer_group: only for messages.
            current_cid: the member that asks.
            mq_all: all queues of one topic, sorted by the caller.
            cid_all: all members, sorted by the caller; doubles count.

        Raises:
            AllocationError: an argument is empty.
        """


def is_member(current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> bool:
    """Whether there is something to allocate to the member that asks.

    Raises:
        AllocationError: the member, the queues or the members are empty.
    """
    if not current_cid:
        raise AllocationError("currentCID is empty")
    if not mq_all:
        raise AllocationError("mqAll is null or mqAll empty")
    if not cid_all:
        raise AllocationError("cidAll is null or cidAll empty")
    return current_cid in cid_all
