"""Phases of two runs are aligned by what disturbed them; verdicts, measures and pictures stand side by side."""

import re
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from emulator.analysis.judge import judge_run
from emulator.analysis.measures.phases import RunPhase
from emulator.analysis.rendering.picture import page_of_two
from emulator.cli.main import app
from emulator.comparison.judged_pair import aligned
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from support.campaigns import FORGETFUL, LONGER
from support.rmqemu_process import SMALL

NOTHING = {field.name: 0 for field in attrs.fields(RunPhase) if field.name not in ("start_ns", "end_ns", "what")}
PHASES = st.lists(st.sampled_from("abc"), max_size=6).map(
    lambda names: [RunPhase(start, start + 1, (name,), **NOTHING) for start, name in enumerate(names)]
)


@given(PHASES, PHASES)
def test_every_phase_stands_once_in_order_and_only_equal_ones_are_paired(first, second):
    pairs = aligned(first, second)

    assert [pair.first for pair in pairs if pair.first is not None] == first
    assert [pair.second for pair in pairs if pair.second is not None] == second
    assert all(pair.first.what == pair.second.what for pair in pairs if pair.first and pair.second)
    assert all(pair.first or pair.second for pair in pairs)


@given(PHASES)
def test_equal_phases_are_all_paired_and_one_more_stays_alone(phases):
    assert all(pair.first == pair.second for pair in aligned(phases, phases))
    more = [*phases, RunPhase(9, 10, ("z",), **NOTHING)]
    assert [pair.second for pair in aligned(phases, more) if pair.first is None] == more[-1:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that loses no message, and one that does, twice as long."""
    text = SMALL
    for old, new in LONGER.items():
        text = text.replace(old, new)
    base = loads(text, "small.toml")
    impaired = loads(text + FORGETFUL.partition('"forgetful"')[2].replace("variant.fault", "fault"), "small.toml")
    impaired = attrs.evolve(impaired, run_for_ms=2 * base.run_for_ms)
    folder = tmp_path_factory.mktemp("runs")
    return [run_scenario(item, runs=folder / name).path for name, item in (("base", base), ("harmed", impaired))]


def lines_of(*runs):
    done = CliRunner().invoke(app, ["compare", "--all", *map(str, runs)])
    assert done.exit_code == 0, done.output
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_verdicts_measures_and_phases_stand_side_by_side(runs):
    lines = lines_of(*runs)
    verdicts, phases = lines.index("Verdicts"), lines.index("Phases, in s")
    begins = lines[phases + 2 : lines.index("Counts") - 1]

    assert lines[verdicts + 1] == "A: rules valid, service degraded"
    assert lines[verdicts + 2] == "B: rules invalid, service paging"
    assert lines[verdicts + 3].startswith("B: V7 is broken, ")
    assert re.search(r"^lost 0(\.0)? ([1-9]\d*(\.\d)?) \+\2$", "\n".join(lines), re.MULTILINE)
    (loss,) = [line for line in begins if line.endswith("loss all links begins; lost_writes broker-a, broker-b begins")]
    assert "-" in loss.split()
    (kill,) = [line for line in begins if "kill consumer-2 begins" in line]
    assert "-" not in kill.split()


def test_of_many_measures_that_differ_the_answer_has_those_that_matter_most(runs):
    answered = CliRunner().invoke(app, ["compare", *map(str, runs)]).stdout.partition("\n\npicture")[0].splitlines()

    assert len(answered) <= 20
    assert answered[answered.index("Measures") + 2].split()[0] == "lost"


def test_the_picture_has_both_runs_on_one_time_axis(runs):
    picture = next(line for line in lines_of(*runs) if line.startswith("picture of both: ")).partition(": ")[2]
    reports = [judge_run(open_run(run)) for run in runs]
    html = page_of_two(*reports)
    charts = [ET.fromstring(svg) for svg in re.findall(r'<svg class="chart".*?</svg>', html, re.DOTALL)]

    assert picture == str(runs[0] / f"compared-with-{runs[1].name}.html")
    assert (runs[0] / f"compared-with-{runs[1].name}.html").read_text() == html
    ticks = [
        [(text.get("x"), text.text) for text in chart.iter("text") if text.text.endswith(" s")] for chart in charts
    ]
    assert len(charts) == 2
    assert len(ticks[0]) > 3
    assert dict(ticks[0]) == dict(ticks[1])


def test_what_two_charts_refer_to_is_named_apart(runs):
    impaired = judge_run(open_run(runs[1]))
    ids = re.findall(r' id="([^"]+)"', page_of_two(impaired, impaired))

    assert {"Aboth-0", "Bboth-0"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_json_is_of_campaigns_and_datasets_only(runs):
    done = CliRunner().invoke(app, ["compare", *map(str, runs), "--json"])
    assert (done.exit_code, done.stderr) == (2, "rmqemu: --json: expected only with a campaign or a dataset\n")
