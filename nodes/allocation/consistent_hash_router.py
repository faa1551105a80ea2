"""A ring of hashes on which members have several places, and a key belongs to the next place on the way round.

Mirrors:
    `org.apache.rocketmq.common.consistenthash.{ConsistentHashRouter,VirtualNode,MD5Hash}`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from hashlib import md5


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
        nodes: in the order of their arrival; one that comes again gets further places.
        virtual_node_count: places of each.

    Raises:
        ValueError: the count is negative.
    """

    def __init__(self, nodes: Iterable[str] = (), virtual_node_count: int = 0) -> None:
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
        """Give a node further places; on a place that is taken already the last comer stays.

        Raises:
            ValueError: the count is negative.
        """
        if virtual_node_count < 0:
            raise ValueError(f"illegal virtual node counts :{virtual_node_count}")
        existing = self._replicas.get(node, 0)
        for replica in range(existing, existing + virtual_node_count):
            key = md5_hash(f"{node}-{replica}")
            if key in self._ring:
                self._replicas[self._ring[key]] -= 1
            self._ring[key] = node
            self._replicas[node] = self._replicas.get(node, 0) + 1
        self._sorted = None

    def remove_node(self, node: str) -> None:
        """Take all places of a node away."""
        if self._replicas.pop(node, 0):
            self._ring = {key: owner for key, owner in self._ring.items() if owner != node}
            self._sorted = None

    def route_node(self, key: str) -> str | None:
        """The node that a key belongs to; None on an empty ring."""
        keys = self.ring_keys
        if not keys:
            return None
        place = bisect_left(keys, md5_hash(key))
        return self._ring[keys[place % len(keys)]]
