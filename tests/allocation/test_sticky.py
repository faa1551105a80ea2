"""The sticky allocation: who keeps what, who gets what, and what it costs."""

import cProfile
import pstats
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.sticky import allocate_sticky
from nodes.protocol.model import MessageQueue


def queues(count, broker_name="b", topic="t", first=1):
    return [MessageQueue(topic, broker_name, number) for number in range(first, first + count)]


def shares(owners, cids=None):
    """Member -> the numbers of its queues."""
    found = {cid: [] for cid in cids or sorted(dict.fromkeys(owners.values()))}
    for queue, cid in owners.items():
        found[cid].append(queue.queue_id)
    return found


def averagely(mq_all, cids):
    return {queue: cid for cid in cids for queue in allocate_averagely("g", cid, mq_all, cids)}


def balance_degree(owners, cids):
    sizes = [len(mine) for mine in shares(owners, cids).values()]
    mean = sum(sizes) / len(sizes)
    return round(sqrt(sum((size - mean) ** 2 for size in sizes) / len(sizes)), 3)


def stickiness(before, after):
    return round(sum(before.get(queue) == cid for queue, cid in after.items()) / len(after), 3)


def test_when_one_of_three_leaves_its_queues_are_allocated_among_the_two_as_in_the_seed():
    first = allocate_sticky(queues(8), ["C0", "C1", "C2"], {})
    after = allocate_sticky(queues(8), ["C0", "C2"], first)

    assert shares(first) == {"C0": [1, 4, 7], "C1": [2, 5, 8], "C2": [3, 6]}
    assert shares(after) == {"C0": [1, 4, 5, 7], "C2": [2, 3, 6, 8]}


def test_one_who_returns_gets_the_last_queues_of_the_others():
    before = allocate_sticky(queues(8), ["C0", "C2"], allocate_sticky(queues(8), ["C0", "C1", "C2"], {}))

    after = allocate_sticky(queues(8), ["C0", "C1", "C2"], before)

    assert shares(after) == {"C0": [1, 4, 5], "C1": [7, 8], "C2": [2, 3, 6]}


def test_of_equal_shares_the_first_member_receives_and_the_last_one_gives():
    before = allocate_sticky(queues(4), ["a", "b"], {})

    assert shares(allocate_sticky(queues(4), ["a", "b", "c"], before)) == {"a": [1, 3], "b": [2], "c": [4]}
    assert shares(allocate_sticky(queues(4), ["A", "B", "a", "b"], before)) == {"A": [4], "B": [3], "a": [1], "b": [2]}


CASES = {
    "8 queues, C1 of three leaves": (8, 8, "C0 C1 C2", "C0 C2", 0.0, 0.625, 0.625),
    "8 queues, a third joins": (8, 8, "C0 C1", "C0 C1 C2", 0.471, 0.75, 0.625),
    "12 queues, C1 of three leaves": (12, 12, "C1 C2 C3", "C2 C3", 0.0, 0.667, 0.5),
    "12 queues, three become five": (12, 12, "C1 C2 C3", "C1 C2 C3 C4 C5", 0.49, 0.667, 0.417),
    "C1 is replaced by C9": (8, 8, "C0 C1", "C0 C9", 0.0, 0.5, 0.5),
    "4 queues become 8": (4, 8, "C0 C1 C2", "C0 C1 C2", 0.471, 0.5, 0.25),
}


@pytest.mark.parametrize(("few", "many", "old", "new", "bd", "sticky", "avg"), CASES.values(), ids=CASES)
def test_balance_and_stickiness_of_the_worked_examples_next_to_avg(few, many, old, new, bd, sticky, avg):
    old, new = old.split(), new.split()
    before = allocate_sticky(queues(few), old, {})
    after = allocate_sticky(queues(many), new, before)

    assert (balance_degree(after, new), stickiness(before, after)) == (bd, sticky)
    assert stickiness(averagely(queues(few), old), averagely(queues(many), new)) == avg


def test_the_shares_of_the_worked_examples():
    twelve = allocate_sticky(queues(12), ["C1", "C2", "C3"], {})
    eight = allocate_sticky(queues(8), ["C0", "C1"], {})

    assert shares(allocate_sticky(queues(12), ["C2", "C3"], twelve)) == {
        "C2": [1, 2, 5, 7, 8, 11],
        "C3": [3, 4, 6, 9, 10, 12],
    }
    assert shares(allocate_sticky(queues(8), ["C0", "C1", "C2"], eight)) == {
        "C0": [1, 3, 5],
        "C1": [2, 4, 6],
        "C2": [7, 8],
    }
    assert shares(allocate_sticky(queues(8), ["C0", "C9"], eight)) == {"C0": [1, 3, 5, 7], "C9": [2, 4, 6, 8]}


def test_members_and_brokers_are_in_the_order_of_java_not_of_python():
    # Java compares UTF-16 units: a smiley is two of them, which come before the private character.
    smiley, private = "\U0001f600", "\ue000"
    mq_all = [MessageQueue("t", name, 0) for name in (private, smiley)]

    owners = allocate_sticky(mq_all, [private, smiley], {})

    assert [(queue.broker_name, cid) for queue, cid in owners.items()] == [(smiley, smiley), (private, private)]


def test_what_is_listed_twice_counts_once_and_without_members_no_consumer_owns_anything():
    owners = allocate_sticky(queues(3) * 2, ["a", "a", "b"], {})

    assert shares(owners) == {"a": [1, 3], "b": [2]}
    assert allocate_sticky(queues(3), [], owners) == {}
    assert allocate_sticky([], ["a"], owners) == {}


members = st.lists(st.sampled_from("abcdefghij"), min_size=1, unique=True)
everywhere = queues(12) + queues(12, "B2") + queues(12, topic="é\ue000")
some_queues = st.lists(st.sampled_from(everywhere), min_size=1, unique=True) | st.integers(1, 36).map(
    lambda count: everywhere[:count]
)
memberships = st.lists(st.tuples(some_queues, members), min_size=1, max_size=8)


def naive(mq_all, cids, previous):
    """The algorithm as it is specified, with a search for each step."""
    own = {cid: [q for q in sorted(mq_all) if previous.get(q) == cid] for cid in sorted(cids)}
    for queue in sorted(mq_all):
        if previous.get(queue) not in own:
            own[min(own, key=lambda cid: (len(own[cid]), cid))].append(queue)
    while max(map(len, own.values())) - min(map(len, own.values())) > 1:
        fewest = min(own, key=lambda cid: (len(own[cid]), cid))
        maximum = max(own, key=lambda cid: (len(own[cid]), cid))
        moved = max(own[maximum])
        own[maximum].remove(moved)
        own[fewest].append(moved)
    return {queue: cid for cid, mine in own.items() for queue in mine}


@given(memberships)
def test_it_allocates_as_specified_step_by_step(steps):
    owners = {}
    for mq_all, cids in steps:
        expected = naive(mq_all, cids, owners)
        owners = allocate_sticky(mq_all, cids, owners)

        assert owners == expected


@given(some_queues, members, st.data())
def test_it_allocates_as_specified_after_any_allocation_however_uneven(mq_all, cids, data):
    previous = data.draw(st.dictionaries(st.sampled_from(everywhere), st.sampled_from("abcdefghijk")))

    assert allocate_sticky(mq_all, cids, previous) == naive(mq_all, cids, previous)


def most_that_can_stay(mq_all, cids, previous):
    """How many queues can stay in a balanced division: the largest shares may keep one more."""
    retained = sorted((sum(previous.get(queue) == cid for queue in mq_all) for cid in cids), reverse=True)
    size, longer = divmod(len(mq_all), len(cids))
    return sum(min(held, size + (place < longer)) for place, held in enumerate(retained))


@given(memberships)
def test_no_balanced_allocation_moves_fewer_queues(steps):
    owners = {}
    for mq_all, cids in steps:
        after = allocate_sticky(mq_all, cids, owners)

        assert sum(owners.get(queue) == cid for queue, cid in after.items()) == most_that_can_stay(mq_all, cids, owners)
        owners = after


def calls(count, members):
    """Calls, of functions in C too, of an allocation after one of the members has left."""
    mq_all, cids = queues(count), [f"c{number:05}" for number in range(members)]
    before = allocate_sticky(mq_all, cids, {})
    profile = cProfile.Profile()
    profile.enable()
    allocate_sticky(mq_all, cids[1:], before)
    profile.disable()
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_what_it_costs_grows_with_the_queues_and_hardly_with_the_members():
    few, twice, many_members = calls(2_000, 100), calls(4_000, 100), calls(4_000, 2_000)

    assert twice < 2.1 * few
    assert many_members < 1.2 * twice
    assert twice < 12 * 4_000


def test_a_queue_that_no_longer_exists_is_nobodys():
    steps = [queues(8), queues(4), queues(8)]
    owners = {}
    allocated = []
    for mq_all in steps:
        owners = allocate_sticky(mq_all, ["a", "b"], owners)
        allocated.append(shares(owners))

    assert all(len(mine) == len(other) for item in allocated for mine, other in pairwise(item.values()))
    assert allocated[1] == {"a": [1, 3], "b": [2, 4]}
