"""Chains in tiny traces: each way in which one thing leads to another."""

import pytest

from emulator.history.rows.lookup import TraceRows, UnreadableTraceError
from emulator.why.answer import answer
from emulator.why.question import WhyError
from emulator.why.words import TIMERS, NodeNames
from support.every_case import each_case
from why.written_traces import IPS, TracedByHand, address, client_id

HEART_BEAT, GET_CONSUMER_LIST, QUERY_OFFSET, NOTIFY, PULL = 34, 38, 14, 40, 11


@pytest.fixture
def traced(tmp_path):
    return TracedByHand(tmp_path)


def members(*nodes):
    return [client_id(node) for node in nodes]


def view(*nodes):
    return {"cids": members(*nodes), "queues": {"broker-a": 8}}


def test_a_queue_is_explained_by_the_view_the_answer_and_the_timer(traced):
    timer = traced.at(31.2).timer("c1", "RebalanceService")
    answered = traced.at(31.203).call("c1", "broker-b", GET_CONSUMER_LIST, cause=timer, opaque=7)
    traced.belief("c1", "view", "g/orders", view("c1", "c2"), cause=answered, source=address("broker-b"))
    traced.owned("c1", "dropped", cause=answered)

    assert traced.why("queue orders/broker-a/3 at 40s") == (
        "at 40.000 s queue orders/broker-a/3 of group g has no owner: c1 lost it last, at 31.204 s",
        "",
        "  31.204 s  c1  dropped queue orders/broker-a/3 of group g",
        "  31.204 s  c1    came to hold view g/orders: 2 members: c1 c2; 8 queues, reported by broker-b",
        "  31.204 s  c1    since broker-b answered GET_CONSUMER_LIST_BY_GROUP (38) (asked at 31.202 s)",
        f"  31.200 s  c1    since its timer RebalanceService ({TIMERS['RebalanceService']}) fired",
        "",
        "signals that it missed (0.000 s - 31.204 s; c1, broker-b):",
        "  no fault was active",
    )


def test_behind_a_view_stands_the_list_of_the_broker_that_gave_it(traced):
    first = traced.at(1).call("c1", "broker-b", GET_CONSUMER_LIST, cause=traced.timer("c1", "x"), opaque=1)
    traced.belief("c1", "view", "g/orders", view("c1", "c2"), cause=first, source=address("broker-b"))
    traced.belief("broker-b", "consumer_ids", "g", members("c1", "c2"))
    scan = traced.at(160).timer("broker-b", "scanExceptionChannel")
    traced.belief("broker-b", "consumer_ids", "g", members("c1"), cause=scan)
    second = traced.at(170).call(
        "c1", "broker-b", GET_CONSUMER_LIST, cause=traced.timer("c1", "RebalanceService"), opaque=2
    )
    traced.belief("c1", "view", "g/orders", view("c1"), cause=second, source=address("broker-b"))
    traced.owned("c1", "acquired", cause=second)
    reported = traced.why("queue orders/broker-a/3")

    assert "broker-b gave these members, which it held since:" in reported
    assert " 160.000 s  broker-b  consumer_ids g: 1 members: c1 (c2 gone)" in reported
    assert any("since its timer scanExceptionChannel (the broker's scan for clients" in line for line in reported)


def test_behind_a_view_of_another_broker_stands_whichever_list_changed_last(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1", "c2"))
    traced.belief("broker-b", "consumer_ids", "g", members("c1", "c2"))
    traced.at(160).belief(
        "broker-b", "consumer_ids", "g", members("c1"), cause=traced.timer("broker-b", "scanExceptionChannel")
    )
    traced.at(170).belief("c1", "view", "g/orders", view("c1"), source=address("broker-b"))
    traced.at(190).belief("c1", "view", "g/orders", view("c1", "c2"), source=address("broker-a"))
    traced.owned("c1", "dropped")
    reported = traced.why("queue orders/broker-a/3")

    assert (
        "c1 had its members from broker-a this time, and from broker-b before (170.000 s); broker-b held since:"
        in reported
    )
    assert " 160.000 s  broker-b  consumer_ids g: 1 members: c1 (c2 gone)" in reported


def test_calls_of_one_kind_one_after_the_other_are_one_line(traced):
    cause = traced.at(1).timer("c1", "RebalanceService")
    for number in range(9):
        cause = traced.at(2 + number).call("c1", "broker-a", QUERY_OFFSET, cause=cause, opaque=number)
    traced.owned("c1", "acquired", cause=cause)
    chain = [line for line in traced.why("queue orders/broker-a/3") if "QUERY_CONSUMER_OFFSET" in line]

    assert len(chain) == 1
    assert "since broker-a answered, one after the other, 9 calls of QUERY_CONSUMER_OFFSET (14)" in chain[0]
    assert chain[0].endswith("the first at 2.001 s")


def test_of_a_very_long_chain_both_ends_are_reported(traced):
    cause = traced.timer("c1", "RebalanceService")
    for number in range(60):
        src, dst = ("c1", "broker-a") if number % 2 else ("broker-a", "c1")
        cause = traced.at(1 + number).frame(src, dst, NOTIFY, kind="oneway", cause=cause)
    traced.owned("c1", "acquired", cause=cause)
    reported = traced.why("queue orders/broker-a/3")

    assert "         …  40 more links" in reported
    assert any("RebalanceService" in line for line in reported)


def test_a_chain_without_end_is_followed_for_a_while_and_says_so(traced):
    cause = traced.timer("c1", "RebalanceService")
    for number in range(1_200):
        cause = traced.at(1 + number).call("c1", "broker-a", PULL, cause=cause, opaque=number)
        cause = traced.frame("broker-a", "c1", NOTIFY, kind="oneway", cause=cause)
    traced.owned("c1", "acquired", cause=cause)

    assert "(only the newest 2000 links of this chain were followed)" in traced.why("queue orders/broker-a/3")


def test_a_closed_connection_leads_to_the_call_that_timed_out_and_to_the_fault_that_took_its_request(traced):
    traced.at(470).fault("begin", "lossy", "loss", "all links", {"percent": 20, "one_way": False})
    timer = traced.at(471).timer("c2", "RebalanceService")
    traced.frame(
        "c2", "broker-a", GET_CONSUMER_LIST, event="dropped", detail="lossy", cause=timer, connection=9, opaque=4
    )
    traced.at(474).frame(
        "c2", address("broker-a"), GET_CONSUMER_LIST, event="timed_out", cause=timer, connection=9, opaque=4
    )
    closed = traced.at(474.001).frame("c2", "broker-a", 0, kind="connection", event="closed", connection=9)
    traced.belief("broker-a", "consumer_ids", "g", members("c1"), cause=closed)
    reported = traced.why("consumer_ids g")
    gave_up = "gave up waiting for the answer to GET_CONSUMER_LIST_BY_GROUP (38) from broker-a"

    assert reported[:4] == (
        " 474.001 s  broker-a  consumer_ids g: 1 members: c1",
        " 474.001 s  broker-a    since c2 closed its connection (sent 474.000 s)",
        f" 474.000 s  c2          since it {gave_up}: lossy took the request (sent 470.999 s)",
        " 470.000 s  operator    since the operator began lossy (loss all links, percent=20)",
    )
    assert reported[6].startswith(
        "  lossy (loss all links, percent=20), from 470.000 s, still under way; it took 1 x GET_"
    )


def test_a_closed_connection_leads_to_the_end_of_the_process_and_the_operator(traced):
    begun = traced.at(60).fault("begin", "kill-1", "kill", "broker-a")
    traced.life("broker-a", "killed", cause=begun)
    traced.timer("broker-a", "scanExceptionChannel")
    closed = traced.at(60.001).frame("broker-a", "ns-1", 0, kind="connection", event="closed")
    traced.belief("ns-1", "live_brokers", "broker-a", None, cause=closed)

    assert traced.why("live_brokers broker-a")[:4] == (
        "  60.001 s  ns-1      live_brokers broker-a: nothing any more",
        "  60.001 s  ns-1        since broker-a closed its connection (sent 60.000 s)",
        "  60.000 s  broker-a    since its process 1 was killed",
        "  60.000 s  operator    since the operator began kill-1 (kill broker-a)",
    )


def test_a_closed_connection_leads_to_the_timer_that_closed_it(traced):
    traced.at(60).timer("c2", "allIdle")
    closed = traced.at(60.001).frame("c2", "broker-a", 0, kind="connection", event="closed")
    traced.belief("broker-a", "consumer_ids", "g", members("c1"), cause=closed)

    assert "since its timer allIdle" in traced.why("consumer_ids g")[2]


def test_what_has_no_cause_comes_from_the_start_of_its_process(traced):
    traced.at(9).life("c1", "started")
    heard = traced.at(9.5).frame("c1", "broker-a", HEART_BEAT)
    traced.belief("broker-a", "consumer_ids", "g", members("c1"), cause=heard)
    reported = traced.why("g")

    assert reported[1] == "   9.500 s  broker-a    since HEART_BEAT (34) of c1 arrived (sent 9.499 s)"
    assert reported[2] == "   9.000 s  c1          since its process 1 started"


def test_a_failed_answer_is_reported_with_its_response_code_and_remark(traced):
    timer = traced.at(1).timer("c1", "updateTopicRouteInfo")
    request = traced.frame("c1", "ns-1", 105, cause=timer)
    answered = traced.frame("ns-1", "c1", 105, kind="response", status=17, detail="No topic\nroute", cause=request)
    traced.belief("c1", "route", "orders", None, cause=answered)

    assert (
        "answered GET_ROUTEINFO_BY_TOPIC (105) with TOPIC_NOT_EXIST (17): No topic route (asked"
        in traced.why("orders")[1]
    )


def test_owners_are_notified_newest_first_and_why_each_keeps_the_queue(traced):
    traced.at(1).belief("c1", "view", "g/orders", view("c1", "c2"), source=address("broker-a"))
    traced.owned("c1", "acquired")
    traced.at(50).owned("c2", "acquired")
    traced.belief("c2", "view", "g/orders", view("c2"), source=address("broker-b"))
    traced.life("c2", "suspended")
    reported = traced.why("queue orders/broker-a/3")

    assert reported[0] == "queue orders/broker-a/3 of group g has 2 owners: c1 since 1.000 s, c2 since 50.000 s"
    assert reported.index("c2 keeps it: it stands still since 50.000 s, and makes no pass") < reported.index(
        "c1 keeps it: no pass since has seen other members or queues than at 1.000 s"
    )


def test_a_process_that_ended_owns_and_believes_nothing_any_more(traced):
    traced.at(1).owned("c1", "acquired")
    traced.belief("c1", "route", "orders", {})
    traced.at(50).life("c1", "killed")

    assert traced.why("queue orders/broker-a/3")[0].endswith("has no owner: c1 lost it last, at 50.000 s")
    assert traced.why("queue orders/broker-a/3 at 49s")[0].endswith("has one owner: c1 since 1.000 s")
    assert (
        traced.why("orders")[0] == "c1 believes nothing any more: its process ended at 50.000 s (killed); before that"
    )


def test_a_new_process_may_own_what_the_one_before_it_lost(traced):
    traced.at(1).life("c1", "killed")
    traced.at(2).life("c1", "started", incarnation=2)
    traced.owned("c1", "acquired")

    assert traced.why("queue orders/broker-a/3")[0].endswith("has one owner: c1 since 2.000 s")


def test_each_group_that_consumes_a_queue_is_reported_about_unless_one_is_named(traced):
    traced.at(1).owned("c1", "acquired")
    traced.at(2).owned("c2", "acquired", group="h")

    assert [line[:42] for line in traced.why("queue orders/broker-a/3")[:2]] == [
        "queue orders/broker-a/3 of group g has one",
        "queue orders/broker-a/3 of group h has one",
    ]
    assert traced.why("queue orders/broker-a/3 of h")[1] == ""


def test_only_faults_of_the_time_and_of_the_nodes_are_blamed(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1", "c2"))
    traced.fault("begin", "long-ago", "cut", "c2 <-> broker-a")
    traced.at(2).fault("end", "long-ago", "cut", "c2 <-> broker-a")
    traced.at(90).frame("c2", "broker-a", HEART_BEAT)
    traced.at(150).fault("begin", "elsewhere", "cut", "c22 <-> broker-b")
    traced.fault("begin", "here", "suspend", "c2")
    scan = traced.at(200).timer("broker-a", "scanExceptionChannel")
    traced.belief("broker-a", "consumer_ids", "g", members("c1"), cause=scan)
    reported = traced.why("consumer_ids g")

    assert reported[-4:] == (
        "signals that it missed (80.000 s - 200.000 s; broker-a, c2):",
        "  here (suspend c2), from 150.000 s, still under way; it hit c2 itself",
        "  elsewhere: elsewhere",
        "  the last HEART_BEAT (34) of c2 reached broker-a at 90.000 s, 110.0 s before",
    )


@each_case(
    ("text", "why"),
    [
        ("queue ordrs/broker-a/3", "there is no topic that was consumed ordrs; did you mean orders?"),
        ("queue orders/broker-c/3", "there is no brokerName broker-c; did you mean broker-a?"),
        ("queue orders/broker-a/9", "no one ever owned orders/broker-a/9; owned queues of orders/broker-a are 3"),
        ("queue orders/broker-a/3 of h", "there is no group h; there are g"),
        ("queue orders/broker-a/3 at 1s", "no consumer had owned orders/broker-a/3 yet; c1 was the first, at 5.000 s"),
        ("route ordrs", "there is no subject of route ordrs; did you mean orders?"),
        ("route orders of c2", "there is no holder of route orders named c2; there are c1"),
        ("route orders at 1s", "no one knew of route orders yet; c1 was the first, at 5.000 s"),
        ("view orders", "there is no subject of view orders; there are none"),
        ("ordrs", "there is no subject ordrs; did you mean orders?"),
        ("broker-a", "expected a kind before broker-a, which has several: live_brokers, min_broker"),
        ("node c9", "there is no node c9; there are c1"),
        ("node c1 at 1s", "c1 had not started yet; it did at 5.000 s"),
    ],
)
def test_what_the_trace_does_not_have_is_said_in_one_line_with_what_it_has(traced, text, why):
    traced.at(5).life("c1", "started")
    traced.owned("c1", "acquired")
    traced.belief("c1", "route", "orders", {})
    traced.belief("broker-a", "min_broker", "broker-a", {"id": 0, "address": ""})
    traced.belief("ns-1", "live_brokers", "broker-a", {})

    with pytest.raises(WhyError) as refused:
        traced.why(text)
    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


def test_a_segment_that_cannot_be_read_is_named(traced, tmp_path):
    traced.at(1).owned("c1", "acquired")
    traced.why("queue orders/broker-a/3")
    (tmp_path / "trace" / "ownership" / "seg-000000.parquet").write_bytes(b"PAR1 what is this PAR1")

    with pytest.raises(UnreadableTraceError, match=r"ownership/seg-000000.parquet is not a readable segment"):
        answer(["queue orders/broker-a/3"], TraceRows(tmp_path), NodeNames(IPS))
