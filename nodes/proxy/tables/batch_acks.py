"""Acknowledgements of one call, as one request for each broker.

Mirrors:
    `ConsumerProcessor#batchAckMessage` of the proxy, `MQClientAPIImpl#batchAckMessageAsync`.
"""

import base64
from collections.abc import Iterable, Sequence

from nodes.protocol.bodies import BatchAck, BatchAckMessageRequestBody
from nodes.protocol.java import hash_ordered
from nodes.proxy.tables.errors import JavaExceptionError
from nodes.proxy.tables.receipt_handle import ReceiptHandle

_BITS = 8


def by_broker(handles: Iterable[tuple[int, ReceiptHandle]]) -> dict[str, list[tuple[int, ReceiptHandle]]]:
    """Mapping broker name -> handles, each with its place in the call, in the order in which Java iterates names."""
    found: dict[str, list[tuple[int, ReceiptHandle]]] = {}
    for place, handle in handles:
        found.setdefault(handle.broker_name, []).append((place, handle))
    return {name: found[name] for name in hash_ordered(found)}


def batch_of(handles: Sequence[ReceiptHandle], group: str, topic: str) -> BatchAckMessageRequestBody:
    """The request for handles of one broker: messages of one pop and one queue are the bits of one entry.

    Raises:
        JavaExceptionError: a handle has an offset before that of its pop.
    """
    pops: dict[str, list[ReceiptHandle]] = {}
    for handle in handles:
        words = (handle.topic_type, handle.queue_id, handle.start_offset, handle.retrieve_time_ms)
        pops.setdefault("@".join(map(str, words)), []).append(handle)
    acks = tuple(_ack(pops[key], group, topic) for key in hash_ordered(pops))
    return BatchAckMessageRequestBody(handles[0].broker_name, acks)


def _ack(handles: Sequence[ReceiptHandle], group: str, topic: str) -> BatchAck:
    first, bits = handles[0], 0
    for handle in handles:
        bit = handle.offset - first.start_offset
        if bit < 0:
            raise JavaExceptionError("IndexOutOfBoundsException", f"bitIndex < 0: {bit}")
        bits |= 1 << bit
    return BatchAck(
        group,
        topic,
        first.topic_type,
        first.start_offset,
        first.queue_id,
        first.revive_queue_id,
        first.retrieve_time_ms,
        first.invisible_time_ms,
        base64.b64encode(bits.to_bytes(-(-bits.bit_length() // _BITS), "little")).decode(),
    )
