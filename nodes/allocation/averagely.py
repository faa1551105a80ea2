"""AVG: neighbouring queues to each member, the first ones get one more."""

from collections.abc import Sequence

from nodes.allocation.strategy import is_member
from nodes.protocol.model import MessageQueue


def allocate_averagely(
    consumer_group: str,  # noqa: ARG001
    current_cid: str,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str],
    /,
) -> list[MessageQueue]:
    """Cut the queues into runs, one per member, whose lengths differ by one at most.

    Eight queues and the members a, b, c::

        q0 q1 q2 | q3 q4 q5 | q6 q7
        a          b          c

    A member listed twice has the position of its first entry, but both entries
    count: with a, a, b the run q3 q4 q5 has no owner.

    Args:
        consumer_group: not used.
        current_cid: the member that asks.
        mq_all: all queues of one topic, sorted.
        cid_all: all members, sorted.

    Returns:
        The run of `current_cid`; empty for a client that is no member, and for members in excess of the queues.

    Raises:
        AllocationError: an argument is empty.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely`.
    """
    if not is_member(current_cid, mq_all, cid_all):
        return []
    index = cid_all.index(current_cid)
    size, longer = divmod(len(mq_all), len(cid_all))
    start = index * size + min(index, longer)
    return list(mq_all[start : start + size + (index < longer)])
