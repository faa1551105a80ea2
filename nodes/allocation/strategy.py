"""The interface of allocation strategies, their common checks, and a cache for strategies that inspect each queue.

Mirrors:
    `org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy` and its abstract base.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import attrs

from nodes.protocol.model import MessageQueue


class AllocationError(ValueError):
    """A strategy was called without client id, queues or members; the caller keeps its queues."""


class AllocateMessageQueueStrategy(Protocol):
    """A pure function from all queues and members to the queues of one member."""

    def __call__(
        self, consumer_group: str, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str], /
    ) -> list[MessageQueue]:
        """The queues of one member.

        Args:
            consumer_group: only for error messages.
            current_cid: the member that asks.
            mq_all: all queues of one topic, sorted by the caller.
            cid_all: all members, sorted by the caller, with duplicates.

        Raises:
            AllocationError: an argument is empty.
        """


def is_member(current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> bool:
    """Whether the client is a member.

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


_Allocation = TypeVar("_Allocation")
_REMEMBERED_MAX = 32
"""Topics times views that many consumers allocate at the same time."""


@attrs.define
class Divisions(Generic[_Allocation]):
    """A cache of the last allocations of queues among members.

    Lists are compared, not hashed: members mostly pass the very same queues,
    and comparing those takes one pass over two arrays.
    """

    allocate_queues: Callable[[Sequence[MessageQueue], Sequence[str]], _Allocation]
    """The allocation itself: a pure function."""
    _known: list[tuple[list[MessageQueue], list[str], _Allocation]] = attrs.field(factory=list, init=False)

    def of(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Allocation:
        """The allocation of these queues among these members."""
        queues, members = list(mq_all), list(cid_all)
        for place, known in enumerate(self._known):
            if known[1] == members and known[0] == queues:
                if place:
                    self._known.insert(0, self._known.pop(place))
                return known[2]
        allocated_queues = self.allocate_queues(queues, members)
        self._known.insert(0, (queues, members, allocated_queues))
        del self._known[_REMEMBERED_MAX:]
        return allocated_queues
