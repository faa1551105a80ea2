import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.protocol.model import DataVersion, VersionWithoutCounterError


@pytest.fixture
def table():
    return ConsumerOffsetManager(now_ms=0)


def commit(table, offset, *, group="g", topic="t", queue_id=0, now_ms=1):
    return table.commit_offset(group, topic, queue_id, offset, now_ms=now_ms)


@pytest.mark.trap("C10")
def test_an_offset_may_be_committed_backwards(table):
    assert commit(table, 10) is None
    assert commit(table, 3) == 10
    assert table.query_offset("g", "t", 0) == 3


def test_what_was_never_committed_is_minus_one(table):
    commit(table, 10)
    assert (table.query_offset("g", "t", 1), table.query_offset("h", "t", 0)) == (-1, -1)
    assert table.query_offsets("h", "t") is None


@pytest.mark.trap("M49")
def test_the_version_steps_every_500_commits_of_all_queues_since_the_start(table):
    for offset in range(499):
        commit(table, offset, queue_id=offset % 4, now_ms=offset)
    assert table.data_version == DataVersion(0, 0, 0)
    commit(table, 1, group="other", now_ms=777)
    assert table.data_version == DataVersion(0, 777, 1)
    again = ConsumerOffsetManager(now_ms=0)
    again.decode(table.encode(), now_ms=0)
    for offset in range(499):
        commit(again, offset)
    assert again.data_version == DataVersion(0, 777, 1)


@pytest.mark.trap("C50")
def test_a_pending_reset_is_what_queries_see_until_a_pull_fetches_it(table):
    commit(table, 100)
    table.assign_reset_offset("g", "t", 0, 40)
    commit(table, 105)
    assert (table.query_offset("g", "t", 0), table.has_offset_reset("g", "t", 0)) == (40, True)
    assert table.query_then_erase_reset_offset("g", "t", 0) == 40
    assert (table.query_offset("g", "t", 0), table.has_offset_reset("g", "t", 0)) == (105, False)
    assert table.query_then_erase_reset_offset("g", "t", 0) is None


def test_illegal_resets_are_ignored(table):
    for group, topic, queue_id, offset in (("", "t", 0, 1), ("g", "", 0, 1), ("g", "t", -1, 1), ("g", "t", 0, -1)):
        table.assign_reset_offset(group, topic, queue_id, offset)
    assert (dict(table.offsets), dict(table.reset_offsets)) == ({}, {})


def test_another_brokers_entries_replace_whole_maps_and_leave_the_rest(table):
    commit(table, 1, queue_id=0)
    commit(table, 2, queue_id=1)
    commit(table, 3, group="local")
    table.put_all({"t@g": {0: 9}}, DataVersion(0, 5, 6))
    assert {key: dict(queues) for key, queues in table.offsets.items()} == {"t@g": {0: 9}, "t@local": {0: 3}}
    assert table.data_version == DataVersion(0, 5, 6)


@pytest.mark.trap("Y19")
def test_asking_for_the_slowest_group_deletes_the_offsets_of_those_that_it_leaves_out(table):
    commit(table, 5, group="slow")
    commit(table, 9)
    assert table.query_min_offset_in_all_group("t", "slow", lambda topic, queue_id: 0) == {0: 9}
    assert table.query_offset("slow", "t", 0) == -1


@pytest.mark.trap("Y19")
def test_a_version_without_counter_cannot_step_and_what_failed_has_changed_the_other_fields():
    with pytest.raises(VersionWithoutCounterError) as failure:
        DataVersion(0, 1, None).next_version(now_ms=7, state_version=3)
    assert failure.value.left == DataVersion(3, 7, None)
    with pytest.raises(VersionWithoutCounterError) as failure:
        DataVersion(0, 1, 4).assign_new_one(DataVersion(3, 7, None))
    assert failure.value.left == DataVersion(3, 7, 4)


def test_groups_and_topics_are_removed_by_their_exact_name(table):
    for group in ("g", "gg"):
        commit(table, 1, group=group)
        commit(table, 1, group=group, topic="u")
    table.remove_offset("g")
    assert sorted(table.offsets) == ["t@gg", "u@gg"]
    table.assign_reset_offset("gg", "t", 0, 4)
    table.clean_offset_by_topic("t")
    assert (sorted(table.offsets), sorted(table.reset_offsets)) == (["u@gg"], ["t@gg"])
    table.remove_offset("gg")
    assert (dict(table.offsets), dict(table.reset_offsets)) == ({}, {})


def test_a_separator_in_a_name_hides_the_entry_from_removal(table):
    commit(table, 5, topic="t@A")
    table.remove_offset("g")
    assert table.query_offset("g", "t@A", 0) == 5


COMMITS = st.tuples(st.sampled_from("gh"), st.sampled_from("tu"), st.integers(0, 3), st.integers(0, 99))


@given(st.lists(COMMITS, max_size=30))
def test_the_file_holds_offsets_and_version_but_no_resets(commits):
    table = ConsumerOffsetManager(now_ms=7, consumer_offset_update_version_step=4)
    last = {}
    for group, topic, queue_id, offset in commits:
        commit(table, offset, group=group, topic=topic, queue_id=queue_id)
        last[group, topic, queue_id] = offset
    table.assign_reset_offset("r", "r", 0, 0)
    again = ConsumerOffsetManager(now_ms=0)
    again.decode(table.encode(), now_ms=0)
    assert {key: again.query_offset(*key) for key in last} == last
    assert again.data_version == table.data_version
    assert again.data_version.counter == len(commits) // 4
    assert dict(again.reset_offsets) == {}


def test_a_file_without_version_gives_a_new_version(table):
    table.decode(json.dumps({"offsetTable": {"t@g": {"2": 9}}}).encode(), now_ms=55)
    assert (table.query_offset("g", "t", 2), table.data_version) == (9, DataVersion(0, 55, 0))
