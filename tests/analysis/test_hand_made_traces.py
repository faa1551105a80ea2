"""Each oracle on a trace small enough to check by eye."""

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in
from nodes.beliefs import BeliefKind
from support.findings import views_of

END_S = 100
SUBJECT = f"{GROUP}/{TOPIC}"
QUEUE = ("group", "topic", "broker_name", "queue_id")
EMPTY = {"broker-a": {"queues": [4, 4, 6], "addrs": {}}}


def in_seconds(rows, *columns):
    def cell(row, column):
        value = getattr(row.queue, column) if column in QUEUE else getattr(row, column)
        return value / SECOND if column.endswith("_ns") else value

    return sorted(tuple(cell(row, column) for column in columns) for row in rows)


@pytest.fixture(scope="module")
def found():
    """What was found in one run per question."""
    two = HandMadeTrace()
    two.at(0).believe("a", 1).believe("b", 1).at(10).believe("a", 2).at(12).believe("c", 3).at(20).life("c", "killed")
    two.at(25).believe("b", 2).at(40).believe("b", None).at(50).believe("b", 7).at(60).life("b", "suspended")
    roles = HandMadeTrace()
    roles.roles |= {"n": "nameserver", "m": "nameserver"}
    roles.believe("a", 1, TOPIC, "route").believe("n", {}, TOPIC, "route").at(30).believe("m", EMPTY, TOPIC, "route")
    wink = HandMadeTrace()
    wink.at(5).believe("a", 1).believe("b", 2).believe("b", 1)
    wink.own("a", "acquired").own("b", "acquired").own("b", "dropped")
    hand_over = HandMadeTrace()
    hand_over.life("a", "started", GROUP).life("b", "started", f"x, {GROUP}")
    hand_over.at(10).own("a", "acquired").at(20).own("b", "acquired").at(23).own("a", "dropped")
    hand_over.at(50).life("b", "crashed").at(80).life("a", "stopped").at(90).life("b", "started", GROUP)
    traces = {"two views": two, "roles": roles, "no duration": wink, "hand-over": hand_over, "story": story()}
    return {name: found_in(trace, END_S) for name, trace in traces.items()}


def story():
    """Start-up, rest from 5 s on, a cut from 20 to 50 s that splits the views at 30 s, a kill at 70 s."""
    trace = HandMadeTrace("story")
    trace.at(1).life("a", "started", GROUP).life("b", "started", GROUP)
    trace.at(2).believe("a", 1).own("a", "acquired").believe("b", 2).at(5).believe("a", 2)
    trace.at(20).fault("begin", "f1", "cut", "a -> broker-a").at(30).believe("a", 3).at(50)
    trace.fault("end", "f1", "cut", "a -> broker-a").at(56).believe("a", 2)
    return trace.at(70).life("a", "killed").at(71.5).own("b", "acquired")


def test_nodes_that_hold_different_values_diverge_until_all_agree_or_are_gone(found):
    rows = views_of(found["two views"])
    assert in_seconds(rows, "kind", "role", "subject", "start_ns", "end_ns", "views_max", "censored") == [
        ("view", "consumer", SUBJECT, 10, 25, 3, False),
        ("view", "consumer", SUBJECT, 50, 100, 2, True),
    ]


def test_the_holders_are_those_of_the_constellation_that_lasted_longest(found):
    first, _ = views_of(found["two views"])
    assert sorted((holder.value, holder.nodes) for holder in first.holders) == [
        ("1", ("b",)),
        ("2", ("a",)),
        ("3", ("c",)),
    ]
    assert first.holders_ns == 8 * SECOND


def test_roles_are_reported_apart(found):
    rows = [row for item in found.values() for row in item["beliefs"] if row.kind == BeliefKind.ROUTE]
    assert in_seconds(rows, "role", "start_ns", "end_ns") == [("nameserver", 30, 100)]


def test_what_has_no_duration_does_not_count(found):
    assert found["no duration"]["views"] == ()
    assert found["no duration"]["overlaps"] == ()


def test_two_owners_overlap_until_one_lets_go(found):
    columns = (*QUEUE, "start_ns", "end_ns", "owners_max", "owners", "censored")
    assert in_seconds(found["hand-over"]["overlaps"], *columns) == [
        (GROUP, TOPIC, "broker-a", 0, 20, 23, 2, ("a", "b"), False)
    ]


def test_a_queue_is_an_orphan_while_somebody_alive_could_own_it(found):
    assert in_seconds(found["hand-over"]["orphans"], "queue_id", "start_ns", "end_ns", "censored") == [
        (0, 50, 80, False),
        (0, 90, 100, True),
    ]


def test_a_hold_ends_with_its_process(found):
    assert in_seconds(found["hand-over"]["holds"], "node", "start_ns", "end_ns", "censored") == [
        ("a", 10, 23, False),
        ("b", 20, 50, False),
    ]


def test_everything_is_agreed_when_the_last_interval_of_the_start_ends(found):
    assert found["story"].agreed_ns == 5 * SECOND


def test_agreement_is_timed_from_each_disturbance_to_rest(found):
    cut, healed, killed = ("cut a -> broker-a begins",), ("cut a -> broker-a ends",), ("a killed",)
    assert in_seconds(found["story"]["agreement"], "layer", "t_ns", "next_ns", "what", "took_ns", "censored") == [
        ("ownership", 20, 50, cut, 0, False),
        ("ownership", 50, 70, healed, 0, False),
        ("ownership", 70, 100, killed, 1.5, False),
        ("views", 20, 50, cut, 30, True),
        ("views", 50, 70, healed, 6, False),
        ("views", 70, 100, killed, 0, False),
    ]


def test_phases_allocate_the_run_and_share_out_its_divergence(found):
    assert in_seconds(found["story"]["phases"], "start_ns", "end_ns", "view_ns", "overlap_ns", "orphan_ns") == [
        (0, 20, 3, 0, 0),
        (20, 50, 20, 0, 0),
        (50, 70, 6, 0, 0),
        (70, 100, 0, 0, 1.5),
    ]


def test_a_fault_spans_from_its_begin_to_its_end(found):
    rows = found["story"]["faults"]
    assert in_seconds(rows, "fault_id", "kind", "start_ns", "end_ns", "censored") == [("f1", "cut", 20, 50, False)]


def test_what_is_open_ends_when_a_group_begins_to_broadcast():
    trace = HandMadeTrace().at(0)
    for node in "ab":
        trace.life(node, "started", GROUP, role="consumer").own(node, "acquired").own(node, "acquired", queue_id=1)
    trace.at(10).own("a", "dropped", queue_id=1).own("b", "dropped", queue_id=1)
    trace.at(30).subscribe("a", model="BROADCASTING")
    found = found_in(trace, 100)

    assert in_seconds(found["overlaps"], "queue_id", "start_ns", "end_ns", "censored") == [
        (0, 0, 30, False),
        (1, 0, 10, False),
    ]
    assert in_seconds(found["orphans"], "queue_id", "start_ns", "end_ns", "censored") == [(1, 10, 30, False)]
