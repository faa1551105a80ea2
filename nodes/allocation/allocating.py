"""An allocation of all queues of a topic among all members of a group at once, as the assigner makes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from nodes.allocation.kafka_round_robin import allocate_round_robin
from nodes.allocation.sticky import allocate_sticky
from nodes.allocation.strategy import AllocateMessageQueueStrategy
from nodes.protocol.model import MessageQueue

ALLOCATION = "allocation"
"""Name of the stopwatch for the calculation of shares, by members and by brokers."""
Shares = Mapping[str, tuple[MessageQueue, ...]]
"""Member -> its queues."""
Allocate = Callable[[Sequence[MessageQueue], Sequence[str], Shares], Shares]
"""(all queues, all members, the shares before) -> the shares of all members."""


def dividing_by(allocate: AllocateMessageQueueStrategy, consumer_group: str) -> Allocate:
    """Allocate with a strategy that has no memory: every member gets what it would allocate to itself."""

    def allocate_queues(mq_all: Sequence[MessageQueue], cid_all: Sequence[str], _before: Shares) -> Shares:
        return {cid: tuple(allocate(consumer_group, cid, mq_all, cid_all)) for cid in cid_all}

    return allocate_queues


def dividing_sticky(mq_all: Sequence[MessageQueue], cid_all: Sequence[str], before: Shares) -> Shares:
    """Allocate with STICKY: members keep what they had, as far as balance allows."""
    shares: dict[str, list[MessageQueue]] = {cid: [] for cid in cid_all}
    for queue, cid in allocate_sticky(mq_all, cid_all, owners_of(before)).items():
        shares[cid].append(queue)
    return {cid: tuple(queues) for cid, queues in shares.items()}


def dividing_together(of_group: Mapping[str, Sequence[MessageQueue]], topic: str) -> Allocate:
    """Allocate one topic as KAFKA_ROUND_ROBIN does when it deals out queues of all topics of the group in one circle.

    Args:
        of_group: topic -> its queues.
        topic: the one whose shares are wanted.
    """

    def allocate_queues(_mq_all: Sequence[MessageQueue], cid_all: Sequence[str], _before: Shares) -> Shares:
        dealt = allocate_round_robin(of_group, dict.fromkeys(cid_all, tuple(of_group)))
        return {cid: tuple(queue for queue in queues if queue.topic == topic) for cid, queues in dealt.items()}

    return allocate_queues


def owners_of(shares: Shares) -> dict[MessageQueue, str]:
    """The owner of each queue; of several the member that comes first in Java's order of texts.

    Args:
        shares: members in Java's order.
    """
    owners: dict[MessageQueue, str] = {}
    for cid, queues in shares.items():
        for queue in queues:
            owners.setdefault(queue, cid)
    return owners


def defects(shares: Shares, mq_all: Sequence[MessageQueue]) -> Iterator[str]:
    """What is wrong with an allocation, one phrase per defect."""
    known = dict.fromkeys(mq_all)
    owners: dict[MessageQueue, str] = {}
    for cid, queues in shares.items():
        for queue in queues:
            if queue not in known:
                yield f"{cid} gets {queue}, which is no queue of the topic"
            elif queue in owners:
                yield f"{queue} goes to {owners[queue]} and to {cid}"
            owners.setdefault(queue, cid)
    for queue in mq_all:
        if queue not in owners:
            yield f"{queue} goes to no one"
