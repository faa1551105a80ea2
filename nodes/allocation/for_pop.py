"""Allocation for members that pop: they may share queues, so that a slow member delays no queue."""

from collections.abc import Sequence

from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.protocol.model import MessageQueue

ALL_QUEUES = -1
"""The queue id that stands for all queues of a broker."""


def allocate_for_pop(
    allocate: AllocateMessageQueueStrategy,
    consumer_group: str,
    current_cid: str,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str],
    pop_share_queue_num: int,
) -> list[MessageQueue]:
    """The queues of one member that pops.

    With 4 members, 8 queues and a share of 1, each member gets its own 2 queues and the 2 of the next member. If
    the share reaches all members, or is not positive, each gets "all queues of broker b", once for every queue of
    b; nothing is checked then, not even whether it is a member.

    Args:
        allocate: allocates the queues if there are enough.
        consumer_group: only for messages.
        current_cid: the member that asks.
        mq_all: all queues of one topic, sorted by the caller.
        cid_all: all members, sorted by the caller.
        pop_share_queue_num: a member also gets the queues of this many following members, in a circle.

    Raises:
        AllocationError: an argument is empty.

    Mirrors:
        `QueryAssignmentProcessor#allocate4Pop`.
    """
    if pop_share_queue_num <= 0 or pop_share_queue_num >= len(cid_all) - 1:
        return [MessageQueue(queue.topic, queue.broker_name, ALL_QUEUES) for queue in mq_all]
    if len(cid_all) > len(mq_all):
        return _one_each(current_cid, mq_all, cid_all)
    mine = list(allocate(consumer_group, current_cid, mq_all, cid_all))
    if current_cid in cid_all:
        place = cid_all.index(current_cid)
        for step in range(1, pop_share_queue_num + 1):
            mine += allocate(consumer_group, cid_all[(place + step) % len(cid_all)], mq_all, cid_all)
    return mine


def _one_each(current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
    """With more members than queues: every member gets a queue, so some queues have several members."""
    if not current_cid.strip():
        raise AllocationError("currentCID is empty")
    if not mq_all:
        raise AllocationError("mqAll is null or mqAll empty")
    if current_cid not in cid_all:
        return []
    return [mq_all[cid_all.index(current_cid) % len(mq_all)]]
