"""`refuse`: a server that runs answers certain requests with a code of RocketMQ's, and never sees them."""

import pytest

from emulator.testing import TOPIC, a_scenario
from emulator.time.mode import TimeMode
from fault_kinds.by_script import broken, once
from nodes.protocol.codes import RequestCode, ResponseCode

SEND, BUSY = int(RequestCode.SEND_MESSAGE_V2), int(ResponseCode.SYSTEM_BUSY)
BOTH = ("broker-a", "broker-b")


def refusals(trace):
    """(who asked, who was asked) of each request that was refused, in order."""
    rows = trace.select("rpc", event="delivered", kind="response")
    return [(row.dst, row.src) for row in rows if row.detail.startswith("refused by fault")]


def executed(line, *, mode=TimeMode.SIM, **options):
    """A cluster in which a fault lasts from 20 s to 40 s."""

    return broken(
        a_scenario(rate_per_s=10, consumers=1, **options), once(line, 20_000, 40_000), for_ms=50_000, mode=mode
    )


def test_the_next_few_requests_are_answered_with_the_code_and_the_broker_never_sees_them():
    trace = executed("refuse SEND_MESSAGE_V2 with SYSTEM_BUSY from p1 next 5")
    assert refusals(trace) == [("p1", "broker-a")] * 5
    (refused, *_) = [row for row in trace.select("rpc", kind="response") if row.detail.startswith("refused")]
    assert (refused.code, refused.status, refused.detail) == (SEND, BUSY, "refused by fault it")
    (end,) = trace.select("faults", event="end")
    assert end.hits == 5
    requests = trace.select("rpc", event="delivered", kind="request", code=SEND)
    stored = [row for row in trace.select("messages", event="stored") if row.topic == TOPIC]
    assert len(requests) == len(stored) + 5


def test_the_producer_sends_again_elsewhere_as_after_any_refusal_of_that_code():
    trace = executed("refuse SEND_MESSAGE_V2 with SYSTEM_BUSY from p1 to broker-a", brokers=BOTH)
    assert refusals(trace)
    assert dict.fromkeys(refusals(trace)) == {("p1", "broker-a"): None}
    meanwhile = [row for row in trace.select("messages", event="stored") if 21_000 < row.at_ms < 39_000]
    assert {row.node: None for row in meanwhile if row.topic == TOPIC} == {"broker-b": None}


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("refuse HEART_BEAT with SYSTEM_ERROR from c1 to broker-b next 1", [("c1", "broker-b")]),
        (f"refuse PULL_MESSAGE with SYSTEM_ERROR topic {TOPIC} to broker-a next 2", [("c1", "broker-a")] * 2),
        ("refuse PULL_MESSAGE with SYSTEM_ERROR topic bills", []),
        ("refuse PULL_MESSAGE with SYSTEM_ERROR group absent", []),
        ("refuse UNREGISTER_CLIENT with SYSTEM_ERROR during stopping", []),
        ("refuse GET_ROUTEINFO_BY_TOPIC with TOPIC_NOT_EXIST to ns-1 skip 1 next 1", 1),
    ],
)
def test_node_group_topic_and_count_choose_which(line, refused):
    found = refusals(executed(line, brokers=BOTH))
    assert (len(found) if isinstance(refused, int) else found) == refused


def test_a_one_way_request_is_not_carried_out_and_nothing_is_answered():
    # Consumers commit their offsets one-way.
    trace = executed("refuse UPDATE_CONSUMER_OFFSET with SYSTEM_ERROR")
    commits = trace.select("rpc", code=int(RequestCode.UPDATE_CONSUMER_OFFSET), after_ms=20_000, until_ms=40_000)
    assert {row.kind for row in commits} == {"oneway"}
    (end,) = trace.select("faults", event="end")
    assert end.hits == len(commits) > 1
    # What a consumer commits with a pull still counts; what it commits alone does not.
    arrived = dict.fromkeys(row.seq for row in commits)
    assert not [row for row in trace.select("messages", event="committed") if row.cause in arrived]
    others = executed("refuse UPDATE_CONSUMER_OFFSET with SYSTEM_ERROR next 1")
    alone = others.select("rpc", code=int(RequestCode.UPDATE_CONSUMER_OFFSET), event="delivered")
    arrived = dict.fromkeys(row.seq for row in alone)
    assert [row for row in others.select("messages", event="committed") if row.cause in arrived]
    assert not trace.select("rpc", code=int(RequestCode.UPDATE_CONSUMER_OFFSET), kind="response")


def test_the_trace_is_the_same_in_memory_and_over_loopback():
    line = "refuse SEND_MESSAGE_V2 with SYSTEM_BUSY next 7"
    in_memory, over_loopback = (executed(line, mode=mode) for mode in (TimeMode.SIM, TimeMode.FAST))
    assert refusals(in_memory)
    assert in_memory.digest == over_loopback.digest
