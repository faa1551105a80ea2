"""One pass over a queue of the revive topic."""

import attrs
import pytest

from nodes.broker.tables.pop.check_point import AckMsg, PopCheckPoint
from nodes.broker.tables.pop.revive import (
    CK_REWRITE_INTERVALS_S,
    InflightRevives,
    ReviveOptions,
    ReviveRecord,
    ReviveScan,
    re_put_ck,
    revived_message,
    unacked_offsets,
)
from nodes.protocol.model import Message

BROKER = "bk-a"
CK = PopCheckPoint("t", "g", 0, 5, 0, 10_000, 2, BROKER, (0, 1))
ACK = AckMsg(6, 5, "g", "t", 0, 0, BROKER)


def everything(_):
    return True


def record(tag, body, offset, due_ms):
    return ReviveRecord(tag, body.to_json(), offset, due_ms)


def scan_of(*records, now_ms=20_000, **options):
    scan = ReviveScan(-1, now_ms, ReviveOptions(BROKER, **options))
    assert not records or scan.read(records, now_ms)
    return scan


def due(scan, topics=everything, groups=everything):
    return [(ck.revive_offset, ck.bit_map, revive) for ck, revive in scan.due(topics, groups)]


@pytest.mark.parametrize(("seen_ms", "found"), [(12_000, []), (12_001, [(0, 0, True)])])
def test_a_check_point_is_handled_when_the_scan_has_seen_more_than_two_seconds_behind_it(seen_ms, found):
    later = attrs.evolve(CK, start_offset=7, pop_time_ms=5000)

    assert due(scan_of(record("ck", CK, 0, 9000), record("ck", later, 1, seen_ms))) == found


@pytest.mark.trap("P12")
def test_an_acknowledgement_before_its_check_point_is_ignored():
    behind = scan_of(record("ck", CK, 0, 9000), record("ack", ACK, 1, 10_000))
    before = scan_of(record("ack", ACK, 0, 10_000), record("ck", CK, 1, 9000))
    for scan in (behind, before):
        scan.nothing_read(20_000, timer_behind=False)

    assert due(behind) == [(0, 0b10, True)]
    assert due(before) == [(1, 0, True)]
    assert [unacked_offsets(ck) for ck, _ in behind.due(everything, everything)] == [(5,)]


@pytest.mark.trap("P13")
def test_time_stands_still_while_the_wheel_is_behind_so_nothing_is_revived():
    scan = scan_of(record("ck", CK, 0, 9000))

    assert not scan.nothing_read(20_000, timer_behind=True)
    assert (scan.end_time_ms, due(scan)) == (9000, [])
    assert scan.nothing_read(20_000, timer_behind=False)
    assert (scan.end_time_ms, due(scan)) == (20_000, [(0, 0, True)])


@pytest.mark.trap("P15")
def test_acknowledgements_without_check_points_give_nothing_to_handle_after_41_sleeps():
    scan = scan_of(record("ack", ACK, 0, 10_000), record("ack", ACK, 1, 10_000), now_ms=300_000)
    sleeps = 0
    while not scan.is_idle_too_long:
        assert not scan.nothing_read(300_000, timer_behind=False)
        assert scan.idle_sleeps(300_000) == 41 - sleeps
        scan.slept(1)
        sleeps += 1

    assert (sleeps, scan.end_time_ms, due(scan)) == (41, 0, [])


def test_an_old_acknowledgement_alone_moves_the_offset_if_that_is_enabled():
    waited = {"now_ms": 190_001, "enable_skip_long_awaiting_ack": True}
    scan = scan_of(record("ack", ACK, 0, 10_000), **waited)

    assert due(scan) == [(0, 0, True)]
    assert [unacked_offsets(ck) for ck, _ in scan.due(everything, everything)] == [()]


@pytest.mark.trap("P26")
@pytest.mark.parametrize(("topics", "groups"), [("", "g"), ("t", "")])
def test_a_check_point_of_an_unknown_topic_or_group_is_passed_over(topics, groups):
    scan = scan_of(record("ck", attrs.evolve(CK, topic="%RETRY%g_t"), 0, 9000))
    scan.nothing_read(20_000, timer_behind=False)

    assert due(scan, "t".__eq__, "g".__eq__) == [(0, 0, True)]
    assert due(scan, topics.__eq__, groups.__eq__) == [(0, 0, False)]


def test_a_scan_that_lasts_longer_than_ten_seconds_leaves_what_it_has_just_read():
    scan = scan_of(now_ms=0)

    assert scan.read([record("ck", CK, 0, 9000)], 10_000)
    assert not scan.read([record("ck", CK, 1, 9000)], 10_001)
    assert scan.offset == 1


@pytest.mark.trap("P16")
def test_a_check_point_that_is_rewritten_is_due_10_30_and_60_seconds_after_the_first_time():
    times, ck = [], CK
    for _ in range(3):
        ck = re_put_ck(ck, 6, ck.revive_time_ms)
        times.append(ck.revive_time_ms - CK.revive_time_ms)

    assert times == [10_000, 30_000, 60_000]
    assert (ck.start_offset, ck.num, ck.queue_offset_diff, ck.re_put_times) == (6, 1, (0,), "3")


def test_a_check_point_is_given_up_after_the_whole_table_only_if_that_is_enabled():
    old = attrs.evolve(CK, re_put_times=str(len(CK_REWRITE_INTERVALS_S)))

    assert re_put_ck(old, 6, 20_000, skip_at_max=True) is None
    assert re_put_ck(old, 6, 20_000).invisible_time_ms == CK.invisible_time_ms + 7_200_000
    assert re_put_ck(old, 6, 5000).invisible_time_ms == CK.invisible_time_ms


@pytest.mark.trap("P17")
def test_a_completion_may_commit_a_smaller_offset():
    revives = InflightRevives()
    first, second = attrs.evolve(CK, start_offset=9, revive_offset=3), attrs.evolve(CK, revive_offset=4)
    revives.begin(first, 0)
    revives.begin(second, 0)

    assert revives.complete(second) == (4,)
    assert revives.complete(first) == (3,)


def test_two_check_points_with_one_start_offset_share_an_entry():
    revives = InflightRevives()
    revives.begin(attrs.evolve(CK, revive_offset=3), 0)
    other = attrs.evolve(CK, queue_id=1, revive_offset=4)
    revives.begin(other, 0)

    assert len(revives) == 1
    assert revives.complete(other) == (3,)


@pytest.mark.trap("P45")
def test_a_check_point_that_is_overdue_is_rewritten_with_its_time_as_offset():
    revives = InflightRevives()
    revives.begin(CK, 1_700_000_000_000)

    assert revives.overdue(1_700_000_030_000) is None
    ck, offset = revives.overdue(1_700_000_030_001)
    assert re_put_ck(ck, offset, 0).start_offset == 1_700_000_000_000
    assert len(revives) == 0


def test_a_revived_message_counts_and_keeps_the_time_of_its_first_pop():
    message = Message("t", 3, 5, 0, 0, 0, b"x", {"TAGS": "a"})
    once = revived_message(attrs.evolve(CK, pop_time_ms=7), message, v2=False)
    again = revived_message(attrs.evolve(CK, topic=once.topic, pop_time_ms=9), once, v2=True)

    assert (once.topic, once.queue_id, once.reconsume_times) == ("%RETRY%g_t", 0, 1)
    assert (again.topic, again.reconsume_times) == ("%RETRY%g_t", 2)
    assert again.properties == {"TAGS": "a", "1ST_POP_TIME": "7"}
