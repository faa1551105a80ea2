"""ORDINAL: neighbouring queues to each pod of a StatefulSet, by the number in its name; the last one gets the rest."""

from collections.abc import Sequence

from nodes.allocation.strategy import AllocationError
from nodes.protocol.model import MessageQueue
from nodes.values import frozen


def ordinal_of(pod_name: str) -> int:
    """The ordinal in the name of a pod: 12 of `consumer-12`.

    Raises:
        AllocationError: the name does not end in a hyphen and a number.
    """
    stem, hyphen, digits = pod_name.rpartition("-")
    if not (stem and hyphen and digits.isascii() and digits.isdigit()):
        raise AllocationError(f"expected a pod's name such as consumer-0, not {pod_name}")
    return int(digits)


def pod_name(statefulset: str, ordinal: int) -> str:
    """The name that a StatefulSet gives its pod, and the host name that the pod reads: `consumer-12`."""
    return f"{statefulset}-{ordinal}"


def ordinal_range(ordinal: int, replicas: int, partitions: int) -> range:
    """The partitions of one pod; empty for a pod beyond the replicas, and for pods in excess of the partitions.

    Ten partitions on four replicas are not balanced, because the last pod gets the whole remainder::

        0 1 | 2 3 | 4 5 | 6 7 8 9
    """
    with_partitions = min(replicas, partitions)
    if ordinal >= with_partitions:
        return range(0)
    size = partitions // with_partitions
    start = ordinal * size
    return range(start, partitions if ordinal == with_partitions - 1 else start + size)


def allocate_by_ordinal(
    consumer_group: str,  # noqa: ARG001
    current_cid: str,
    mq_all: Sequence[MessageQueue],
    cid_all: Sequence[str],
    /,
) -> list[MessageQueue]:
    """Give each pod the run of queues that belongs to its ordinal.

    Eleven queues and the pods consumer-0 to consumer-3::

        q0 q1 | q2 q3 | q4 q5 | q6 q7 q8 q9 q10

    Only the number of members counts, not who they are: the queues of a pod that does not run have no other owner.

    Args:
        consumer_group: not used.
        current_cid: name of the pod that asks.
        mq_all: all queues of one topic, sorted.
        cid_all: one name per desired replica.

    Returns:
        The run of `current_cid`; empty for a pod whose ordinal is beyond the replicas or the queues.

    Raises:
        AllocationError: `current_cid` is not the name of a pod, or there are no queues.
    """
    if not mq_all:
        raise AllocationError("mqAll is null or mqAll empty")
    own = ordinal_range(ordinal_of(current_cid), len(cid_all), len(mq_all))
    return list(mq_all[own.start : own.stop])


@frozen
class AllocatePartitions:
    """Give each pod the topics that are partitions of its run: a topic such as OrderEvents-P7 is partition 7.

    Four partitions and the pods consumer-0 and consumer-1::

        OrderEvents-P0 OrderEvents-P1 | OrderEvents-P2 OrderEvents-P3

    All pods subscribe to all partitions, because RocketMQ wants equal subscriptions in a group. Of other topics, such
    as that for retries, the queues are allocated as `allocate_by_ordinal` does.
    """

    prefix: str
    partitions: int

    def __call__(
        self, consumer_group: str, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str], /
    ) -> list[MessageQueue]:
        """All queues of a partition of one's own, none of another one.

        Raises:
            AllocationError: `current_cid` is not the name of a pod, or there are no queues.
        """
        by_ordinal = allocate_by_ordinal(consumer_group, current_cid, mq_all, cid_all)
        number = mq_all[0].topic.removeprefix(self.prefix)
        if mq_all[0].topic == number or not (number.isascii() and number.isdigit()):
            return by_ordinal
        own = ordinal_range(ordinal_of(current_cid), len(cid_all), self.partitions)
        return list(mq_all) if int(number) in own else []
