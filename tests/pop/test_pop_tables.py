"""What pops leave behind on a broker: buffer, order, counters and locks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.pop.buffer import NOT_STORED, PopBufferMerge, PopBufferOptions
from nodes.broker.tables.pop.check_point import (
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    batch_ack_from_json,
    check_point_from_json,
    get_bit,
    set_bit,
)
from nodes.broker.tables.pop.consumer_order_info import ILLEGAL_OFFSET, NOTHING_TO_COMMIT, ConsumerOrderInfoManager
from nodes.broker.tables.pop.polling import PollingResult, PopLongPolling, PopPollingOptions
from nodes.broker.tables.pop.queue_locks import PopQueueLocks

BROKER = "bk-a"
KEY = "t@g@0"


def popped(start_offset=0, num=2, *, pop_time_ms=1000, queue_id=0):
    return PopCheckPoint("t", "g", queue_id, start_offset, pop_time_ms, 60_000, num, BROKER, tuple(range(num)))


def acked(ck, offset):
    return AckMsg(offset, ck.start_offset, ck.cid, ck.topic, ck.queue_id, ck.pop_time_ms, ck.broker_name)


def buffer(**options):
    return PopBufferMerge(PopBufferOptions(**options))


def committed(pops):
    offsets = []
    pops.scan_commit_offset(lambda found: not offsets.append(found.next_begin_offset))
    return offsets


@pytest.mark.trap("P1")
def test_the_offset_of_a_pop_is_committed_when_its_check_point_is_stored_and_nothing_is_acknowledged():
    pops = buffer()
    found = pops.add_ck_just_offset(popped(), 0, 2)

    found.stored(17)

    assert committed(pops) == [2]
    assert list(pops.scan()) == []
    assert pops.buffer == {}


@pytest.mark.trap("P2")
def test_a_check_point_that_was_refused_blocks_the_offsets_behind_it_and_each_scan_gives_it_again():
    pops = buffer()
    refused, behind = pops.add_ck_just_offset(popped(), 0, 2), pops.add_ck_just_offset(popped(2), 0, 4)

    refused.stored(None)
    behind.stored(17)

    assert committed(pops) == []
    assert list(pops.scan()) == list(pops.scan()) == [refused]
    assert refused.revive_queue_offset == NOT_STORED
    refused.stored(18)
    assert committed(pops) == [2, 4]


@pytest.mark.trap("P3")
def test_queue_1_from_offset_10_and_queue_11_from_offset_0_collide_at_one_instant():
    pops = buffer()

    assert pops.add_ck_just_offset(popped(10, queue_id=1), 0, 12)
    assert pops.add_ck_just_offset(popped(10, queue_id=11, pop_time_ms=1001), 0, 12)
    assert pops.add_ck_just_offset(popped(0, queue_id=11), 0, 2) is None
    assert "t@g@11" in pops.offset_queues
    assert len(pops.offset_queues["t@g@11"]) == 1


@pytest.mark.trap("P8")
def test_the_buffer_writes_a_batch_without_a_broker_name_and_a_foreign_reader_takes_its_own():
    pops = buffer(enable_pop_buffer_merge=True, enable_pop_batch_ack=True)
    ck = popped(num=3)
    found = pops.add_ck(ck, 0, 3, 1000)
    assert pops.add_ak(acked(ck, 0), 1000)
    assert pops.add_ak(acked(ck, 2), 1000)

    ((places, batch),) = pops.acks_of(found)
    read = batch_ack_from_json(batch.to_json())

    assert (places, read.ack_offset_list, read.broker_name) == ((0, 2), (0, 2), None)
    assert read.merge_key(BROKER) == ck.merge_key
    assert read.merge_key("bk-b") != ck.merge_key


def test_a_pop_whose_messages_are_acknowledged_in_memory_is_never_stored():
    pops = buffer(enable_pop_buffer_merge=True)
    ck = popped()
    pops.add_ck(ck, 0, 2, 1000)

    assert [pops.add_ak(acked(ck, offset), 1000) for offset in (0, 1)] == [True, True]
    assert committed(pops) == [2]
    assert list(pops.scan()) == []


@pytest.mark.parametrize(("at_ms", "taken"), [(9500, True), (9501, False)])
def test_an_acknowledgement_is_taken_in_memory_for_8500_ms(at_ms, taken):
    pops = buffer(enable_pop_buffer_merge=True)
    pops.add_ck(popped(), 0, 2, 1000)

    assert pops.add_ak(acked(popped(), 0), at_ms) is taken


def test_after_a_slow_scan_nothing_is_merged_until_all_is_finished():
    pops = buffer(enable_pop_buffer_merge=True)
    retained = pops.add_ck(popped(), 0, 2, 1000)
    pops.scanned(2001)

    assert pops.add_ck(popped(2), 0, 4, 1000) is None
    assert pops.leaves_memory(retained, 1000)
    retained.stored(0)
    assert list(pops.scan()) == []
    pops.serve_again()
    assert not pops.serving
    assert committed(pops) == [2]
    pops.serve_again()
    assert pops.serving


def test_a_queue_that_was_not_popped_for_five_minutes_loses_the_offsets_that_wait():
    pops = buffer()
    pops.add_ck_just_offset(popped(), 0, 2)

    pops.scan_garbage(lambda _: True, lambda _: True, 301_000)
    assert pops.get_latest_offset(KEY) == 2
    pops.scan_garbage(lambda _: True, lambda _: True, 301_001)
    assert pops.get_latest_offset(KEY) == -1


@pytest.mark.trap("P37")
def test_a_lock_is_forgotten_a_minute_after_it_was_taken_although_it_is_held():
    locks = PopQueueLocks()
    assert locks.try_lock(KEY, 0)

    locks.clean_unused_lock(60_000)
    assert not locks.try_lock(KEY, 60_000)
    locks.clean_unused_lock(60_001)
    assert locks.try_lock(KEY, 60_001)


def orders(offsets=(5, 6, 7), *, attempt_id=None):
    table = ConsumerOrderInfoManager()
    table.update(attempt_id, "t", "g", 0, pop_time_ms=0, invisible_time_ms=1000, offsets=offsets, now_ms=0)
    return table


def is_blocked(table, now_ms, attempt_id=None):
    return table.check_block(attempt_id, "t", "g", 0, invisible_time_ms=1000, now_ms=now_ms)


def test_an_orderly_queue_is_blocked_until_its_batch_is_acknowledged_or_visible():
    table = orders()

    assert [is_blocked(table, at_ms) for at_ms in (0, 999, 1000)] == [True, True, False]
    assert [table.commit_and_next("t", "g", 0, offset, 0) for offset in (6, 5, 7)] == [5, 7, 8]
    assert not is_blocked(table, 0)


def test_an_acknowledgement_of_another_batch_commits_nothing_and_of_an_unknown_offset_is_illegal():
    table = orders()

    assert table.commit_and_next("t", "g", 0, 5, 1) == NOTHING_TO_COMMIT
    assert table.commit_and_next("t", "g", 0, 8, 0) == ILLEGAL_OFFSET
    assert table.commit_and_next("t", "g", 1, 8, 0) == 9


def test_the_same_attempt_enters_a_blocked_queue_again_and_counts_nothing():
    table = orders(attempt_id="a")

    assert not is_blocked(table, 0, "a")
    counts = table.update("a", "t", "g", 0, pop_time_ms=1, invisible_time_ms=1000, offsets=[5], now_ms=1)
    assert counts == ("0 0 0",)
    assert table.update("b", "t", "g", 0, pop_time_ms=2, invisible_time_ms=1000, offsets=[5, 6], now_ms=2) == (
        "0 qo0%5 1",
        "0 0 0",
    )


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 31))
def test_a_bit_that_was_set_is_set_and_the_others_are_as_they_were(bits, index):
    changed = set_bit(bits, index)

    assert [place for place in range(32) if get_bit(changed, place)] == sorted(
        {index, *(place for place in range(32) if get_bit(bits, place))}
    )
    assert get_bit(set_bit(changed, index, flag=False), index) is False


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=32, unique=True).map(sorted), st.integers(0, 2**40), st.text()
)
def test_a_check_point_survives_its_record_and_finds_each_of_its_offsets(diffs, start, group):
    ck = PopCheckPoint("t", group, 3, start, 7, 60_000, len(diffs), None, tuple(diffs), 5, 9, "2")

    assert check_point_from_json(ck.to_json()) == ck
    assert [ck.index_of_ack(ck.ack_offset_by_index(index)) for index in range(ck.num)] == list(range(ck.num))


def test_a_batch_acknowledges_all_its_offsets():
    assert BatchAckMsg(0, 5, "g", "t", 0, 1, None, (5, 7)).ack_offsets == (5, 7)


def polls(*held, notify_last=False):
    table = PopLongPolling(PopPollingOptions(), lambda _: True, notify_last=notify_last)
    for name, queue_id, tag in held:
        matches = None if tag is None else tag.__eq__
        place = {"born_ms": 0, "poll_ms": 15_000, "now_ms": 0, "matches": matches}
        assert table.polling(name, "t", "g", queue_id, **place) is PollingResult.POLLING_SUC
    return table


def test_an_arrival_wakes_one_pop_of_all_queues_and_one_of_its_queue():
    table = polls(("first", -1, None), ("second", -1, None), ("own", 0, None), ("other", 1, None))

    assert list(table.message_arriving("t", 0, 1, "a")) == ["first", "own"]
    assert (table.total, list(table.message_arriving("t", 0, 1, "a"))) == (2, ["second"])


@pytest.mark.trap("P9")
def test_a_message_in_a_retry_topic_of_the_old_form_wakes_no_pop_that_is_held():
    table = polls(("waiting", -1, None))

    assert list(table.message_arriving("%RETRY%g_t", 0, 1, None)) == []
    assert list(table.message_arriving("%RETRY%g+t", 0, 1, None)) == ["waiting"]


@pytest.mark.trap("P10")
def test_a_held_pop_whose_filter_does_not_match_is_put_back_and_no_other_is_tried():
    table = polls(("a", -1, "a"), ("b", -1, "b"))

    assert list(table.message_arriving("t", 0, 1, "b")) == []
    assert table.total == 2
    assert list(table.message_arriving("t", 0, 800, "b")) == ["a"]


@pytest.mark.trap("P11")
def test_a_pop_is_carried_out_again_50_ms_before_its_time_is_over():
    table = polls(("waiting", -1, None))

    assert list(table.timed_out(14_950)) == []
    assert list(table.timed_out(14_951)) == ["waiting"]


def test_a_key_holds_one_pop_more_than_its_option_says():
    table = polls(*((number, -1, None) for number in range(1025)))

    full = table.polling("late", "t", "g", -1, born_ms=0, poll_ms=15_000, now_ms=0)
    assert full is PollingResult.POLLING_FULL
    table.clean_unused("t".__eq__, "h".__eq__)
    assert (table.held, table.groups_of_topic) == ({}, {"t": ()})
    table.recount()
    assert table.total == 0
