"""Selectors: the queue that an application chooses for a message, by its key.

A queue that comes or goes moves most keys to another queue with a hash modulo the number of queues, and few keys on a
ring.

Mirrors:
    `org.apache.rocketmq.client.producer.selector`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import md5
from types import MappingProxyType
from typing import TypeVar

from nodes.allocation.consistent_hash import VIRTUAL_NODE_COUNT, ConsistentHashRouter
from nodes.protocol.java import as_int, java_hash
from nodes.protocol.model import MessageQueue

_RINGS_REMEMBERED = 64
Queues = tuple[MessageQueue, ...]
_Choice = TypeVar("_Choice")
QueueSelector = Callable[[Queues, str], MessageQueue | None]
"""Returns one of the queues of a topic for a key; None: no queue, and the send fails."""


class SelectorName(StrEnum):
    """How a producer chooses the queues of its messages."""

    HASH = "hash"
    """Java's hash of the key, modulo the number of queues: `SelectMessageQueueByHash`."""
    MD5 = "md5"
    """The first 32 bits of the key's MD5, modulo the number of queues: as .NET's `BitConverter` reads them."""
    CONSISTENT_HASH = "consistent_hash"
    """The next queue on a ring of hashes."""
    RANDOM = "random"
    """Any queue: `SelectMessageQueueByRandom`."""
    MACHINE_ROOM = "machine_room"
    """`SelectMessageQueueByMachineRoom`, which is not implemented in RocketMQ 5.3.3: each send fails."""


class KeyHash(StrEnum):
    """A hash of keys, whose remainder by a number of queues or topics is taken."""

    HASH = "hash"
    """Java's `hashCode`, without its sign."""
    MD5 = "md5"
    """The first 32 bits of the MD5, as .NET's `BitConverter` reads them."""

    def of(self, key: str) -> int:
        """The hash of a key; Java's has a sign."""
        if self is KeyHash.HASH:
            return as_int(java_hash(key))
        digest = md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()
        return int.from_bytes(digest[:4], "little")


BY_KEY = (SelectorName.HASH, SelectorName.MD5, SelectorName.CONSISTENT_HASH)
"""These choose by the key alone."""


def select_by_hash(choices: Sequence[_Choice], argument_hash: int) -> _Choice:
    """One of several queues or topics for an application's key, as for ordered messages.

    Args:
        choices: the queues.
        argument_hash: Java's `hashCode` of the key, with sign.

    Mirrors:
        `org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash`.
    """
    # Java's remainder has the sign of the dividend, which is then removed.
    return choices[abs(argument_hash) % len(choices)]


def _by_hash(queues: Queues, key: str) -> MessageQueue:
    return select_by_hash(queues, KeyHash.HASH.of(key))


def _by_md5(queues: Queues, key: str) -> MessageQueue:
    return select_by_hash(queues, KeyHash.MD5.of(key))


def _by_consistent_hash(queues: Queues, key: str) -> MessageQueue:
    router, by_name = _ring(queues)
    return by_name[router.route_node(key) or ""]


@lru_cache(maxsize=_RINGS_REMEMBERED)
def _ring(queues: Queues) -> tuple[ConsistentHashRouter, Mapping[str, MessageQueue]]:
    by_name = {str(queue): queue for queue in queues}
    return ConsistentHashRouter(by_name, VIRTUAL_NODE_COUNT), MappingProxyType(by_name)


def _by_machine_room(_queues: Queues, _key: str) -> None:
    return None


_BY_KEY: Mapping[SelectorName, QueueSelector] = MappingProxyType(
    {
        SelectorName.HASH: _by_hash,
        SelectorName.MD5: _by_md5,
        SelectorName.CONSISTENT_HASH: _by_consistent_hash,
        SelectorName.MACHINE_ROOM: _by_machine_room,
    }
)


def selector_of(name: SelectorName, draw: Callable[[int], int]) -> QueueSelector:
    """The selector of a producer.

    Args:
        draw: returns a whole number from 0 up to its argument, not included.
    """
    if name is SelectorName.RANDOM:
        return lambda queues, _key: queues[draw(len(queues))]
    return _BY_KEY[name]
