"""Each oracle on a trace small enough to check by eye."""

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, frames_of
from emulator.analysis.baseline import with_violation
from emulator.analysis.ownership import holds, orphan, overlap
from emulator.analysis.phases import agreement, disturbances, fault_spans, first_agreement, layered, phases
from emulator.analysis.views import view, view_camps
from nodes.beliefs import BeliefKind

END_S = 100
SUBJECT = f"{GROUP}/{TOPIC}"


def in_seconds(frame, *columns):
    return sorted(tuple(row[c] / SECOND if c.endswith("_ns") else row[c] for c in columns) for row in frame.collect())


@pytest.fixture(scope="module")
def frames(spark):
    """One run per question, all analysed together: a run never leaks into another."""
    two = HandMadeTrace("two-views")
    two.at(0).believe("a", 1).believe("b", 1).at(10).believe("a", 2).at(12).believe("c", 3).at(20).life("c", "killed")
    two.at(25).believe("b", 2).at(40).believe("b", None).at(50).believe("b", 7).at(60).life("b", "suspended")
    roles = HandMadeTrace("roles")
    roles.roles |= {"n": "nameserver", "m": "nameserver"}
    roles.believe("a", 1, TOPIC, "route").believe("n", 2, TOPIC, "route").at(30).believe("m", 3, TOPIC, "route")
    wink = HandMadeTrace("no-duration")
    wink.at(5).believe("a", 1).believe("b", 2).believe("b", 1)
    wink.own("a", "acquired").own("b", "acquired").own("b", "dropped")
    hand_over = HandMadeTrace("hand-over")
    hand_over.life("a", "started", GROUP).life("b", "started", f"x, {GROUP}")
    hand_over.at(10).own("a", "acquired").at(20).own("b", "acquired").at(23).own("a", "dropped")
    hand_over.at(50).life("b", "crashed").at(80).life("a", "stopped").at(90).life("b", "started", GROUP)
    return frames_of(spark, [two, roles, wink, hand_over, story()], END_S)


def story():
    """Start-up, rest from 5 s on, a cut from 20 to 50 s that splits the views at 30 s, a kill at 70 s."""
    trace = HandMadeTrace("story")
    trace.at(1).life("a", "started", GROUP).life("b", "started", GROUP)
    trace.at(2).believe("a", 1).own("a", "acquired").believe("b", 2).at(5).believe("a", 2)
    trace.at(20).fault("begin", "f1", "cut", "a -> broker-a").at(30).believe("a", 3).at(50)
    trace.fault("end", "f1", "cut", "a -> broker-a").at(56).believe("a", 2)
    return trace.at(70).life("a", "killed").at(71.5).own("b", "acquired")


def of_run(frame, run):
    return frame.where(frame.run == run)


@pytest.fixture(scope="module")
def views(frames):
    return view(frames.beliefs, frames.lifecycle, frames.runs).localCheckpoint()


@pytest.fixture(scope="module")
def overlaps(frames):
    return overlap(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()


@pytest.fixture(scope="module")
def orphans(frames):
    return orphan(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()


def test_nodes_that_hold_different_values_diverge_until_all_agree_or_are_gone(views):
    found = of_run(views, "two-views")
    assert in_seconds(found, "kind", "role", "subject", "start_ns", "end_ns", "views_max", "open") == [
        ("view", "consumer", SUBJECT, 10, 25, 3, False),
        ("view", "consumer", SUBJECT, 50, 100, 2, True),
    ]


def test_the_camps_are_those_of_the_constellation_that_lasted_longest(frames):
    found = of_run(view_camps(frames.beliefs, frames.lifecycle, frames.runs), "two-views").orderBy("start_ns")
    first, _ = found.collect()
    assert sorted((camp.value, camp.nodes) for camp in first.camps) == [("1", ["b"]), ("2", ["a"]), ("3", ["c"])]
    assert first.camps_ns == 8 * SECOND


def test_roles_are_told_apart(frames):
    found = view(frames.beliefs, frames.lifecycle, frames.runs, BeliefKind.ROUTE)
    assert in_seconds(found, "run", "role", "start_ns", "end_ns") == [("roles", "nameserver", 30, 100)]


def test_what_has_no_duration_does_not_count(views, overlaps):
    assert of_run(views, "no-duration").collect() == []
    assert of_run(overlaps, "no-duration").collect() == []


def test_two_owners_overlap_until_one_lets_go(overlaps):
    found = of_run(overlaps, "hand-over")
    columns = ("group", "topic", "broker_name", "queue_id", "start_ns", "end_ns", "owners_max", "owners", "open")
    assert in_seconds(found, *columns) == [(GROUP, TOPIC, "broker-a", 0, 20, 23, 2, ["a", "b"], False)]


def test_a_queue_is_an_orphan_while_somebody_alive_could_own_it(orphans):
    found = of_run(orphans, "hand-over")
    assert in_seconds(found, "queue_id", "start_ns", "end_ns", "open") == [(0, 50, 80, False), (0, 90, 100, True)]


def test_a_hold_ends_with_its_process(frames):
    found = of_run(holds(frames.ownership, frames.lifecycle, frames.runs), "hand-over")
    assert in_seconds(found, "node", "start_ns", "end_ns", "open") == [("a", 10, 23, False), ("b", 20, 50, False)]


def test_only_what_outlasts_a_round_is_a_violation_and_start_up_has_a_route_poll_more(spark):
    spans = [("r", 0, 52), ("r", 4, 55), ("r", 25, 76), ("r", 27, 49), ("r", 60, 81), ("never", 4, 26)]
    intervals = spark.createDataFrame(
        [(run, start * SECOND, end * SECOND) for run, start, end in spans], "run STRING, start_ns LONG, end_ns LONG"
    )
    agreed = spark.createDataFrame([("r", 5 * SECOND)], "run STRING, agreed_ns LONG")
    found = in_seconds(with_violation(intervals, agreed), "run", "start_ns", "violation")
    assert found == [
        ("never", 4, True),
        ("r", 0, True),
        ("r", 4, False),
        ("r", 25, False),
        ("r", 27, True),
        ("r", 60, False),
    ]


@pytest.fixture(scope="module")
def told(frames, views, overlaps, orphans):
    divergent = layered(views, overlaps, orphans).localCheckpoint()
    agreed = first_agreement(frames.beliefs, frames.ownership, divergent).localCheckpoint()
    disturbed = disturbances(frames.faults, frames.lifecycle, agreed).localCheckpoint()
    return {
        "agreed": of_run(agreed, "story"),
        "agreement": of_run(agreement(disturbed, divergent, frames.runs), "story"),
        "phases": of_run(phases(disturbed, views, overlaps, orphans, frames.runs), "story"),
    }


def test_everything_is_agreed_when_the_last_interval_of_the_start_ends(told):
    assert in_seconds(told["agreed"], "agreed_ns") == [(5,)]


def test_agreement_is_timed_from_each_disturbance_to_rest(told):
    cut, healed, killed = ["cut a -> broker-a begins"], ["cut a -> broker-a ends"], ["a killed"]
    assert in_seconds(told["agreement"], "layer", "t_ns", "next_ns", "what", "took_ns", "open") == [
        ("ownership", 20, 50, cut, 0, False),
        ("ownership", 50, 70, healed, 0, False),
        ("ownership", 70, 100, killed, 1.5, False),
        ("views", 20, 50, cut, 30, True),
        ("views", 50, 70, healed, 6, False),
        ("views", 70, 100, killed, 0, False),
    ]


def test_phases_divide_the_run_and_share_out_its_divergence(told):
    assert in_seconds(told["phases"], "start_ns", "end_ns", "view_ns", "overlap_ns", "orphan_ns") == [
        (0, 20, 3, 0, 0),
        (20, 50, 20, 0, 0),
        (50, 70, 6, 0, 0),
        (70, 100, 0, 0, 1.5),
    ]


def test_a_fault_spans_from_its_begin_to_its_end(frames):
    found = fault_spans(frames.faults, frames.runs)
    assert in_seconds(found, "fault_id", "kind", "start_ns", "end_ns", "open") == [("f1", "cut", 20, 50, False)]
