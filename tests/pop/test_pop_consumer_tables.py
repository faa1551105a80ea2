"""Records of pops in a sorted map, and in memory before that."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.pop.consumer_cache import PopConsumerCache
from nodes.broker.tables.pop.consumer_records import (
    REWRITE_INTERVALS_S,
    PopConsumerRecord,
    PopConsumerStore,
    decode_pop_records,
    encode_pop_records,
)
from nodes.protocol.extra_info import RetryMark

RECORDS = st.builds(
    PopConsumerRecord,
    st.integers(0, 20),
    st.sampled_from(["g", "gg"]),
    st.sampled_from(["orders", "%RETRY%g_orders"]),
    st.integers(0, 2),
    st.sampled_from(RetryMark),
    st.integers(0, 20),
    st.integers(0, 300),
    st.integers(0, 16),
    st.none() | st.just("attempt"),
)


def record(offset=0, *, popped_ms=0, invisible_ms=10_000):
    return PopConsumerRecord(popped_ms, "g", "orders", 0, RetryMark.NORMAL, invisible_ms, offset)


def place(found):
    return found.visibility_timeout_ms, found.group, found.topic, found.queue_id, found.offset


@given(st.lists(st.tuples(st.booleans(), RECORDS)), st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_the_store_is_a_sorted_map(steps, lower_ms, upper_ms, maximum):
    store, model = PopConsumerStore(), {}
    for written, found in steps:
        if written:
            store.write_records([found])
            model[place(found)] = found
        else:
            store.delete_records([found])
            model.pop(place(found), None)

    assert len(store) == len(model)
    assert sorted(store.records, key=place) == [model[key] for key in sorted(model)]
    visible = [found.visibility_timeout_ms for found in store.records]
    assert visible == sorted(visible)
    expired = store.scan_expired_records(lower_ms, upper_ms, maximum)
    assert (
        expired == tuple(item for item in store.records if lower_ms <= item.visibility_timeout_ms < upper_ms)[:maximum]
    )


@given(st.lists(RECORDS))
def test_a_file_of_records_is_read_as_it_was_written(found):
    assert decode_pop_records(encode_pop_records(found)) == tuple(found)


def test_a_record_with_another_time_is_another_record():
    store = PopConsumerStore()
    store.write_records([record()])

    store.delete_records([record(invisible_ms=10_001)])
    assert len(store) == 1
    store.delete_records([record(popped_ms=4_000, invisible_ms=6_000)])
    assert len(store) == 0


def test_each_failure_hides_a_message_for_longer_from_then_on():
    found = record()
    for attempt, interval_s in enumerate(REWRITE_INTERVALS_S, 1):
        before, found = found, found.after_failure(50_000)
        assert found.invisible_time_ms == before.invisible_time_ms + interval_s * 1000
        assert (found.pop_time_ms, found.attempt_times) == (50_000, attempt)


def test_an_acknowledgement_takes_a_record_out_of_memory_whatever_its_times():
    cache = PopConsumerCache(stay_ms=10_000, max_size=100)
    cache.write_records([record(3), record(4)])

    assert cache.delete_record(record(3, popped_ms=99)) is True
    assert cache.delete_record(record(3)) is False
    assert (cache.min_offset("g", "orders", 0), cache.in_flight("g", "orders", 0)) == (4, 1)


def test_what_stays_too_long_is_stored_and_what_is_visible_is_revived():
    cache = PopConsumerCache(stay_ms=10_000, max_size=100)
    brief, long, young = record(5, invisible_ms=2_000), record(6, invisible_ms=60_000), record(7, popped_ms=1)
    cache.write_records([young, long, brief])

    (left,) = cache.cleanup_records(10_000, lambda _group, _topic: False)
    assert (left.to_revive, left.to_store, left.commit) == ((brief,), (long,), 7)


def test_all_records_of_a_group_that_went_offline_are_stored_and_no_offset_is_committed():
    cache = PopConsumerCache(stay_ms=10_000, max_size=100)
    cache.write_records([record(6), record(5)])

    (left,) = cache.cleanup_records(1, lambda _group, _topic: True)
    assert (left.to_store, left.to_revive, left.commit) == ((record(5), record(6)), (), -1)
    assert cache.queues == {}


def test_memory_is_full_with_one_record_more_than_it_may_hold():
    cache = PopConsumerCache(stay_ms=10_000, max_size=2)
    cache.write_records([record(0), record(1)])
    assert not cache.is_full
    cache.write_records([record(2)])
    assert cache.is_full
    cache.delete_record(record(0))
    assert not cache.is_full
