"""MACHINE_ROOM_NEARBY: the queues of the own room, and a share of those of rooms without members."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import attrs

from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError, Divisions, is_member
from nodes.protocol.java import java_sorted
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

_Item = TypeVar("_Item")


class MachineRoomResolver(Protocol):
    """Returns the room of a broker or a member; an empty text if it is unknown.

    Mirrors:
        `AllocateMachineRoomNearby.MachineRoomResolver`.
    """

    def broker_deploy_in(self, message_queue: MessageQueue) -> str:
        """The room of a queue's broker."""

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of a member."""


@frozen
class _Rooms:
    queues: Mapping[str, tuple[MessageQueue, ...]]
    """Room -> its queues, in Java's order of the rooms."""
    members: Mapping[str, tuple[str, ...]]


@frozen
class AllocateMachineRoomNearby:
    """Let another strategy allocate each room's queues among its members, or among all members if it has none.

    Rooms r1, r2, r3 with four queues x, y, z each; a and b are in r1, c in r2; the inner strategy is AVG::

              own room       r3, without members
        a     x0 x1          z0 z1
        b     x2 x3          z2
        c     y0 y1 y2 y3    z3

    Each empty room is allocated separately, so the rest of an allocation goes to the same first members every time.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby`.
    """

    inner: AllocateMessageQueueStrategy
    resolver: MachineRoomResolver
    _rooms: Divisions[_Rooms] = attrs.field(init=False, eq=False, repr=False)

    @_rooms.default
    def _make_rooms(self) -> Divisions[_Rooms]:
        return Divisions(self._allocate_queues)

    def __call__(
        self, consumer_group: str, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str], /
    ) -> list[MessageQueue]:
        """The queues of one member: those of its own room, then those of the empty rooms in the rooms' order.

        Raises:
            AllocationError: an argument is empty, or a queue or a member is in no room.
        """
        if not is_member(current_cid, mq_all, cid_all):
            return []
        rooms = self._rooms.of(mq_all, cid_all)
        mine: list[MessageQueue] = []
        own_room = self.resolver.consumer_deploy_in(current_cid)
        if own_room in rooms.queues:
            mine += self.inner(consumer_group, current_cid, rooms.queues[own_room], rooms.members[own_room])
        for room, queues in rooms.queues.items():
            if room not in rooms.members:
                mine += self.inner(consumer_group, current_cid, queues, cid_all)
        return mine

    def _allocate_queues(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Rooms:
        queues = _grouped(mq_all, self.resolver.broker_deploy_in, "mq")
        members = _grouped(cid_all, self.resolver.consumer_deploy_in, "consumer id")
        return _Rooms({room: queues[room] for room in java_sorted(queues)}, members)


def _grouped(items: Iterable[_Item], room_of: Callable[[_Item], str], subject: str) -> dict[str, tuple[_Item, ...]]:
    rooms: dict[str, list[_Item]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise AllocationError(f"Machine room is null for {subject} {item}")
        rooms.setdefault(room, []).append(item)
    return {room: tuple(found) for room, found in rooms.items()}
