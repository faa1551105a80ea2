"""MACHINE_ROOM: only queues of configured rooms, which are a prefix of the broker's name."""

from collections.abc import Mapping, Sequence

import attrs

from nodes.allocation.strategy import AllocationError, Divisions, is_member
from nodes.protocol.java import java_split
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

_Shares = Mapping[str, Sequence[MessageQueue]]


class RoomsNotSetError(AllocationError):
    """No rooms are configured, and there is a broker with a room.

    RocketMQ fails with a null pointer there; if no broker has a room, every
    member gets no queue.
    """


@frozen
class AllocateByMachineRoom:
    """Cut the queues of the configured rooms into runs, and deal out the rest.

    Rooms {r1, r2}; brokers r1@x and r2@y with four queues each, z with two; members a, b, c::

        kept      x0 x1 | x2 x3 | y0 y1 | y2 y3         (z has no room: never consumed)
        a         x0 x1                   y2
        b                 x2 x3              y3
        c                         y0 y1

    The rooms of members do not matter. Only a name of exactly two parts, as Java splits, has a room: `r1@` has one
    part, `@x` has an empty room.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom`.
    """

    consumeridcs: tuple[str, ...] | None = None
    """The rooms; None: not configured."""
    _shares: Divisions[_Shares] = attrs.field(init=False, eq=False, repr=False)

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
        """The queues of one member.

        Raises:
            AllocationError: an argument is empty.
            RoomsNotSetError: there are no rooms to compare a broker's room with.
        """
        if not is_member(current_cid, mq_all, cid_all):
            return []
        return list(self._shares.of(mq_all, cid_all)[current_cid])

    def _allocate_queues(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Shares:
        in_room = {name: self._is_in_room(name) for name in dict.fromkeys(queue.broker_name for queue in mq_all)}
        retained = [queue for queue in mq_all if in_room[queue.broker_name]]
        size, left_over = divmod(len(retained), len(cid_all))
        dealt = len(cid_all) * size
        shares: dict[str, Sequence[MessageQueue]] = {}
        for index, cid in enumerate(cid_all):
            extra = retained[dealt + index : dealt + index + 1] if index < left_over else []
            # A member listed twice has the position of its first entry.
            shares.setdefault(cid, retained[index * size : (index + 1) * size] + extra)
        return shares

    def _is_in_room(self, broker_name: str) -> bool:
        parts = java_split(broker_name, "@")
        if len(parts) != 2:
            return False
        if self.consumeridcs is None:
            raise RoomsNotSetError(f"broker {broker_name} is in a room, and consumeridcs was never set")
        return parts[0] in self.consumeridcs
