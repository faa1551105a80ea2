"""STICKY: members keep the queues that they had, as far as balance allows."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import compress

from nodes.protocol.java import java_compare_key, java_sorted
from nodes.protocol.model import MessageQueue


def allocate_sticky(
    mq_all: Sequence[MessageQueue], cid_all: Sequence[str], previous: Mapping[MessageQueue, str]
) -> dict[MessageQueue, str]:
    """Divide the queues of one topic so that shares differ by one at most and no more queues move than that takes.

    First each member keeps its queues. Then each queue without owner goes, in the order of queues, to the member that
    has the fewest. Last, while two shares differ by more than one, the largest gives its last queue to the smallest.
    Of members with as many queues the first in Java's order of texts receives, and the last one gives.

    Eight queues and the members C0, C1, C2, without a previous allocation; then C1 leaves; then it returns::

        C0  Q1 Q4 Q7      C0  Q1 Q4 Q5 Q7      C0  Q1 Q4 Q5
        C1  Q2 Q5 Q8                           C1  Q7 Q8
        C2  Q3 Q6         C2  Q2 Q3 Q6 Q8      C2  Q2 Q3 Q6

    Args:
        mq_all: all queues of one topic, in any order; a queue that is listed twice counts once.
        cid_all: all members, in any order; a member that is listed twice counts once.
        previous: queue -> its owner before; other queues and members in it are ignored.

    Returns:
        Queue -> its owner, in the order of queues; empty without members.
    """
    queues = _sorted_queues(mq_all)
    members = java_sorted(dict.fromkeys(cid_all))
    if not members:
        return {}
    places = {cid: place for place, cid in enumerate(members)}
    owners = [places.get(previous.get(queue, ""), -1) for queue in queues]
    retained: list[list[int]] = [[] for _ in members]
    for number, owner in enumerate(owners):
        if owner >= 0:
            retained[owner].append(number)
    sizes = [len(mine) for mine in retained]
    _fill(owners, sizes)
    _level(owners, retained, sizes)
    return {queue: members[owner] for queue, owner in zip(queues, owners, strict=True)}


def _fill(owners: list[int], sizes: list[int]) -> None:
    """Give each queue without owner to the member with the fewest."""
    smallest = [(size, place) for place, size in enumerate(sizes)]
    heapify(smallest)
    for number in compress(range(len(owners)), [owner < 0 for owner in owners]):
        size, place = smallest[0]
        owners[number] = place
        sizes[place] = size + 1
        heapreplace(smallest, (size + 1, place))


def _level(owners: list[int], retained: list[list[int]], sizes: list[int]) -> None:
    """Move queues from the largest share to the smallest.

    One heap of receivers and one of givers are enough, although a move changes both shares: as long as shares differ
    by more than one, no giver has become the smallest, and no receiver the largest. So a giver was given nothing
    before, and its last queue is the last that it kept.
    """
    smallest = [(size, place) for place, size in enumerate(sizes)]
    largest = [(-size, -place) for place, size in enumerate(sizes)]
    heapify(smallest)
    heapify(largest)
    while -largest[0][0] - smallest[0][0] > 1:
        few, receiver = smallest[0]
        many, giver = largest[0]
        owners[retained[-giver].pop()] = receiver
        heapreplace(smallest, (few + 1, receiver))
        heapreplace(largest, (many + 1, giver))


def _sorted_queues(mq_all: Sequence[MessageQueue]) -> list[MessageQueue]:
    """The queues, each once, in Java's order of texts."""
    queues = list(dict.fromkeys(mq_all))
    if all(q.topic.isascii() and q.broker_name.isascii() for q in queues):
        return sorted(queues, key=lambda q: (q.topic, q.broker_name, q.queue_id))
    return sorted(queues, key=lambda q: (java_compare_key(q.topic), java_compare_key(q.broker_name), q.queue_id))
