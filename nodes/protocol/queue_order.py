"""How queues sort and hash: by Java's rules for the texts and numbers in them.

Mirrors:
    `org.apache.rocketmq.common.message.MessageQueue`, its `compareTo` and `hashCode`.
"""

from collections.abc import Iterable
from functools import cmp_to_key

from nodes.protocol.java_order import as_int, java_compare, java_hash
from nodes.protocol.model import MessageQueue

_PRIME = 31


def compare_queues(queue: MessageQueue, other: MessageQueue) -> int:
    """Below, at or above zero, by topic, broker name and queue id; ids too far apart compare the wrong way round."""
    return (
        java_compare(queue.topic, other.topic)
        or java_compare(queue.broker_name, other.broker_name)
        or as_int(queue.queue_id - other.queue_id)
    )


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Sort as `Collections.sort` sorts queues."""
    listed = list(queues)
    if all(q.topic.isascii() and q.broker_name.isascii() and 0 <= q.queue_id < 1 << 31 for q in listed):
        return sorted(listed)
    return sorted(listed, key=cmp_to_key(compare_queues))


def queue_hash(queue: MessageQueue) -> int:
    """The hash that decides in which order a Java table of queues iterates; 32 bits with sign."""
    by_broker = _PRIME + java_hash(queue.broker_name)
    return as_int((by_broker * _PRIME + queue.queue_id) * _PRIME + java_hash(queue.topic))
