"""Request storms: what counts as one, what healthy runs have too, and what would fool the definition."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.trace_rows import HandMadeTrace, found_in
from emulator.analysis.measures.traffic import WINDOW_S, storm_spans
from nodes.broker.tables.ha.ha_frames import HaFrame
from nodes.protocol.codes import RequestCode, ResponseCode
from support.every_case import each_case

PULL, RETRY = RequestCode.PULL_MESSAGE, ResponseCode.PULL_RETRY_IMMEDIATELY


def requested(per_s, code=PULL, status=RETRY, seconds=range(60, 105), **how):
    trace = HandMadeTrace()
    for second in seconds:
        trace.at(second).ask("c1", "broker-a-s1", code, status, times=per_s, **how)
    return trace


def test_pulls_that_are_repeated_at_once_are_a_storm():
    (storm,) = found_in(requested(500), 180)["storms"]

    assert (storm.client, storm.server) == ("c1", "broker-a-s1")
    assert (storm.request, storm.answer) == ("PULL_MESSAGE", "PULL_RETRY_IMMEDIATELY")
    assert (storm.start_ns, storm.end_ns, storm.censored) == (60 * 10**9, 105 * 10**9, False)
    assert (storm.exchanges, storm.max_per_s, storm.per_s, storm.healthy_per_s) == (22_500, 500, 500, 1)


def test_a_storm_that_goes_on_is_censored():
    (storm,) = found_in(requested(500), 105)["storms"]
    assert (storm.end_ns, storm.censored) == (105 * 10**9, True)


@each_case(
    ("code", "status"),
    [
        (PULL, ResponseCode.SUCCESS),
        (RequestCode.SEND_MESSAGE_V2, ResponseCode.SUCCESS),
        (RequestCode.POP_MESSAGE, ResponseCode.SUCCESS),
        (RequestCode.ACK_MESSAGE, ResponseCode.SUCCESS),
    ],
)
def test_what_moves_messages_is_no_storm_however_many_there_are(code, status):
    found = found_in(requested(5_000, code, status), 180)
    assert found["storms"] == ()
    assert [rate.overhead for rate in found["requests"]] == [False]


def test_replication_and_ends_of_transactions_are_no_storm():
    for code in (*HaFrame, RequestCode.END_TRANSACTION):
        assert found_in(requested(5_000, code, -1, kind="oneway"), 180)["storms"] == ()


@each_case(
    ("code", "status"),
    [
        (RequestCode.SEND_MESSAGE_V2, ResponseCode.SYSTEM_BUSY),
        (PULL, ResponseCode.PULL_NOT_FOUND),
        (RequestCode.HEART_BEAT, ResponseCode.SUCCESS),
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, ResponseCode.SUCCESS),
    ],
)
def test_whatever_is_refused_finds_nothing_or_moves_no_message_may_storm(code, status):
    assert len(found_in(requested(500, code, status), 180)["storms"]) == 1


def test_notifications_and_dials_storm_too():
    (reported,) = found_in(requested(500, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, -1, kind="oneway"), 180)["storms"]
    (dialled,) = found_in(requested(500, 0, -1, kind="connection", event="refused"), 180)["storms"]

    assert (reported.request, reported.answer) == ("NOTIFY_CONSUMER_IDS_CHANGED", "oneway")
    assert (dialled.request, dialled.answer) == ("dial", "refused")


def test_a_poll_of_a_thousand_routes_each_thirty_seconds_is_healthy():
    trace = requested(1_000, RequestCode.GET_ROUTEINFO_BY_TOPIC, 0, seconds=range(0, 600, 30))
    assert found_in(trace, 600)["storms"] == ()


def test_bursts_that_come_each_other_second_do_not_hide():
    (storm,) = found_in(requested(1_000, seconds=range(60, 120, 2)), 180)["storms"]
    assert (storm.start_ns, storm.end_ns) == (60 * 10**9, 119 * 10**9)


def test_a_heartbeat_each_five_milliseconds_storms_from_the_start_on():
    (storm,) = found_in(requested(200, RequestCode.HEART_BEAT, 0, seconds=range(180)), 180)["storms"]
    assert (storm.start_ns, storm.censored) == (0, True)


def owning(queues):
    trace = HandMadeTrace()
    for queue_id in range(queues):
        trace.own("c1", "acquired", queue_id)
    return trace


@pytest.mark.parametrize(("queues", "storms"), [(1, 1), (40, 1), (1_000, 0)])
def test_a_client_with_many_queues_may_ask_more_often(queues, storms):
    trace = owning(queues)
    for second in range(60, 105):
        trace.at(second).ask("c1", "broker-a", PULL, ResponseCode.PULL_NOT_FOUND, times=200)
    assert len(found_in(trace, 180)["storms"]) == storms


def test_queues_of_a_process_that_has_ended_do_not_count():
    trace = owning(1_000)
    for queue_id in range(990):
        trace.own("c1", "dropped", queue_id)
    assert found_in(trace, 180)["storms"] == ()
    assert found_in(HandMadeTrace(), 10)["storms"] == ()


def test_frames_that_were_lost_are_no_exchange():
    assert found_in(requested(500, event="dropped"), 180)["requests"] == ()


def test_rates_name_the_busiest_pair_and_second():
    trace = HandMadeTrace()
    trace.at(5).ask("c1", "b", PULL, 0, times=10).ask("c2", "b", PULL, 0, times=30)
    trace.at(6).ask("c1", "b", PULL, 0, times=25)
    trace.at(6).ask("c1", "b", 4711, 0, times=5)
    first, second = found_in(trace, 10)["requests"]

    assert (first.request, first.answer, first.exchanges, first.share_pct) == ("PULL_MESSAGE", "SUCCESS", 65, 92.86)
    assert (first.max_per_s, first.max_at_s) == (40, 5)
    assert (first.client, first.server, first.pair_max_per_s) == ("c2", "b", 30)
    assert second.request == "4711"


def test_sends_are_acknowledged_refused_or_unanswered():
    trace = HandMadeTrace()
    code = RequestCode.SEND_MESSAGE_V2
    trace.at(1).ask("p1", "b", code, 0, times=90)
    trace.at(2).ask("p1", "b", code, ResponseCode.SYSTEM_BUSY, times=7)
    trace.at(3).ask("p1", "b", code, -1, times=3, kind="request", event="timed_out")
    (sends,) = found_in(trace, 10)["attempts"]

    assert (sends.acknowledged, sends.refused, sends.unanswered, sends.failed) == (90, 7, 3, 10)
    assert (sends.max_failed_per_s, sends.max_at_s) == (7, 2)


@given(st.dictionaries(st.integers(0, 200), st.integers(1, 300)), st.integers(1, 100))
def test_spans_cover_each_window_above_the_limit_and_no_second_elsewhere(seconds, limit_per_s):
    spans = storm_spans(seconds, limit_per_s)
    inside = [second for second in range(300) if any(begin <= second < end for begin, end in spans)]
    severe = []
    for begin in range(-WINDOW_S, 201):
        window = [at for at in range(begin, begin + WINDOW_S) if at in seconds]
        if sum(seconds[at] for at in window) > limit_per_s * WINDOW_S:
            severe += [at for at in window if seconds[at] > limit_per_s]

    assert all(second in inside for second in severe)
    assert bool(spans) == bool(severe)
    for begin, end in spans:
        assert seconds[begin] > limit_per_s
        assert seconds[end - 1] > limit_per_s
    assert all(after[0] > before[1] for before, after in itertools.pairwise(spans))
