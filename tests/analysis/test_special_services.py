"""Who ran the special services of a broker group, from traces small enough to check by eye."""

from io import StringIO

import pytest
from rich.console import Console

from analysis.trace_rows import SECOND, HandMadeTrace, frames_of, write_run
from emulator.analysis.report import _changing, analyze
from emulator.analysis.special_services import special_services
from emulator.analysis.tables import render

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


def seconds_of(frame, run):
    rows = frame.where(frame.run == run).orderBy("start_ns").collect()
    return [(row.kind, row.start_ns / SECOND, row.end_ns / SECOND, row.nodes, row.open) for row in rows]


@pytest.fixture(scope="module")
def found(spark):
    frames = frames_of(spark, [fail_over(), calm()], END_S)
    return special_services(frames.beliefs, frames.lifecycle, frames.runs).localCheckpoint()


def test_a_fail_over_is_told_without_a_gap_the_death_of_a_process_included(found):
    assert seconds_of(found, "fail-over") == [
        ("one", 1, 20, ["ba"], False),
        ("nobody", 20, 22, [], False),
        ("one", 22, 61, ["ba-s1"], False),
        ("two", 61, 64, ["ba", "ba-s1"], False),
        ("one", 64, END_S, ["ba"], True),
    ]


def test_a_broker_that_runs_them_from_its_start_to_the_end_is_one_interval(found):
    assert seconds_of(found, "calm") == [("one", 1, END_S, ["bb"], True)]


def test_a_group_in_which_it_never_changed_is_left_out_of_reports(found):
    spans = _changing(found.orderBy("start_ns", "end_ns", "subject").collect())
    assert [span.broker_name for span in spans] == ["ba"] * 5


@pytest.mark.slow
def test_a_report_tells_of_groups_in_which_it_changed_alone(spark, tmp_path):
    trace = fail_over()
    trace.roles["bb"] = "broker"
    trace.at(65).believe("bb", True, "bb", "special_service")
    write_run(trace, tmp_path / "r", END_S)
    report = analyze(tmp_path / "r", spark)
    assert [span.broker_name for span in report.duties] == ["ba"] * 5
    shown = [line for line in text(render(report)).splitlines() if line.startswith("ba ")]
    assert [line.split("s  ")[-1].strip() for line in shown] == ["ba", "nobody", "ba-s1", "ba and ba-s1", "ba"]


def text(renderable):
    told = StringIO()
    Console(width=100, file=told).print(renderable)
    return told.getvalue()
