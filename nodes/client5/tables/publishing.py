"""The choice of queues: those to send to, and those to receive from.

Mirrors:
    `org.apache.rocketmq.client.java.impl.producer.PublishingLoadBalancer`,
    `org.apache.rocketmq.client.java.impl.consumer.SubscriptionLoadBalancer`.
"""

from collections.abc import Container, Iterable

from nodes.client5.tables.sip_hash import sip_hash24
from nodes.protocol.v2.definition import Endpoints, MessageQueue
from nodes.protocol.v2.enums import Permission

_MASTER_ID = 0
_WRITEABLE = (Permission.WRITE, Permission.READ_WRITE)
_READABLE = (Permission.READ, Permission.READ_WRITE)


def writeable(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """The queues of masters that take messages."""
    return tuple(q for q in queues if q.permission in _WRITEABLE and q.broker.id == _MASTER_ID)


def readable(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """The queues of masters that messages can be received from."""
    return tuple(q for q in queues if q.permission in _READABLE and q.broker.id == _MASTER_ID)


def take_message_queue_by_message_group(queues: tuple[MessageQueue, ...], group: str) -> MessageQueue:
    """The queue of all attempts of a FIFO message. The proxy takes another one, by a hash of its own."""
    signed = int.from_bytes(sip_hash24(group.encode()).to_bytes(8, "big"), "big", signed=True)
    return queues[signed % len(queues)]


def take_message_queues(
    queues: tuple[MessageQueue, ...], first: int, excluded: Container[Endpoints], maximum: int
) -> tuple[MessageQueue, ...]:
    """The queues of a send's attempts: of brokers with different names, from an index on.

    Args:
        queues: those that take messages.
        first: index of the first, which counts on over the queues.
        excluded: endpoints that have failed; if there are no others, these are taken.
        maximum: how many at most.
    """
    ring = [queues[(first + step) % len(queues)] for step in range(len(queues))]
    for candidates in ([queue for queue in ring if queue.broker.endpoints not in excluded], ring):
        by_name: dict[str, MessageQueue] = {}
        for queue in candidates:
            if len(by_name) < maximum:
                by_name.setdefault(queue.broker.name, queue)
        if by_name:
            return tuple(by_name.values())
    return ()
