"""Which faults are behind a row: those in its chain of causes, and those that kept signals from arriving."""

import pytest

from emulator.why.question import WhyError
from why.written_traces import TracedByHand, address, client_id

HEART_BEAT, GET_CONSUMER_LIST = 34, 38


@pytest.fixture
def traced(tmp_path):
    return TracedByHand(tmp_path)


def test_the_fault_at_the_root_of_a_chain_is_found_and_one_elsewhere_is_not(traced):
    traced.at(59).fault("begin", "elsewhere", "suspend", "ns-1")
    begun = traced.at(60).fault("begin", "kill-1", "kill", "broker-a")
    traced.life("broker-a", "killed", cause=begun)
    closed = traced.at(60.001).frame("broker-a", "c1", 0, kind="connection", event="closed")
    seq = traced.belief("c1", "route", "orders", None, cause=closed)

    assert traced.faults_behind(seq) == ("kill-1",)


def test_the_fault_that_took_the_request_of_a_call_that_timed_out_is_found(traced):
    traced.at(470).fault("begin", "lossy", "loss", "all links", {"percent": 20})
    timer = traced.at(471).timer("c2", "RebalanceService")
    taken = {"cause": timer, "connection": 9, "opaque": 4}
    traced.frame("c2", "broker-a", GET_CONSUMER_LIST, event="dropped", detail="lossy", **taken)
    traced.at(474).frame("c2", address("broker-a"), GET_CONSUMER_LIST, event="timed_out", **taken)
    closed = traced.at(474.001).frame("c2", "broker-a", 0, kind="connection", event="closed", connection=9)
    seq = traced.belief("broker-a", "consumer_ids", "g", [client_id("c1")], cause=closed)

    assert traced.faults_behind(seq) == ("lossy",)


def test_a_fault_that_kept_heartbeats_from_arriving_is_found_although_the_chain_ends_with_a_timer(traced):
    traced.at(1).belief("broker-b", "consumer_ids", "g", [client_id("c1"), client_id("c2")])
    traced.at(60).fault("begin", "half-seen", "cut", "c2 -> broker-b")
    traced.fault("begin", "elsewhere", "cut", "c1 -> ns-1")
    scan = traced.at(160).timer("broker-b", "scanExceptionChannel")
    seq = traced.belief("broker-b", "consumer_ids", "g", [client_id("c1")], cause=scan)

    assert traced.faults_behind(seq) == ("half-seen",)


def test_the_faults_of_several_rows_are_named_once_those_in_chains_first(traced):
    begun = traced.at(60).fault("begin", "stop", "suspend", "c2")
    other = traced.at(61).fault("begin", "kill-1", "kill", "c1")
    first = traced.life("c1", "killed", cause=other)
    second = traced.life("c2", "suspended", cause=begun)

    assert traced.faults_behind(first, second) == ("kill-1", "stop")


def test_a_row_that_is_not_there_is_reported(traced):
    traced.at(1).life("c1", "started")

    with pytest.raises(WhyError, match="there is no row with seq 99"):
        traced.faults_behind(99)
