"""CONSISTENT_HASH: when a member leaves, only its queues move."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import attrs

from nodes.allocation.consistent_hash_router import ConsistentHashRouter
from nodes.allocation.shares import Divisions
from nodes.allocation.strategy import is_member
from nodes.protocol.model import MessageQueue

VIRTUAL_NODE_COUNT = 10
"""Places of a member on the ring, as shipped."""
_RINGS_REMEMBERED = 64
_Shares = Mapping[str, Sequence[MessageQueue]]


@lru_cache(maxsize=_RINGS_REMEMBERED)
def _router(cid_all: tuple[str, ...], virtual_node_count: int) -> ConsistentHashRouter:
    """The ring of a group; nobody changes it."""
    return ConsistentHashRouter(cid_all, virtual_node_count)


@attrs.frozen
class AllocateConsistentHash:
    """Give each queue to the member whose place on the ring comes next after the hash of the queue's text.

    Queues 0 to 7 of TopicTest on broker-a, ten places for each member::

        members c1 c2 c3     c1  0 4 5 7     c2  1 6     c3  2 3
        members c1 c3        c1  0 4 5 7                 c3  1 2 3 6

    Nothing sees to it that shares are of one size: a member may get nothing. One listed twice has twice the places.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash`.
    """

    virtual_node_count: int = attrs.field(default=VIRTUAL_NODE_COUNT)
    """Places of a member; 0: nobody owns anything."""
    _shares: Divisions[_Shares] = attrs.field(init=False, eq=False, repr=False)

    @virtual_node_count.validator
    def _check(self, _: object, value: int) -> None:
        if value < 0:
            raise ValueError(f"illegal virtualNodeCnt :{value}")

    @_shares.default
    def _make_shares(self) -> Divisions[_Shares]:
        return Divisions(self._divide)

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

    def _divide(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Shares:
        router = _router(tuple(cid_all), self.virtual_node_count)
        shares: dict[str, list[MessageQueue]] = {}
        for queue in mq_all:
            owner = router.route_node(str(queue))
            if owner is not None:
                shares.setdefault(owner, []).append(queue)
        return shares
