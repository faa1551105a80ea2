import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.strategy import AllocationError
from nodes.protocol.model import MessageQueue


def queues(count):
    return [MessageQueue("t", "b", queue_id) for queue_id in range(count)]


def shares(count, cids):
    return {cid: [queue.queue_id for queue in allocate_averagely("g", cid, queues(count), cids)] for cid in cids}


@pytest.mark.parametrize(
    ("count", "members", "expected"),
    [
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (2, 4, [[0], [1], [], []]),
        (10, 4, [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]),
    ],
)
def test_the_shares_of_the_worked_examples(count, members, expected):
    assert list(shares(count, [f"c{i}" for i in range(members)]).values()) == expected


@pytest.mark.trap("C5")
def test_a_member_listed_twice_leaves_a_share_to_no_one():
    assert shares(8, ["c1", "c1", "c2"]) == {"c1": [0, 1, 2], "c2": [6, 7]}


@pytest.mark.trap("C3")
def test_one_who_is_not_listed_gets_nothing():
    assert allocate_averagely("g", "me", queues(4), ["other"]) == []


@pytest.mark.trap("C4")
@pytest.mark.parametrize(
    ("cid", "count", "cids", "message"),
    [("", 1, ["c"], "currentCID"), ("c", 0, ["c"], "mqAll"), ("c", 1, [], "cidAll"), ("", 0, [], "currentCID")],
)
def test_nothing_to_work_with_is_an_error(cid, count, cids, message):
    with pytest.raises(AllocationError, match=message):
        allocate_averagely("g", cid, queues(count), cids)


@given(st.integers(1, 40), st.integers(1, 12))
def test_the_shares_are_a_partition_into_runs_that_differ_by_one_at_most(count, members):
    runs = list(shares(count, [f"c{i:02}" for i in range(members)]).values())
    assert [queue_id for run in runs for queue_id in run] == list(range(count))
    assert max(map(len, runs)) - min(map(len, runs)) <= 1
    assert sorted(runs, key=len, reverse=True) == runs
