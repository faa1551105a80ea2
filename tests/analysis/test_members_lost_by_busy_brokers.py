"""V19: busy brokers, and members that they lose; healthy runs that look alike are none of it."""

from analysis.trace_rows import HandMadeTrace, found_in
from emulator.analysis.judge import broken

END_S = 500
IDS = ["127.1.0.1@1#1", "127.1.0.2@1#1"]


def a_group():
    """A broker that lists two live members."""
    trace = HandMadeTrace()
    trace.roles |= {"ba": "broker", "c1": "consumer", "c2": "consumer"}
    trace.at(0).life("ba", "started").life("ba", "ready")
    for node in ("c1", "c2"):
        trace.life(node, "started", "g").life(node, "ready", "g")
    return members(trace.at(1), *IDS)


def members(trace, *ids):
    return trace.believe("ba", list(ids), "g", "consumer_ids")


def is_busy(trace, refused=0, waited_ms=300, pool="heartbeat", reason="TIMEOUT_CLEAN_QUEUE"):
    value = {"waiting": 3, "waited_max_ms": waited_ms, "refused": {reason: refused} if refused else {}}
    return trace.believe("ba", value, pool, "busy")


def is_quiet(trace, pool="heartbeat"):
    return trace.believe("ba", None, pool, "busy")


def spans(trace):
    found = found_in(trace, END_S)
    rows = found["busy_brokers"]
    assert ("V19" in broken(found)) is any(row.violation for row in rows)
    return [(row.pool, row.start_ns / 1e9, row.end_ns / 1e9, row.refused, row.lost_members) for row in rows]


def test_a_broker_that_refuses_heartbeats_and_removes_a_member_that_lives_has_lost_it():
    trace = is_busy(is_busy(a_group().at(10)).at(11), refused=4)
    trace = is_quiet(members(trace.at(40), IDS[0]).at(50))
    assert spans(trace) == [("heartbeat", 10, 50, 4, 1)]
    (row,) = found_in(trace, END_S)["busy_brokers"]
    assert (row.violation, row.lost_group, row.reasons, row.waited_max_ms) == (True, "g", ("TIMEOUT_CLEAN_QUEUE",), 300)


def test_a_member_that_has_ended_is_not_lost():
    trace = is_busy(a_group().at(10), refused=4).at(30).life("c2", "stopped", "g")
    assert spans(is_quiet(members(trace.at(40), IDS[0]).at(50))) == [("heartbeat", 10, 50, 4, 0)]


def test_a_member_that_is_suspended_sends_no_heartbeats_and_is_not_lost_to_the_broker():
    trace = is_busy(a_group().at(10), refused=4).at(30).life("c2", "suspended", "g")
    assert spans(is_quiet(members(trace.at(40), IDS[0]).at(50))) == [("heartbeat", 10, 50, 4, 0)]


def test_a_scan_after_the_heartbeats_were_refused_still_finds_the_member_silent():
    trace = is_quiet(is_busy(a_group().at(10), refused=4).at(12))
    assert spans(members(trace.at(21), IDS[0])) == [("heartbeat", 10, 12, 4, 1)]
    trace = is_quiet(is_busy(a_group().at(10), refused=4).at(12))
    assert spans(members(trace.at(23), IDS[0])) == [("heartbeat", 10, 12, 4, 0)]


def test_sends_that_are_refused_lose_no_member():
    trace = is_busy(a_group().at(10), refused=90, pool="sendMessage")
    assert spans(members(trace.at(40), IDS[0])) == [("sendMessage", 10, END_S, 90, 0)]


def test_heartbeats_that_wait_and_are_answered_lose_no_member():
    trace = is_busy(a_group().at(10), waited_ms=20_000)
    assert spans(is_quiet(members(trace.at(40), IDS[0]).at(50))) == [("heartbeat", 10, 50, 0, 0)]


def test_a_pool_is_busy_again_in_a_span_of_its_own_and_the_end_of_the_broker_ends_it():
    trace = is_quiet(is_busy(a_group().at(10), refused=1).at(12))
    trace = is_busy(trace.at(20), refused=2).at(25).life("ba", "killed")
    assert spans(trace) == [("heartbeat", 10, 12, 1, 0), ("heartbeat", 20, 25, 2, 0)]
