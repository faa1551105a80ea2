"""Leaving causes out: a run is repeated without each of them, with each alone, and without any."""

import json

import pytest

from counterfactuals.two_faults import TEXT, repeated_run
from emulator.analysis.judge import judge_run
from emulator.counterfactuals.left_out import LeftOutOutcome, outcome_of
from emulator.report import run_page
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from support.every_case import each_case

LAG = ("consumer lag", "shop orders")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = run_scenario(loads(TEXT, "two.toml"), level=TraceLevel.FINDINGS, runs=tmp_path_factory.mktemp("runs")).path
    return open_run(path)


@pytest.fixture(scope="module")
def report(run):
    return judge_run(run)


@pytest.fixture(scope="module")
def repeated(report, run):
    return repeated_run(report, run, verify=True)


def test_a_simulated_run_is_repeated_row_for_row_and_each_cause_named_is_one(repeated):
    (lag,) = [item for item in repeated.confirmation.harms if item.named.harm == LAG]
    left_out = {item.cause.id: item for item in lag.left_out}

    assert repeated.head() == ["repeated 6 times, in sim: the repetition has the same trace, row for row"]
    assert lag.repeated == pytest.approx(lag.named.amount)
    assert set(left_out) == {"frozen", "closed"}
    assert [item.outcome for item in left_out.values()] == [LeftOutOutcome.LESS, LeftOutOutcome.LESS]
    for cause in left_out.values():
        share = (lag.repeated - cause.without) / (lag.repeated - lag.undisturbed)
        assert cause.cause.total == pytest.approx(share, abs=0.1)


def test_a_harm_has_the_causes_of_its_own(repeated):
    (late,) = [item for item in repeated.confirmation.harms if item.named.harm == ("late messages", "shop orders")]
    (frozen,) = late.left_out

    assert (frozen.cause.id, frozen.outcome) == ("frozen", LeftOutOutcome.GONE), (
        "those that still wait are not late ones"
    )


def test_it_is_said_next_to_the_cause_with_both_figures(repeated):
    lines = repeated.of_harm(LAG)

    assert lines[0].startswith("left out one at a time: ")
    assert lines[0].endswith(" message-seconds with all disturbances, 93 without any")
    (frozen,) = [line for line in lines if "suspend c1" in line]
    assert frozen.startswith("  without suspend c1 at 25.0 s: ")
    assert ", less; with it alone: " in frozen


def test_json_and_page_have_it(repeated, report, run):
    plain = json.loads(json.dumps(repeated.plain()))
    page = run_page(report, run, repeated=repeated)

    assert plain["is_same"]
    assert plain["confirmed"][0]["left_out"][0]["outcome"] in list(LeftOutOutcome)
    assert "<h2>Repeated</h2><p>repeated 6 times, in sim: the repetition has the same trace" in page
    assert '<th class="number">with it alone</th>' in page
    assert "Repeated" not in run_page(report, run)


@each_case(
    ("whole", "without", "undisturbed", "outcome"),
    [
        (2_720, 0, 0, LeftOutOutcome.GONE), (2_720, 1_377, 0, LeftOutOutcome.LESS),
        (2_720, 2_719, 0, LeftOutOutcome.REMAINS),
        (100, 150, 0, LeftOutOutcome.MORE), (100, 31, 30, LeftOutOutcome.GONE), (100, 96, 30, LeftOutOutcome.LESS),
        (100, 99, 100, LeftOutOutcome.REMAINS), (100, 50, 120, LeftOutOutcome.LESS),
    ],
)  # fmt: skip
def test_what_becomes_of_a_harm_is_measured_against_what_is_there_without_any_disturbance(
    whole, without, undisturbed, outcome
):
    assert outcome_of(whole, without, undisturbed) is outcome
