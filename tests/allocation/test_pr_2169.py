"""The sticky strategy of pull request 2169: what it does right, and its defects, each with the run that shows it."""

from collections import Counter

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st

from nodes.allocation.pr_2169 import AllocateSticky2169, NoSuchElementError
from nodes.allocation.strategy import AllocationError
from nodes.protocol.model import MessageQueue

RETRY = [MessageQueue("%RETRY%g", "broker-a", 0)]


def queues(count, brokers=1):
    names = [f"broker-{number:02}" for number in range(brokers)]
    return [MessageQueue("t", name, queue_id) for name in names for queue_id in range(count // brokers)]


def named(stem, count):
    return [f"{stem}{number:02}" for number in range(count)]


def allocated(mq_all, cids, strategy=None):
    strategy = strategy or AllocateSticky2169()
    for cid in cids:
        strategy.allocate(cid, mq_all, cids)
    return strategy


def ids(mine):
    return None if mine is None else [queue.queue_id for queue in mine]


def shares(strategy, mq_all, cids):
    """What each member is notified."""
    return [ids(strategy.allocate(cid, mq_all, cids)) for cid in cids]


def sizes(strategy, mq_all, cids):
    return [len(mine) for mine in shares(strategy, mq_all, cids)]


def test_when_a_member_leaves_it_allocates_as_the_seed_says():
    strategy = allocated(queues(8), ["C0", "C1", "C2"])

    assert shares(strategy, queues(8), ["C0", "C2"]) == [[0, 3, 6, 4], [2, 5, 1, 7]]


def test_when_that_member_returns_the_shares_stay_uneven():
    strategy = allocated(queues(8), ["C0", "C2"], allocated(queues(8), ["C0", "C1", "C2"]))

    assert sizes(strategy, queues(8), ["C0", "C1", "C2"]) == [4, 2, 2]


@pytest.mark.parametrize(
    ("count", "before", "expected"),
    [
        (12, 3, [4, 4, 2, 2]),
        (16, 4, [4, 4, 4, 2, 2]),
        (32, 5, [7, 4, 6, 6, 6, 3]),
    ],
)
def test_a_joiner_is_levelled_with_one_member_only(count, before, expected):
    cids = named("c", before + 1)
    strategy = allocated(queues(count), cids[:-1])

    assert sizes(strategy, queues(count), cids) == expected


@pytest.mark.parametrize(("before", "spread"), [(10, 4), (12, 3)])
def test_the_spread_after_a_join_among_many(before, spread):
    cids = named("c", before + 1)
    found = sizes(allocated(queues(64), cids[:-1]), queues(64), cids)

    assert max(found) - min(found) == spread


@pytest.mark.parametrize(("count", "before", "spread"), [(12, 3, 4), (16, 4, 4), (64, 10, 7), (64, 12, 6)])
def test_of_two_who_join_at_once_the_last_stays_idle(count, before, spread):
    cids = named("c", before + 2)
    strategy = allocated(queues(count), cids[:-2])
    found = sizes(strategy, queues(count), cids)

    assert found[-1] == 0
    assert max(found) - min(found) == spread
    assert sizes(strategy, queues(count), cids) == found


def test_three_become_five_and_one_of_them_owns_nothing():
    strategy = allocated(queues(12), named("c", 3))

    assert sizes(strategy, queues(12), named("c", 5)) == [4, 4, 2, 2, 0]


@pytest.mark.parametrize(("count", "old", "new"), [(8, "C0 C1", "C0 C9"), (16, "A B C D", "B C D E")])
def test_a_member_that_takes_anothers_place_gets_no_answer_and_the_others_queues_are_nobodys(count, old, new):
    old, new = old.split(), new.split()
    strategy = allocated(queues(count), old)
    stayed = {cid: ids(strategy.allocate(cid, queues(count), old)) for cid in old if cid in new}

    for _ in range(5):
        reported = dict(zip(new, shares(strategy, queues(count), new), strict=True))
        assert reported == {**stayed, new[-1]: None}


@pytest.mark.parametrize("retry", [False, True], ids=["one topic", "and the retry topic"])
@pytest.mark.parametrize(("members", "count"), [(2, 16), (4, 16), (10, 64)])
def test_a_group_that_restarts_as_a_whole_gets_no_answer_for_ever(members, count, retry):
    strategy = AllocateSticky2169()
    for cids in (named("old", members), named("new", members)):
        for _ in range(5):
            # A pass asks for the topic, then for the retry topic.
            reported = {}
            for cid in cids:
                reported[cid] = strategy.allocate(cid, queues(count), cids)
                if retry:
                    strategy.allocate(cid, RETRY, cids)
    assert list(reported.values()) == [None] * members


@pytest.mark.parametrize(("members", "count", "doubly_owned"), [(2, 16, 16), (4, 16, 14), (10, 64, 63)])
def test_of_a_group_whose_new_members_appear_one_by_one_several_own_the_same_queues_for_ever(
    members, count, doubly_owned
):
    mq_all, new = queues(count), named("new", members)
    strategy = allocated(mq_all, named("old", members))

    with pytest.raises(NoSuchElementError):
        strategy.allocate(new[0], mq_all, new[:1])
    for present in range(1, members + 1):
        for _ in range(2):
            allocated(mq_all, new[:present], strategy)

    for _ in range(5):
        owners = Counter(queue for cid in new for queue in dict.fromkeys(strategy.allocate(cid, mq_all, new)))
        assert sum(several > 1 for several in owners.values()) == doubly_owned


@pytest.mark.parametrize(("members", "count"), [(2, 16), (4, 16), (10, 64)])
def test_calls_for_the_retry_topic_in_between_end_that_double_ownership(members, count):
    mq_all, new = queues(count), named("new", members)
    strategy = allocated(mq_all, named("old", members))
    reported = {}
    for present in range(1, members + 1):
        for cid in new[:present] * 2:
            for topic_queues in (mq_all, RETRY):
                try:
                    reported[cid, topic_queues[0].topic] = strategy.allocate(cid, topic_queues, new[:present])
                except NoSuchElementError:
                    assert present == 1
    owners = Counter(queue for cid in new for queue in dict.fromkeys(reported[cid, "t"]) if queue.topic == "t")

    assert max(owners.values()) == 1


def test_a_larger_group_that_lost_members_forgets_them_and_allocates_what_was_theirs():
    strategy = allocated(queues(6), ["A", "B"])

    assert shares(strategy, queues(6), ["B", "C", "D"]) == [[3, 5], [0, 4], [2, 1]]


def test_what_the_error_leaves_unassigned_is_listed_once_more_by_the_next_call():
    strategy = allocated(queues(4), ["a", "b"])
    with pytest.raises(NoSuchElementError):
        strategy.allocate("c", queues(4), ["c"])

    assert shares(strategy, queues(4), ["c"]) == [[0, 1, 2, 3, 0, 1, 2, 3]]


def test_a_call_for_the_retry_topic_gets_a_queue_of_the_other_topic_and_costs_that_its_history():
    strategy = allocated(queues(8), ["C0", "C1"])
    before = shares(strategy, queues(8), ["C0", "C1"])

    assert strategy.allocate("C0", RETRY, ["C0", "C1"]) == [MessageQueue("t", "broker-00", 0)]
    # The retry queue itself is never assigned.
    assert strategy.allocate("C1", RETRY, ["C0", "C1"]) == []
    assert before == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert shares(strategy, queues(8), ["C0", "C1"]) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    swapped = allocated(queues(8), ["C0", "C1"], allocated(queues(8), ["C1"]))
    swapped.allocate("C1", RETRY, ["C0", "C1"])
    assert shares(swapped, queues(8), ["C0", "C1"]) != shares(
        allocated(queues(8), ["C0", "C1"], allocated(queues(8), ["C1"])), queues(8), ["C0", "C1"]
    )


def test_the_queues_of_a_broker_that_is_gone_stay_assigned_if_another_has_the_same_numbers():
    strategy = allocated(queues(8, brokers=2), ["C0", "C1"])

    for _ in range(3):
        lines = [strategy.allocate(cid, queues(4), ["C0", "C1"]) for cid in ("C0", "C1")]
        assert sorted(queue for mine in lines for queue in mine) == queues(8, brokers=2)


def test_a_allocation_is_never_taken_back_because_its_copy_has_the_same_lists():
    """Levelling makes shares more even or leaves them, so with a true copy nothing would be taken back either."""
    strategy = allocated(queues(12), named("c", 3))
    before = shares(strategy, queues(12), named("c", 3))

    after = shares(strategy, queues(12), named("c", 4))

    assert [mine for mine in after[:3] if mine not in before] == [[8, 11]]
    assert after[3] == [2, 5]


def test_another_broker_starts_from_nothing_and_allocates_otherwise():
    first = allocated(queues(8), ["C0", "C2"], allocated(queues(8), ["C0", "C1", "C2"]))
    another = AllocateSticky2169()

    assert shares(first, queues(8), ["C0", "C2"]) != shares(another, queues(8), ["C0", "C2"])


def test_while_clients_know_different_queues_a_quarter_of_them_is_nobodys():
    cids = ["A", "B", "C", "D"]
    strategy = allocated(queues(8), cids)
    lines = [strategy.allocate(cid, queues(16 if cid in "AB" else 8), cids) for cid in cids]

    owned = Counter(queue for mine in lines for queue in mine)
    assert (len(owned), max(owned.values())) == (12, 1)


def test_one_who_is_no_member_gets_nothing_and_changes_nothing():
    strategy = allocated(queues(4), ["a", "b"])

    assert strategy.allocate("c", queues(4), ["a"]) == []
    assert shares(strategy, queues(4), ["a", "b"]) == [[0, 2], [1, 3]]
    for nothing in (("", queues(4), ["a"]), ("a", [], ["a"]), ("a", queues(4), [])):
        with pytest.raises(AllocationError):
            strategy.allocate(*nothing)


def test_with_a_member_listed_twice_it_allocates_for_every_call():
    strategy = allocated(queues(4), ["a", "b"])

    assert shares(strategy, queues(4), ["a", "a", "b"]) == [[0, 2], [0, 2], [1, 3]]


# What a strategy should keep, and what a short sequence of memberships breaks.

steps = st.lists(
    st.tuples(st.sampled_from([4, 8, 12]), st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)),
    min_size=1,
    max_size=6,
)


def reported_after(sequence):
    strategy = AllocateSticky2169()
    for count, cids in sequence:
        members = sorted(cids)
        reported = {cid: strategy.allocate(cid, queues(count), members) for cid in members}
    return sequence[-1][0], reported


def is_not_complete(sequence):
    count, reported = reported_after(sequence)
    return sorted(queue for mine in reported.values() for queue in mine or ()) != queues(count)


def is_not_balanced(sequence):
    held = [len(mine or ()) for mine in reported_after(sequence)[1].values()]
    return max(held) - min(held) > 1


def fails(sequence):
    try:
        reported_after(sequence)
    except NoSuchElementError:
        return True
    return False


def unless_it_fails(broken):
    return lambda sequence: not fails(sequence) and broken(sequence)


def is_not_a_fixed_point(sequence):
    """The members ask twice, with the same queues, and are reported otherwise; errors before that are survived."""
    strategy = AllocateSticky2169()
    lines = []
    for count, cids in (*sequence, sequence[-1]):
        lines.append({})
        for cid in sorted(cids):
            try:
                lines[-1][cid] = strategy.allocate(cid, queues(count), sorted(cids))
            except NoSuchElementError:
                lines[-1] = {}
    return bool(lines[-2]) and lines[-2] != lines[-1]


DEFECTS = {
    "a queue has no owner or two": unless_it_fails(is_not_complete),
    "shares differ by more than one": unless_it_fails(is_not_balanced),
    "no member is first": fails,
    "asked again it answers otherwise": is_not_a_fixed_point,
}


@pytest.mark.parametrize("broken", DEFECTS.values(), ids=DEFECTS)
def test_some_sequence_of_memberships_breaks_each_rule_of_a_good_strategy(broken):
    sequence = find(steps, broken, settings=settings(max_examples=2_000, derandomize=True, database=None))

    assert broken(sequence)
