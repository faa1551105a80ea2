"""The choice of queues: those to send to, and those to receive from.

Mirrors:
    `org.apache.rocketmq.client.java.impl.producer.PublishingLoadBalancer`,
    `org.apache.rocketmq.client.java.impl.consumer.SubscriptionLoadBalancer`.
"""

from collections.abc import Collection, Iterable

from nodes.protocol.java import as_long
from nodes.protocol.v2.definition import Endpoints, MessageQueue
from nodes.protocol.v2.enums import Permission

_MASTER_ID = 0
_WRITEABLE = (Permission.WRITE, Permission.READ_WRITE)
_READABLE = (Permission.READ, Permission.READ_WRITE)
_SIP_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
_SIP_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_MASK = (1 << 64) - 1
_WORD_BYTES = 8


def writeable(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """The queues of masters that take messages."""
    return tuple(q for q in queues if q.permission in _WRITEABLE and q.broker.id == _MASTER_ID)


def readable(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """The queues of masters that messages can be received from."""
    return tuple(q for q in queues if q.permission in _READABLE and q.broker.id == _MASTER_ID)


def take_message_queue_by_message_group(queues: tuple[MessageQueue, ...], group: str) -> MessageQueue:
    """The queue of all attempts of a FIFO message. The proxy takes another one, by a hash of its own."""
    return queues[as_long(sip_hash24(group.encode())) % len(queues)]


def take_message_queues(
    queues: tuple[MessageQueue, ...], first: int, excluded: Collection[Endpoints], maximum: int
) -> tuple[MessageQueue, ...]:
    """The queues of a send's attempts: of brokers with different names, from an index on.

    Args:
        queues: those that take messages.
        first: index of the first, which counts on over the queues.
        excluded: endpoints that have failed; if there are no others, these are taken.
        maximum: how many at most.
    """
    begin = first % len(queues)
    ring = (*queues[begin:], *queues[:begin])
    usable = [queue for queue in ring if queue.broker.endpoints not in excluded] if excluded else ring
    for candidates in (usable, ring):
        by_name: dict[str, MessageQueue] = {}
        for queue in candidates:
            if len(by_name) < maximum:
                by_name.setdefault(queue.broker.name, queue)
        if by_name:
            return tuple(by_name.values())
    return ()


def sip_hash24(data: bytes) -> int:
    """SipHash-2-4 with the key of Guava (`com.google.common.hash.Hashing#sipHash24`), from 0 to 2^64 - 1."""
    v0, v1, v2, v3 = (initial ^ _SIP_KEY[place % 2] for place, initial in enumerate(_SIP_INITIAL))
    padded = data + bytes(-(len(data) + 1) % _WORD_BYTES) + bytes([len(data) & 0xFF])
    for start in range(0, len(padded), _WORD_BYTES):
        word = int.from_bytes(padded[start : start + _WORD_BYTES], "little")
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3 ^ word)
        v0 ^= word
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2 ^ 0xFF, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _rounds(number: int, v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    for _ in range(number):
        v0, v2 = (v0 + v1) & _MASK, (v2 + v3) & _MASK
        v1, v3 = _rotated(v1, 13) ^ v0, _rotated(v3, 16) ^ v2
        v0, v2 = (_rotated(v0, 32) + v3) & _MASK, (v2 + v1) & _MASK
        v1, v3 = _rotated(v1, 17) ^ v2, _rotated(v3, 21) ^ v0
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
