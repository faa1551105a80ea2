"""Lag, latency and topics without a writable queue: by hand, and lag against a count of each instant."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.trace_rows import HandMadeTrace, found_in
from emulator.analysis.measures.lag import LagSeries
from nodes.protocol.extra_info import build_extra_info
from support.every_case import each_case

ROUTE = {"broker-a": {"addrs": {"0": "127.1.2.1:10911"}, "queues": [4, 4, 6]}}
HANDLE = build_extra_info(0, 1_000, 60_000, 0, "t", "broker-a", 0, 0)
READ_ONLY = {"broker-a": {"addrs": {"0": "127.1.2.2:10911"}, "queues": [4, 4, 4]}}


def member(trace, node="c1", **how):
    trace.life(node, "started", "g", role="consumer").subscribe(node, **how)
    return trace.own(node, "acquired", 0, offset=0)


def begun():
    return member(HandMadeTrace().life("broker-a", "started", role="broker"))


def lags(trace, end_s=60):
    return [
        (row.queue.queue_id, row.node, row.maximum, row.max_at_ns / 1e9, row.end)
        for row in found_in(trace, end_s)["lags"]
    ]


def test_lag_counts_what_is_stored_and_not_consumed():
    trace = begun().at(1).store(0, 1, 2).at(2).consume("c1", 0).at(4).consume("c1", 1, 2)
    found = found_in(trace, 10)

    assert lags(trace) == [(0, "", 3, 1.0, 0)]
    (series,) = found["lag_series"]
    assert (series.group, series.topic, series.per_s) == ("g", "t", (0, 3, 3, 2, 2, 0, 0, 0, 0, 0))
    (latency,) = found["latencies"]
    assert (latency.messages, latency.p50_ms, latency.p99_ms, latency.max_ms) == (3, 3_000, 3_000, 3_000)


def test_what_waits_at_the_end_is_reported():
    assert lags(begun().at(1).store(0, 1)) == [(0, "", 2, 1.0, 2)]


def test_what_a_filter_leaves_out_is_no_lag():
    trace = member(HandMadeTrace().life("broker-a", "started", role="broker"), expression="a")
    trace.at(1).message("broker-a", "stored", 0, tags="b")
    assert lags(trace) == []


def test_no_one_who_consumes_has_no_lag():
    assert lags(HandMadeTrace().at(1).store(0, 1, 2)) == []


def test_a_group_whose_last_member_has_ended_goes_on_to_be_behind_by_what_that_one_wanted():
    trace = member(HandMadeTrace().life("broker-a", "started", role="broker"), expression="a")
    trace.at(2).life("c1", "killed")
    for second, tags in ((3, "a"), (4, "b"), (5, "a")):
        trace.at(second).message("broker-a", "stored", second - 3, tags=tags)
    assert lags(trace) == [(0, "", 3, 5.0, 3)], "offsets are counted, also of a message between two that it wanted"


def test_a_group_that_has_unsubscribed_is_not_behind():
    trace = begun().at(2).believe("c1", None, "g/t", "subscription").life("c1", "stopping").at(3).store(0, 1)
    assert lags(trace) == []


def test_a_member_that_comes_back_catches_up_with_what_came_in_the_meantime():
    trace = begun().at(2).life("c1", "killed").at(3).store(0, 1)
    member(trace.at(5)).at(6).consume("c1", 0, 1)
    (series,) = found_in(trace, 8)["lag_series"]
    assert series.per_s == (0, 0, 0, 2, 2, 2, 2, 0)


def test_each_consumer_that_broadcasts_has_its_own_lag():
    trace = HandMadeTrace().life("broker-a", "started", role="broker")
    for node in ("c1", "c2"):
        member(trace, node, model="BROADCASTING")
    trace.at(1).store(0, 1).at(2).consume("c1", 0, 1)
    assert lags(trace) == [(0, "c1", 2, 1.0, 0), (0, "c2", 2, 1.0, 2)]


def test_a_message_that_is_consumed_again_has_one_latency():
    trace = begun().at(1).store(0).at(2).consume("c1", 0).at(50).consume("c1", 0)
    (latency,) = found_in(trace, 60)["latencies"]
    assert (latency.messages, latency.max_ms) == (1, 1_000)


def test_an_offset_that_is_used_again_has_the_latency_of_each_message():
    trace = begun().at(1).message("broker-a", "stored", 0, stored_ms=1).at(3).message("c1", "consumed", 0, stored_ms=1)
    trace.at(10).message("broker-a", "stored", 0, stored_ms=2).at(11).message("c1", "consumed", 0, stored_ms=2)
    (latency,) = found_in(trace, 60)["latencies"]
    assert (latency.messages, latency.p50_ms, latency.max_ms) == (2, 1_000, 2_000)


def test_a_message_that_is_consumed_after_its_offset_was_used_again_has_its_own_latency():
    trace = begun().at(1).message("broker-a", "stored", 0, stored_ms=1)
    trace.at(10).message("broker-a", "stored", 0, stored_ms=2).at(11).message("c1", "consumed", 0, stored_ms=1)
    (latency,) = found_in(trace, 60)["latencies"]
    assert (latency.messages, latency.max_ms, latency.slowest_ns) == (1, 10_000, 1_000_000_000)


def test_queues_that_change_in_one_instant_are_added_before_the_most_is_taken():
    trace = begun().own("c1", "acquired", 1, offset=0).at(1).store(0)
    trace.at(2).store(0, queue_id=1).consume("c1", 0)
    (series,) = found_in(trace, 4)["lag_series"]
    assert series.per_s == (0, 1, 1, 1)


def pop(trace, *offsets):
    for offset in offsets:
        trace.message("broker-a", "popped", offset, key=HANDLE)
    return trace.commit("p", max(offsets) + 1)


@each_case(
    ("event", "tags", "waiting"),
    [
        *(("consumed", "", 1), ("consumed", "later", 1)),
        *(("acked", "stored", 1), ("acked", "buffered", 1), ("acked", "refused", 2)),
        *(("revived", "stored", 1), ("revived", "refused", 2), ("lost", "gone", 1)),
        *(("invisible_changed", "stored", 2), ("check_point", "stored", 2), ("re_put", "stored", 2)),
    ],
)
def test_what_was_popped_waits_until_it_is_done(event, tags, waiting):
    trace = pop(begun().at(1).store(0, 1), 0, 1).at(5)
    assert lags(trace.message("broker-a", event, 0, tags=tags, key=HANDLE)) == [(0, "", 2, 1.0, waiting)]


def test_a_message_that_is_popped_again_waits_once():
    assert lags(pop(pop(begun().at(1).store(0), 0).at(2), 0)) == [(0, "", 1, 1.0, 1)]


def test_what_was_popped_and_cut_from_the_log_waits_no_more():
    trace = pop(begun().at(1).store(0, 1, 2), 0, 1, 2).at(5).message("broker-a", "stored", 1, stored_ms=9)
    assert lags(trace) == [(0, "", 3, 1.0, 2)]


def test_a_message_of_guests_has_the_latency_of_its_first_acknowledgement():
    trace = pop(begun().at(1).store(0, 1), 0, 1)
    trace.at(4).message("broker-a", "acked", 0, tags="stored", key=HANDLE).at(6).message(
        "broker-a", "acked", 0, tags="stored", key=HANDLE
    )
    trace.at(7).message("broker-a", "acked", 1, tags="stored", stored_ms=-1, key=HANDLE)  # the broker knows it no more
    (latency,) = found_in(trace, 60)["latencies"]
    assert (latency.messages, latency.max_ms) == (1, 3_000)


def test_a_message_that_a_listener_consumed_has_no_second_latency_when_it_is_acknowledged():
    trace = pop(begun().at(1).store(0), 0).at(2).consume("c1", 0).at(9)
    (latency,) = found_in(trace.message("broker-a", "acked", 0, tags="stored", key=HANDLE), 60)["latencies"]
    assert (latency.messages, latency.max_ms) == (1, 1_000)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 12))
def test_lasting_lag_is_the_highest_level_that_a_window_stays_at(per_s, seconds):
    windows = [(min(per_s[at : at + seconds]), -at) for at in range(len(per_s) - seconds + 1)]
    maximum, begin = max(windows, default=(0, 0))
    assert LagSeries("g", "t", tuple(per_s)).lasting(seconds) == ((maximum, -begin) if maximum else (0, 0))


@given(
    st.lists(st.tuples(st.sampled_from(("store", "consume", "commit", "pop", "ack")), st.integers(1, 9)), max_size=40)
)
def test_lag_is_what_a_count_of_each_instant_gives(steps):
    trace = begun()
    stored, done, maximum = 0, 0, 0
    in_flight = {}
    for at_s, (subject, number) in enumerate(steps, 1):
        trace.at(at_s)
        if subject == "store":
            trace.store(*range(stored, stored + number))
            stored += number
        elif subject == "consume" and done < stored:
            through = min(stored, done + number)
            trace.consume("c1", *range(done, through))
            done = through
        elif subject == "commit":
            trace.commit("c1", done)
        elif subject == "pop" and done < stored:
            popped = range(done, min(stored, done + number))
            pop(trace, *popped)
            in_flight |= dict.fromkeys(popped)
            done = popped.stop
        elif subject == "ack" and in_flight:
            acknowledged = list(in_flight)[number % len(in_flight)]
            trace.message("broker-a", "acked", acknowledged, tags="stored", key=HANDLE)
            del in_flight[acknowledged]
        maximum = max(maximum, stored - done + len(in_flight))
    rows = found_in(trace, 60)["lags"]
    assert [(row.maximum, row.end) for row in rows] == ([(maximum, stored - done + len(in_flight))] if maximum else [])


def routed(*routes, node="ns-1"):
    trace = HandMadeTrace().life("p1", "started", role="producer").life(node, "started", role="nameserver")
    trace.believe("p1", ROUTE, "t", "route")
    for at_s, route in enumerate(routes, 1):
        trace.at(at_s).believe(node, route, "t", "route")
    return trace


def unwritable(trace, end_s=20):
    return [
        (row.topic, row.start_ns / 1e9, row.end_ns / 1e9, row.censored) for row in found_in(trace, end_s)["unwritable"]
    ]


def test_a_topic_without_a_writable_queue_is_found():
    assert unwritable(routed(ROUTE, READ_ONLY, READ_ONLY, ROUTE)) == [("t", 2, 4, False)]
    assert unwritable(routed(ROUTE, None)) == [("t", 2, 20, True)]


def test_before_the_first_writable_queue_the_cluster_starts():
    assert unwritable(routed(READ_ONLY, ROUTE)) == []


def test_a_slave_without_its_master_is_not_writable():
    slave = {"broker-a": {"addrs": {"1": "127.1.2.2:10911"}, "queues": [4, 4, 6]}}
    assert unwritable(routed(ROUTE, slave)) == [("t", 2, 20, True)]


def test_one_nameserver_that_lists_a_writable_queue_is_enough():
    trace = routed(ROUTE).life("ns-2", "started", role="nameserver").believe("ns-2", ROUTE, "t", "route")
    trace.at(5).believe("ns-1", None, "t", "route").at(8).believe("ns-2", READ_ONLY, "t", "route")
    assert unwritable(trace) == [("t", 8, 20, True)]


def test_without_nameservers_clients_keep_their_routes():
    assert unwritable(routed(ROUTE).at(5).life("ns-1", "killed")) == []


def test_topics_to_which_no_one_sends_do_not_count():
    trace = HandMadeTrace().life("ns-1", "started", role="nameserver")
    trace.at(1).believe("ns-1", ROUTE, "t", "route").at(2).believe("ns-1", None, "t", "route")
    assert unwritable(trace) == []
