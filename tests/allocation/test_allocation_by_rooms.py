"""The two strategies that know rooms."""

import pytest

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_machine_room import AllocateByMachineRoom, RoomsNotSetError
from nodes.allocation.machine_room_nearby import AllocateMachineRoomNearby
from nodes.allocation.strategies import RoomsByPrefix
from nodes.allocation.strategy import AllocationError
from nodes.protocol.model import MessageQueue

NEARBY = AllocateMachineRoomNearby(
    allocate_averagely, RoomsByPrefix((("r1", "r1"), ("r2", "r2"), ("r3", "r3"), ("r4", "r4")))
)


def queues(*brokers, count=4):
    return [MessageQueue("t", broker, queue_id) for broker in brokers for queue_id in range(count)]


def shares(strategy, mq_all, cids):
    return {cid: [(q.broker_name, q.queue_id) for q in strategy("g", cid, mq_all, cids)] for cid in cids}


def test_what_is_left_over_of_the_kept_queues_is_dealt_out_and_other_rooms_have_no_owner():
    found = shares(
        AllocateByMachineRoom(("r1",)), [*queues("r1@a", "r2@b"), *queues("plain", count=2)], ["a", "b", "c"]
    )

    assert found == {"a": [("r1@a", 0), ("r1@a", 3)], "b": [("r1@a", 1)], "c": [("r1@a", 2)]}


@pytest.mark.trap("X5")
def test_rooms_that_were_never_set_matter_only_to_a_name_of_two_parts():
    strategy = AllocateByMachineRoom(None)

    assert shares(strategy, queues("plain", "r1@", "a@b@c"), ["a"]) == {"a": []}
    for name in ("r1@a", "@a", "r1@a@"):
        with pytest.raises(RoomsNotSetError, match="consumeridcs was never set"):
            strategy("g", "a", queues(name), ["a"])


def test_an_empty_room_is_allocated_among_all_and_its_remainder_goes_to_the_first():
    found = shares(NEARBY, queues("r1-a", "r2-b", "r3-c"), ["r1-c1", "r1-c2", "r2-c1"])

    assert found == {
        "r1-c1": [("r1-a", 0), ("r1-a", 1), ("r3-c", 0), ("r3-c", 1)],
        "r1-c2": [("r1-a", 2), ("r1-a", 3), ("r3-c", 2)],
        "r2-c1": [("r2-b", 0), ("r2-b", 1), ("r2-b", 2), ("r2-b", 3), ("r3-c", 3)],
    }


def test_each_empty_room_is_allocated_for_itself():
    found = shares(NEARBY, queues("r1-a", "r2-b", count=3), ["r4-c1", "r4-c2"])

    assert {cid: len(share) for cid, share in found.items()} == {"r4-c1": 4, "r4-c2": 2}


@pytest.mark.parametrize(("broker", "cids"), [("x", ["r1-c1"]), ("r1-a", ["r1-c1", "x"])])
def test_whoever_is_in_no_room_stops_the_allocation_of_all(broker, cids):
    with pytest.raises(AllocationError, match="Machine room is null for"):
        NEARBY("g", "r1-c1", queues(broker), cids)
