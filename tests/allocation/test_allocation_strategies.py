"""What the strategies have in common, over whole groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.by_config import AllocateByConfig
from nodes.allocation.by_machine_room import AllocateByMachineRoom
from nodes.allocation.consistent_hash import AllocateConsistentHash
from nodes.allocation.machine_room_nearby import AllocateMachineRoomNearby
from nodes.allocation.strategies import RoomsByPrefix, strategy_name, strategy_of
from nodes.allocation.strategy import AllocationError
from nodes.config import STATEFUL, AllocateStrategy, ConsumerConfig
from nodes.fields import FieldError
from nodes.protocol.model import MessageQueue

ROOMS = RoomsByPrefix(tuple((f"r{number}@", f"r{number}") for number in range(3)))
DIVIDING = {
    "AVG": allocate_averagely,
    "AVG_BY_CIRCLE": allocate_by_circle,
    "CONSISTENT_HASH": AllocateConsistentHash(),
    "NEARBY-AVG": AllocateMachineRoomNearby(allocate_averagely, ROOMS),
    "NEARBY-CONSISTENT_HASH": AllocateMachineRoomNearby(AllocateConsistentHash(), ROOMS),
}
CHECKING = {**DIVIDING, "MACHINE_ROOM": AllocateByMachineRoom(("r0",))}


def queues(count, brokers=3):
    named = [MessageQueue("t", f"r{number % brokers}@b", number // brokers) for number in range(count)]
    return sorted(named)


members = st.lists(st.builds("r{}@{}".format, st.integers(0, 2), st.integers(0, 99)), min_size=1, unique=True).map(
    sorted
)
a_strategy = pytest.mark.parametrize("strategy", DIVIDING.values(), ids=DIVIDING.keys())


@a_strategy
@given(count=st.integers(1, 60), cids=members)
def test_every_queue_has_exactly_one_owner(strategy, count, cids):
    owned = [queue for cid in cids for queue in strategy("g", cid, queues(count), cids)]

    assert sorted(owned) == queues(count)


@pytest.mark.parametrize("strategy", [allocate_averagely, allocate_by_circle])
@given(count=st.integers(1, 60), cids=members)
def test_shares_that_are_dealt_out_differ_by_one_at_most(strategy, count, cids):
    sizes = [len(strategy("g", cid, queues(count), cids)) for cid in cids]

    assert max(sizes) - min(sizes) <= 1


@pytest.mark.trap("C4")
@pytest.mark.parametrize("strategy", CHECKING.values(), ids=CHECKING.keys())
@pytest.mark.parametrize(
    ("cid", "count", "cids", "message"),
    [("", 0, [], "currentCID"), ("r0@1", 0, [], "mqAll"), ("r0@1", 1, [], "cidAll")],
)
def test_nothing_to_work_with_is_an_error_and_the_member_is_looked_at_first(strategy, cid, count, cids, message):
    with pytest.raises(AllocationError, match=message):
        strategy("g", cid, queues(count), cids)


@pytest.mark.trap("C3")
@pytest.mark.parametrize("strategy", CHECKING.values(), ids=CHECKING.keys())
def test_one_who_is_not_listed_gets_nothing_whatever_the_rule(strategy):
    assert strategy("g", "r0@9", queues(6), ["r0@1", "r1@2"]) == []


@pytest.mark.trap("C5")
def test_in_a_circle_the_turns_of_a_doubled_member_fall_to_no_one():
    owned = {cid: [q.queue_id for q in allocate_by_circle("g", cid, queues(8, 1), ["a", "a", "b"])] for cid in "ab"}

    assert owned == {"a": [0, 3, 6], "b": [2, 5]}


@given(count=st.integers(1, 40), cids=members, leaver=st.integers(0, 200))
def test_when_a_member_leaves_the_ring_only_its_queues_move(count, cids, leaver):
    gone = cids[leaver % len(cids)]
    left = [cid for cid in cids if cid != gone]
    allocate = AllocateConsistentHash()

    for cid in left:
        before = allocate("g", cid, queues(count), cids)
        assert [queue for queue in before if queue not in allocate("g", cid, queues(count), left)] == []


def test_a_list_that_its_owner_changes_is_allocated_again():
    allocate, listed, cids = AllocateConsistentHash(), queues(8), ["a"]
    assert len(allocate("g", "a", listed, cids)) == 8

    listed.pop()

    assert len(allocate("g", "a", listed, cids)) == 7


@pytest.mark.trap("C44")
@pytest.mark.parametrize("topic", ["t", "%RETRY%g"])
def test_configured_queues_are_handed_out_whatever_the_topic_and_whoever_asks(topic):
    configured = tuple(queues(2))
    allocate = AllocateByConfig(configured)

    shares = [allocate("g", cid, [MessageQueue(topic, "b", 0)], ["a"]) for cid in ("a", "stranger", "")]

    assert shares == [list(configured)] * 3
    assert AllocateByConfig(None)("g", "a", queues(2), ["a"]) == []


STATELESS = [strategy for strategy in AllocateStrategy if strategy not in STATEFUL]


@pytest.mark.parametrize("strategy", STATELESS)
def test_each_configured_strategy_allocates_under_its_own_name(strategy):
    config = ConsumerConfig(
        allocate_message_queue_strategy=strategy,
        inner_allocate_strategy="AVG_BY_CIRCLE",
        message_queue_list="t@r0@b@0, t@r0@b@1",
        consumeridcs="r0, r1",
        machine_rooms="r0=r0@, r0=127.0.0.1@",
    )

    share = strategy_of(config)("g", "127.0.0.1@1-0", queues(2, 1), ["127.0.0.1@1-0"])

    assert share == queues(2, 1)
    assert strategy_of(config) is strategy_of(ConsumerConfig(**{name: getattr(config, name) for name in OPTIONS}))
    nearby = strategy is AllocateStrategy.MACHINE_ROOM_NEARBY
    assert strategy_name(config) == ("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE" if nearby else strategy)


OPTIONS = (
    "allocate_message_queue_strategy",
    "inner_allocate_strategy",
    "message_queue_list",
    "consumeridcs",
    "machine_rooms",
)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("message_queue_list", "t@b"),
        ("message_queue_list", "t@b@x"),
        ("consumeridcs", ["r0"]),
        ("machine_rooms", "r0"),
        ("inner_allocate_strategy", "MACHINE_ROOM_NEARBY"),
        ("virtual_node_cnt", -1),
    ],
)
def test_an_option_of_a_strategy_that_cannot_be_read_is_refused(option, value):
    with pytest.raises(FieldError):
        ConsumerConfig(**{option: value})
