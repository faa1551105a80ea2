"""`rmqemu report`: pages of runs and of campaigns, and what keeps them from being written."""

import re
from pathlib import Path

import attrs
import pytest

from analysis.trace_rows import HandMadeTrace, killed_run
from emulator.analysis.judge import judge_run
from emulator.analysis.rendering.legend import hatch, legend
from emulator.analysis.report import RulesVerdict
from emulator.report import run_page
from emulator.report.run_page import how_to_repeat
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.run_directory import open_run
from support.campaigns import LONGER, write_campaign
from support.rmqemu_process import rmqemu

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    """The run of a storm, and what the command printed about it."""
    folder = tmp_path_factory.mktemp("storm")
    run = run_scenario(load(EXAMPLES / "acting_slave.toml"), runs=folder).path
    done = rmqemu("report", run.name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return run, done.stdout


def test_the_most_severe_symptom_is_printed_and_comes_first_below_the_title_of_the_page(storm):
    run, printed = storm
    page = (run / "report.html").read_text(encoding="utf-8")

    assert printed.splitlines()[0].startswith("request storm: consumer-1 asked ba-s1")
    assert printed.splitlines()[1:] == [f"rules invalid, service paging: {run.name}", f"{run.name}/report.html"]
    body = page[page.index("<main>") :]
    title, _, rest = body.partition('<ol class="severe">')
    assert title.startswith("<main><h1>acting-slave-sim-seed1-1<span")
    assert rest.startswith("<li><b>request storm</b>: consumer-1 asked ba-s1")
    assert "offsetCheckInSlave = true makes the slave correct the offsets" in body


def test_the_page_has_each_part_and_loads_nothing(storm):
    page = (storm[0] / "report.html").read_text(encoding="utf-8")
    parts = ["What happened", "Who owned which queue", "Faults", "Invariants", "Why", "All tables", "What next"]

    assert re.findall("<h2>(.*?)</h2>", page) == parts
    assert "http" not in page
    assert "src=" not in page
    assert "V4 the offsets of a group never fall" in page
    assert re.search(r"rmqemu why \S+ queue orders/ba/2 of order-processors at", page), "a question that explains V4"
    assert "kill ba begins" in page
    assert "request storm\nconsumer-1 -&gt; ba-s1" in page, "in the picture"


def test_top_says_how_many_violations_are_explained(storm):
    run = open_run(storm[0])
    report = judge_run(run)
    for top, explained in ((0, 0), (1, 1), (None, 2)):
        assert len(re.findall(r"<h3>V\d+ ", run_page(report, run, top=top))) == explained


def test_a_simulated_run_is_verified_and_of_a_live_one_the_faults_are_run_again(storm, tmp_path):
    simulated, made = open_run(storm[0]), judge_run(open_run(storm[0]))
    assert "rmqemu verify " in run_page(made, simulated)
    live = attrs.evolve(simulated, path=tmp_path, manifest={**simulated.manifest, "mode": "live"})
    assert not list(_next_commands(live))
    (tmp_path / "by_hand.toml").write_text("")
    assert list(_next_commands(live)) == [f"rmqemu run {tmp_path}/by_hand.toml"]


def _next_commands(run):
    return [command for _, command in how_to_repeat(run)]


def test_stripes_of_a_single_consumer_are_not_all_of_one_colour():
    of_one, of_two = hatch("x", ["#0072b2"]), hatch("x", ["#0072b2", "#e69f00"])
    assert hatch("x", ["#0072b2", "#0072b2"]) == of_one
    for drawn in (of_one, of_two):
        assert len(dict.fromkeys(re.findall(r"fill:([^\"]+)", drawn))) == 2
    assert "var(--paper)" in legend({"c1": "#0072b2"}, {"c1": "owner-0"}).split("url(#legend-both)")[0]


def test_a_campaign_has_a_dot_for_each_run_and_its_worst_runs(tmp_path):
    rmqemu("campaign", write_campaign(tmp_path, small=LONGER), cwd=tmp_path)
    done = rmqemu("report", "campaigns/small-campaign", cwd=tmp_path)
    page = (tmp_path / "campaigns" / "small-campaign" / "report.html").read_text(encoding="utf-8")

    assert (done.returncode, done.stdout) == (0, "campaigns/small-campaign/report.html\n")
    assert "8 runs, 2 variants" in page
    until_agreed = page[page.index("<h3>no owner</h3>") :].split("<h3>")[1]
    assert until_agreed.count("<circle") == 8
    assert "rmqemu run campaigns/small-campaign/scenarios/calm.toml --seed" in page


def test_a_run_that_was_killed_has_a_page_and_no_verdict(tmp_path):
    trace = HandMadeTrace().believe("c1", {"cids": ["c1"], "queues": {"broker-a": 1}}).own("c1", "acquired")
    run = killed_run(trace.at(5).store(0), tmp_path / "r", closed=0)
    done = rmqemu("report", run.name, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert f"rules {RulesVerdict.UNKNOWN}, service calm: {run.name}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nothing",), "rmqemu: nothing is not a run: it has neither manifest.json nor trace/index.jsonl"),
        (("RUN", "--out", "no/page.html"), "rmqemu: no/page.html: cannot be written: No such file or directory"),
    ],
)
def test_what_is_no_run_or_cannot_be_written_is_one_line(storm, arguments, line):
    run, _ = storm
    named = [str(run) if word == "RUN" else word for word in arguments]
    done = rmqemu("report", *named, cwd=run.parent)

    lines = [item for item in done.stderr.splitlines() if not item.startswith("engine: ")]
    assert (done.returncode, done.stdout, lines) == (2, "", [line])


def test_a_run_that_was_killed_before_its_first_row_was_retained_is_unknown(tmp_path):
    report = judge_run(open_run(killed_run(HandMadeTrace(), tmp_path / "r", closed=0)))

    assert report.verdict is RulesVerdict.UNKNOWN
    assert report["phases"] == ()
    assert any("killed" in reason for reason in report.reasons)
    assert "no node recorded a belief or owned a queue: there is nothing to judge" in report.reasons


def test_the_foot_of_the_page_states_version_and_commit_of_the_run(storm):
    page = (storm[0] / "report.html").read_text(encoding="utf-8")
    manifest = open_run(storm[0]).manifest
    version, commit = manifest["versions"]["rocketmq-emulator"], manifest["commit"]

    assert f"<p>Run with rocketmq-emulator {version}, commit {commit}; this page was written by commit " in page
