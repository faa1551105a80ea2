"""Who ran the special services of a broker group, from traces small enough to check by eye."""

from io import StringIO

import pytest
from rich.console import Console

from analysis.trace_rows import SECOND, HandMadeTrace, found_in, write_run
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.judge import broken
from emulator.analysis.rendering.shown_report import analyze
from emulator.analysis.rendering.tables import render

END_S = 100


def acting(trace, node, running):
    return trace.believe(node, running, "ba", "special_service")


def fail_over():
    """A master, its death, a slave that acts 2 s later, and the master's return, which the slave hears of late."""
    trace = HandMadeTrace("fail-over")
    trace.roles |= {"ba": "broker", "ba-s1": "broker"}
    trace.at(1).life("ba", "started").life("ba-s1", "started")
    acting(acting(trace, "ba", True), "ba-s1", False)
    acting(trace.at(20).life("ba", "killed").at(22), "ba-s1", True)
    acting(trace.at(60).life("ba", "started").at(61), "ba", True)
    return acting(trace.at(64), "ba-s1", False)


def calm():
    trace = HandMadeTrace("calm")
    trace.roles["bb"] = "broker"
    return trace.at(1).life("bb", "started").believe("bb", True, "bb", "special_service")


def seconds_of(spans):
    return [(span.servers, span.start_ns / SECOND, span.end_ns / SECOND, span.nodes, span.censored) for span in spans]


def test_a_fail_over_is_reported_without_a_gap_the_death_of_a_process_included():
    assert seconds_of(found_in(fail_over(), END_S)["special_services"]) == [
        ("one", 1, 20, ("ba",), False),
        ("none", 20, 22, (), False),
        ("one", 22, 61, ("ba-s1",), False),
        ("two", 61, 64, ("ba", "ba-s1"), False),
        ("one", 64, END_S, ("ba",), True),
    ]


def test_a_master_that_sleeps_runs_nothing_until_it_wakes():
    trace = HandMadeTrace()
    trace.roles |= {"ba": "broker", "ba-s1": "broker"}
    acting(acting(trace.at(1), "ba", True), "ba-s1", False)
    acting(trace.at(20).life("ba", "suspended").at(35), "ba-s1", True)
    acting(trace.at(60).life("ba", "resumed").at(61), "ba-s1", False)
    spans = seconds_of(found_in(trace, END_S)["special_services"])
    assert [(servers, start, nodes) for servers, start, _, nodes, _ in spans] == [
        ("one", 1, ("ba",)),
        ("none", 20, ()),
        ("one", 35, ("ba-s1",)),
        ("two", 60, ("ba", "ba-s1")),
        ("one", 61, ("ba",)),
    ]


def test_a_group_in_which_it_never_changed_is_left_out():
    assert found_in(calm(), END_S)["special_services"] == ()


def test_two_or_no_one_for_longer_than_members_need_to_agree_is_a_violation_with_rip_32_alone():
    def violations(silent_ms, *, acting):
        found = found_in(fail_over(), END_S, acting=acting, bounds=Bounds(broker_silent_ms=silent_ms))
        return [span.servers for span in found["special_services"] if span.violation]

    # The bound is the time that makes a broker silent, and 7 s for the nameservers and the members of the group.
    assert violations(0, acting=True) == []
    assert violations(-5_500, acting=True) == ["none", "two"]
    assert violations(-4_500, acting=True) == ["two"]
    assert violations(-5_500, acting=False) == []


def left_alone(no_owner_s, two_s=0):
    """The master is cut off, or dies, and its slave is elected so much later; then both serve for so long."""
    trace = HandMadeTrace()
    trace.roles |= {"ba": "broker", "ba-s1": "broker"}
    acting(acting(trace.at(1), "ba", True), "ba-s1", False)
    if no_owner_s:
        acting(trace.at(20), "ba", False)
        return acting(trace.at(20 + no_owner_s), "ba-s1", True)
    acting(trace.at(20), "ba-s1", True)
    return acting(trace.at(20 + two_s), "ba", False)


@pytest.mark.parametrize(("lasted_s", "is_sick"), [(15, False), (45, False), (47, True)])
def test_where_controllers_elect_no_one_or_two_may_serve_for_as_long_as_an_election_takes(lasted_s, is_sick):
    """A silent master, a leader that is lost meanwhile, and the polls of brokers: 46 s as shipped."""
    assert Bounds().election_ms == 46_000
    for trace in (left_alone(lasted_s), left_alone(0, lasted_s)):
        found = found_in(trace, 200, elected=True)
        assert ("V10" in broken(found)) is is_sick
        assert broken(found_in(trace, 200)) == (), "no one takes over without controllers and RIP-32"


def test_a_report_reports_groups_in_which_it_changed_alone(tmp_path):
    trace = fail_over()
    trace.roles["bb"] = "broker"
    trace.at(65).believe("bb", True, "bb", "special_service")
    write_run(trace, tmp_path / "r", END_S)
    report = analyze(tmp_path / "r")
    assert [span.broker_name for span in report["special_services"]] == ["ba"] * 5
    shown = [line for line in text(render(report)).splitlines() if line.startswith("ba ")]
    assert [line.split("s  ")[-1].strip() for line in shown] == ["ba", "no member", "ba-s1", "ba and ba-s1", "ba"]


def text(renderable):
    reported = StringIO()
    Console(width=100, file=reported).print(renderable)
    return reported.getvalue()
