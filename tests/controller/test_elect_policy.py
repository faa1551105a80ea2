"""Who is elected: epoch before offset before priority, by differences of 32 bits, ties as Java orders its sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.controller.tables.elect_policy import elect
from nodes.controller.tables.heartbeats import ReplicaLiveInfo
from nodes.controller.tables.tree_set import first_of_tree_set

GIB = 2**30


def info(epoch=1, max_offset=0, priority=0):
    return ReplicaLiveInfo("", 0, 0, None, epoch, max_offset, 0, priority)


def among(live, in_sync=None, all_replicas=(), old_master=None, prefer=None):
    return elect(
        list(live) if in_sync is None else in_sync,
        all_replicas,
        old_master=old_master,
        prefer=prefer,
        live_info=live.get,
    )


def test_epoch_goes_before_offset_and_offset_before_priority():
    assert among({1: info(epoch=1, max_offset=9), 2: info(epoch=2)}) == 2
    assert among({1: info(max_offset=1, priority=0), 2: info(max_offset=2, priority=9)}) == 2
    assert among({1: info(priority=5), 2: info(priority=4)}) == 2


def test_the_old_master_stays_if_it_lives_in_the_set_and_no_one_else_is_designated():
    live = {1: info(), 2: info(epoch=9)}

    assert among(live, old_master=1) == 1
    assert among(live, old_master=1, prefer=2) == 2
    assert among(live, in_sync=[2], old_master=1) == 2
    assert among(live, old_master=3) == 2


def test_a_designated_replica_or_no_one():
    assert among({1: info()}, prefer=2) is None
    assert among({1: info(), 2: info()}, in_sync=[1], prefer=2) is None
    assert among({1: info(), 2: info()}, in_sync=[1], all_replicas=[1, 2], prefer=2) == 2


def test_those_in_sync_go_before_all_others():
    live = {1: info(), 2: info(epoch=9)}

    assert among(live, in_sync=[1], all_replicas=[1, 2]) == 1
    assert among(live, in_sync=[3], all_replicas=[1, 2]) == 2
    assert among(live, in_sync=[3]) is None


@pytest.mark.trap("K7")
def test_an_offset_that_is_2_gib_ahead_loses_and_one_that_is_4_gib_ahead_is_a_tie():
    assert among({1: info(max_offset=0), 2: info(max_offset=2 * GIB - 1)}) == 2
    assert among({1: info(max_offset=0), 2: info(max_offset=3 * GIB)}) == 1
    assert among({1: info(max_offset=0, priority=9), 2: info(max_offset=4 * GIB, priority=0)}) == 1


def test_of_equals_the_first_of_a_java_hash_set_wins():
    assert among({2: info(), 17: info(), 33: info()}) == 17
    assert among({1: info(), 16: info()}) == 16


@given(st.lists(st.integers(-5, 5)))
def test_with_a_sound_comparator_the_first_of_a_tree_is_the_first_of_the_smallest(keys):
    items = list(enumerate(keys))

    first = first_of_tree_set(items, lambda element, other: element[1] - other[1])

    assert first == min(items, key=lambda item: item[1], default=None)


@pytest.mark.trap("K7")
def test_offsets_more_than_2_gib_apart_are_ordered_as_java_balances_its_tree():
    offsets = [0, GIB, GIB + GIB // 2, 2 * GIB + 1]

    # Without the rotation that lifts the second, the fourth would never meet the first, and the third would win.
    assert among({place: info(max_offset=offset) for place, offset in enumerate(offsets, 1)}) == 4
