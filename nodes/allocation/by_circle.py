"""AVG_BY_CIRCLE: queues dealt out one by one, like cards."""

from collections.abc import Sequence

from nodes.allocation.strategy import is_member
from nodes.protocol.model import MessageQueue


def allocate_by_circle(
    consumer_group: str,  # noqa: ARG001
    current_cid: str,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str],
    /,
) -> list[MessageQueue]:
    """Give queue k to member k modulo the number of members.

    Eight queues and the members a, b, c::

        a  q0  q3  q6
        b  q1  q4  q7
        c  q2  q5

    With a, a, b the queues of the second a have no owner: q1, q4 and q7.

    Args:
        consumer_group: not used.
        current_cid: the member that asks.
        mq_all: all queues of one topic, sorted.
        cid_all: all members, sorted.

    Returns:
        The queues of `current_cid`; empty for a client that is no member, and for members in excess of the queues.

    Raises:
        AllocationError: an argument is empty.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle`.
    """
    if not is_member(current_cid, mq_all, cid_all):
        return []
    return list(mq_all[cid_all.index(current_cid) :: len(cid_all)])
