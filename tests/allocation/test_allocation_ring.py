"""The ring of hashes, bit by bit."""

import pytest

from nodes.allocation.consistent_hash import AllocateConsistentHash, ConsistentHashRouter, md5_hash
from nodes.protocol.model import MessageQueue

QUEUES = [MessageQueue("TopicTest", "broker-a", queue_id) for queue_id in range(8)]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [("c1-0", 3886541579), ("c1-1", 1895315590), ("c1-2", 1268724605), (str(QUEUES[0]), 1987926524)],
)
def test_a_hash_is_four_bytes_of_md5(key, hashed):
    assert md5_hash(key) == hashed


@pytest.mark.parametrize(
    ("cids", "expected"),
    [
        (["c1", "c2", "c3"], [[0, 4, 5, 7], [1, 6], [2, 3]]),
        (["c1", "c3"], [[0, 4, 5, 7], [1, 2, 3, 6]]),
        (["c1", "c2", "c3", "c4"], [[0, 4, 7], [6], [2, 3], [1, 5]]),
    ],
)
def test_the_shares_of_the_worked_examples(cids, expected):
    allocate = AllocateConsistentHash()

    assert [[queue.queue_id for queue in allocate("g", cid, QUEUES, cids)] for cid in cids] == expected


@pytest.mark.trap("C5")
def test_a_doubled_member_has_twice_the_places_and_draws_a_queue_to_itself():
    allocate = AllocateConsistentHash()

    once, twice = (
        [queue.queue_id for queue in allocate("g", "c1", QUEUES, cids)] for cids in (["c1", "c2"], ["c1", "c1", "c2"])
    )

    assert (once, twice) == ([0, 3, 4, 5, 7], [0, 2, 3, 4, 5, 7])


def test_without_places_no_consumer_owns_anything():
    assert AllocateConsistentHash(0)("g", "c1", QUEUES, ["c1"]) == []
    assert ConsistentHashRouter().route_node("x") is None
    with pytest.raises(ValueError, match="virtualNodeCnt :-1"):
        AllocateConsistentHash(-1)


def test_a_node_that_comes_again_adds_places():
    router = ConsistentHashRouter(["a", "b"], 3)
    router.add_node("a", 2)

    places = [*(f"a-{place}" for place in range(5)), *(f"b-{place}" for place in range(3))]
    assert router.ring_keys == sorted(map(md5_hash, places))
    with pytest.raises(ValueError, match="-1"):
        router.add_node("c", -1)
