"""What becomes of an instant that was measured of a real cluster."""

from random import Random

import pytest

from emulator.spec.bundled import example
from studies.timelines.real import InstantMatch, RealRun, Span, beyond_by_chance, judge, real_runs
from studies.timelines.seeds import FOLDERS, spans
from support.every_case import each_case


def real(event, seconds, *, calm=False, late_s=0.0):
    return RealRun(name="P1-x", scenario="p1_x", calm=calm, late_s=late_s, events={event: (seconds,)})


def verdict(event, seconds, low, high, **known):
    span = Span("p1_x", event, 2, low, (low + high) / 2, high)
    (judged,) = judge(real(event, seconds, **known), {event: span})
    return judged.verdict


@pytest.mark.parametrize(("seconds", "expected"), [
    (9.4, InstantMatch.INSIDE), (15.6, InstantMatch.INSIDE),
    (9.39, InstantMatch.OUTSIDE), (15.61, InstantMatch.OUTSIDE),
])  # fmt: skip
def test_an_instant_of_a_timer_may_be_0_6_s_beyond_our_extremes(seconds, expected):
    assert verdict("ns_removed", seconds, 10.0, 15.0) is expected


@pytest.mark.parametrize(("seconds", "calm", "expected"), [
    (0.9, False, InstantMatch.MACHINE_LOAD), (0.9, True, InstantMatch.OUTSIDE), (1.1, False, InstantMatch.OUTSIDE),
])  # fmt: skip
def test_load_explains_less_than_a_second_where_no_timer_lies_between_and_the_machine_was_busy(seconds, calm, expected):
    assert verdict("ns_removed", seconds, 0.001, 0.001, calm=calm) is expected


def test_a_late_return_explains_what_follows_it_by_its_own_excess_and_no_more():
    assert verdict("master_addr_s1", 40.0, 5.0, 36.0, late_s=4.0) is InstantMatch.MACHINE_LOAD
    assert verdict("master_addr_s1", 41.0, 5.0, 36.0, late_s=4.0) is InstantMatch.OUTSIDE
    assert verdict("master_addr_s1", 40.0, 5.0, 36.0) is InstantMatch.OUTSIDE
    assert verdict("ns_removed", 18.0, 9.0, 15.0, late_s=4.0) is InstantMatch.OUTSIDE, "it came before the return"


def test_two_of_31_values_drawn_alike_lie_beyond_the_extremes_of_the_others():
    chance = Random(1)
    drawn = [[chance.random() for _ in range(31)] for _ in range(2_000)]
    beyond = sum(not min(ours) <= real <= max(ours) for real, *ours in drawn)

    assert beyond_by_chance(31, 30) == 2
    assert beyond == pytest.approx(beyond_by_chance(len(drawn), 30), rel=0.15)


def test_an_event_that_never_happens_to_us_is_outside():
    assert judge(real("route_acting", 10.0), {})[0].verdict is InstantMatch.OUTSIDE


def test_extremes_and_median_are_over_all_seeds_and_nameservers():
    found = spans("p2_x", [{"ns_removed": (10.0, 11.0)}, {"ns_removed": (14.0,), "s1_min": (14.1,)}])

    assert found["ns_removed"] == Span("p2_x", "ns_removed", 3, 10.0, 11.0, 14.0)
    assert found["s1_min"].n == 1


CLOSES_SLOWLY = ("member_close", "two_owners", 3.01, 0.0)
TIMED_OUT = ("member_freeze60", "pause", 61.8, 60.05)
STARTED_SLOWLY = ("member_join", "no_owner", 0.07, 0.99)


@pytest.mark.parametrize(("case", "calm", "expected"), [
    (CLOSES_SLOWLY, True, InstantMatch.REAL_THREADS), (TIMED_OUT, True, InstantMatch.REAL_THREADS),
    (STARTED_SLOWLY, False, InstantMatch.MACHINE_LOAD), (STARTED_SLOWLY, True, InstantMatch.OUTSIDE),
    (("member_kill", "two_owners", 3.01, 0.0), True, InstantMatch.OUTSIDE),
    (("member_close", "two_owners", 4.2, 0.0), True, InstantMatch.OUTSIDE),
    (("member_freeze60", "pause", 62.1, 60.05), True, InstantMatch.OUTSIDE),
    (("member_join", "consumed_twice", 3.0, 2.0), False, InstantMatch.MACHINE_LOAD),
    (("member_join", "consumed_twice", 3.0, 2.0), True, InstantMatch.OUTSIDE),
], ids=str)  # fmt: skip
def test_what_a_real_client_waits_for_is_named_and_excused_up_to_its_longest(case, calm, expected):
    scenario, event, seconds, ours = case
    run = RealRun(name="C-x", scenario=scenario, calm=calm, events={event: (seconds,)})
    (judged,) = judge(run, {event: Span(scenario, event, 2, ours, ours, ours)})

    assert judged.verdict is expected
    assert bool(judged.reason) is (expected is not InstantMatch.OUTSIDE)


@each_case(("scenario", "event", "seconds", "ours", "others", "is_explained"), [
    ("c3_stop_master", "consumed_twice", 105.0, 0.0, {}, True),
    ("c3_stop_master", "consumed_twice", 301.0, 0.0, {}, False),
    ("c3_kill_master", "consumed_twice", 105.0, 0.0, {}, False),
    ("c3_kill_leader", "consumed_twice", 20.0, 0.0, {}, True),
    ("c1_stop_master", "pause_of_sends", 39.02, 30.03, {"writable": 39.01}, True),
    ("c1_stop_master", "pause_of_sends", 44.0, 30.03, {"writable": 39.01}, False),
    ("c1_stop_master", "consumed_again", 16.6, 21.0, {"writable": 15.04}, True),
    ("c1_stop_master", "consumed_again", 19.0, 21.0, {"writable": 15.04}, False),
    ("c1_stop_leader", "elections", 7.0, 1.0, {}, True),
    ("c1_stop_leader", "elections", 8.0, 1.0, {}, False),
    ("c1_stop_leader", "pause_of_sends", 29.93, 16.2, {"elections": 1.0}, True),
    ("c1_stop_leader", "pause_of_sends", 29.93, 16.2, {"elections": 0.0}, False),
    ("c1_kill_master", "elected", 12.83, 0.0, {}, True),
    ("c1_kill_master", "elected", 15.7, 0.0, {}, False),
])  # fmt: skip
def test_what_explains_an_election_has_a_bound(scenario, event, seconds, ours, others, is_explained):
    events = {event: (seconds,), **{other: (value,) for other, value in others.items()}}
    run = RealRun(name="x", scenario=scenario, calm=False, events=events)
    found = {item: Span(scenario, item, 2, ours, ours, ours) for item in events}
    reported = next(item for item in judge(run, found) if item.event == event)

    assert (reported.verdict is not InstantMatch.OUTSIDE) is is_explained
    assert bool(reported.reason) is is_explained


def test_every_real_run_has_a_scenario_of_ours_that_runs_it():
    ours = {path.stem for folder in FOLDERS for path in example(folder).glob("*.toml")}

    assert {run.scenario for run in real_runs()} <= ours
    assert len(ours) == 12 + 5 + 1 + 8
