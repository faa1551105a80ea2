"""What followed from a row: all whose chain of causes leads back to it."""

import pytest

from emulator.comparison.consequences import followed_from
from emulator.history.rows.lookup import TraceRows
from emulator.trace.schema import BELIEFS
from emulator.trace.stored import stored_trace
from why.written_traces import TracedByHand, client_id

HEART_BEAT, NOTIFY, GET_CONSUMER_LIST = 34, 40, 38


@pytest.fixture
def traced(tmp_path):
    return TracedByHand(tmp_path)


def followed(traced, seq, rows_max=10):
    run = traced.written()
    trace = TraceRows(run)
    return followed_from(trace, stored_trace(run), trace.row(seq), rows_max)


def a_join(traced):
    """A heartbeat changes a list, a notification and an answer change a view and an owner; a timer does something."""
    heard = traced.at(1).frame("c2", "broker-a", HEART_BEAT, cause=traced.timer("c2", "sendHeartbeat"))
    listed = traced.belief("broker-a", "consumer_ids", "g", [client_id("c1"), client_id("c2")], cause=heard)
    reported = traced.at(1.1).frame("broker-a", "c1", NOTIFY, kind="oneway", cause=heard)
    answered = traced.at(1.2).call("c1", "broker-a", GET_CONSUMER_LIST, cause=reported, opaque=1)
    view = traced.belief("c1", "view", "g/orders", {"cids": [], "queues": {}}, cause=answered)
    dropped = traced.owned("c1", "dropped", cause=answered)
    timer = traced.at(1.3).timer("c1", "persistAllOffset")
    traced.belief("c1", "nameserver", "pick-one", "ns-1", cause=timer)
    return listed, view, dropped


def test_beliefs_and_owners_are_followed_through_frames_and_others_are_not(traced):
    listed, view, dropped = a_join(traced)
    found = followed(traced, listed)

    assert (found.beliefs, found.ownership) == (1, 1)
    assert [row.seq for row in found.rows] == [view, dropped]


def test_what_came_before_the_row_does_not_follow_from_it(traced):
    _, view, dropped = a_join(traced)

    assert [row.seq for row in followed(traced, view).rows] == [dropped]
    assert followed(traced, dropped).rows == ()


def test_many_are_counted_and_the_first_are_returned(traced):
    listed, view, _ = a_join(traced)
    found = followed(traced, listed, rows_max=1)

    assert (found.beliefs, found.ownership) == (1, 1)
    assert [row.seq for row in found.rows] == [view]


def test_after_half_a_minute_a_chain_is_not_followed(traced):
    cause = traced.at(1).timer("c1", "RebalanceService")
    first = traced.belief("c1", "route", "orders", 1, cause=cause)
    traced.at(31).belief("c1", "route", "orders", 2, cause=cause)
    traced.at(31.001).belief("c1", "route", "orders", 3, cause=cause)

    assert followed(traced, first).beliefs == 1


def test_a_row_without_a_cause_has_what_it_caused_itself(traced):
    first = traced.at(1).belief("c1", "route", "orders", 1)
    traced.belief("c1", "route", "bills", 1)

    assert followed(traced, first).rows == ()
    assert TraceRows(traced.run).row(first).table is BELIEFS
