"""CONSISTENT_HASH: members on a ring of hashes; when one leaves, only its queues move."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import md5

import attrs

from nodes.allocation.strategy import Divisions, is_member
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

HashFunction = Callable[[str], int]


def md5_hash(key: str) -> int:
    """The first four bytes of a text's MD5, as a number without sign.

    A lone surrogate counts as `?`, as in Java's UTF-8.
    """
    digest = md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


class ConsistentHashRouter:
    """The ring.

    With one place each for a, b, c, whose places `a-0`, `b-0`, `c-0` hash to
    30, 10 and 20::

        10 b   20 c   30 a        a key that hashes to 5 or 10 is b's, 11 is c's, 25 is a's, 31 is b's again

    Args:
        nodes: in the order in which they are added; a node that is added again gets further places.
        virtual_node_count: places of each node.
        hash_function: from a text to its place on the ring.

    Raises:
        ValueError: the count is negative.
    """

    def __init__(
        self, nodes: Iterable[str] = (), virtual_node_count: int = 0, hash_function: HashFunction = md5_hash
    ) -> None:
        self._hash_function = hash_function
        self._ring: dict[int, str] = {}
        self._replicas: dict[str, int] = {}
        """Places that a node has on the ring."""
        self._sorted: list[int] | None = None
        for node in nodes:
            self.add_node(node, virtual_node_count)

    @property
    def ring_keys(self) -> list[int]:
        """The occupied places, ascending."""
        if self._sorted is None:
            self._sorted = sorted(self._ring)
        return self._sorted

    def add_node(self, node: str, virtual_node_count: int) -> None:
        """Give a node further places; a place that is taken goes to the new node.

        Raises:
            ValueError: the count is negative.
        """
        if virtual_node_count < 0:
            raise ValueError(f"illegal virtual node counts :{virtual_node_count}")
        existing = self._replicas.get(node, 0)
        for replica in range(existing, existing + virtual_node_count):
            key = self._hash_function(f"{node}-{replica}")
            if key in self._ring:
                self._replicas[self._ring[key]] -= 1
            self._ring[key] = node
            self._replicas[node] = self._replicas.get(node, 0) + 1
        self._sorted = None

    def route_node(self, key: str) -> str | None:
        """The node that a key belongs to; None on an empty ring."""
        keys = self.ring_keys
        if not keys:
            return None
        place = bisect_left(keys, self._hash_function(key))
        return self._ring[keys[place % len(keys)]]


VIRTUAL_NODE_COUNT = 10
"""Places of a member on the ring, as shipped."""
_RINGS_REMEMBERED = 64
_Shares = Mapping[str, Sequence[MessageQueue]]


@lru_cache(maxsize=_RINGS_REMEMBERED)
def _router(cid_all: tuple[str, ...], virtual_node_count: int, hash_function: HashFunction) -> ConsistentHashRouter:
    """The cached ring of a group; it is never changed."""
    return ConsistentHashRouter(cid_all, virtual_node_count, hash_function)


@frozen
class AllocateConsistentHash:
    """Give each queue to the member whose place on the ring comes next after the hash of the queue's text.

    Queues 0 to 7 of TopicTest on broker-a, ten places for each member::

        members c1 c2 c3     c1  0 4 5 7     c2  1 6     c3  2 3
        members c1 c3        c1  0 4 5 7                 c3  1 2 3 6

    Shares differ in size: a member may get no queue. A member listed twice has twice the places.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash`.
    """

    virtual_node_count: int = attrs.field(default=VIRTUAL_NODE_COUNT)
    """Places of a member; 0: no queue has an owner."""
    hash_function: HashFunction = md5_hash
    """Of members and queues; what it raises is raised here."""
    _shares: Divisions[_Shares] = attrs.field(init=False, eq=False, repr=False)

    @virtual_node_count.validator
    def _check(self, _: object, value: int) -> None:
        if value < 0:
            raise ValueError(f"illegal virtualNodeCnt :{value}")

    @_shares.default
    def _make_shares(self) -> Divisions[_Shares]:
        return Divisions(self._allocate_queues)

    def __call__(
        self,
        consumer_group: str,  # noqa: ARG002
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
        /,
    ) -> list[MessageQueue]:
        """The queues of one member, in the order in which they were given.

        Raises:
            AllocationError: an argument is empty.
        """
        if not is_member(current_cid, mq_all, cid_all):
            return []
        return list(self._shares.of(mq_all, cid_all).get(current_cid, ()))

    def _allocate_queues(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Shares:
        router = _router(tuple(cid_all), self.virtual_node_count, self.hash_function)
        shares: dict[str, list[MessageQueue]] = {}
        for queue in mq_all:
            owner = router.route_node(str(queue))
            if owner is not None:
                shares.setdefault(owner, []).append(queue)
        return shares
