"""What a campaign shows when it has ended: means of measures, broken invariants, the worst seeds first."""

import io
import math

import pytest
from rich.console import Console

from emulator.campaign.campaign import Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import claim
from emulator.campaign.file import load_campaign
from emulator.campaign.measured import broken_in, frame_of, means, times_broken, worst_first
from emulator.campaign.results import CaseResult, Outcome
from emulator.cli.campaign_tables import next_steps, summary
from support.campaigns import measured_run, write_campaign, write_lines

CRASHED = CaseResult(case=Case("calm", 2), outcome=Outcome.CRASHED, reasons=("it crashed",))
EVERY = (
    measured_run("baseline", 1, orphan_s=30.0),
    measured_run("baseline", 2, "V1", "V8", orphan_s=60.5),
    measured_run("calm", 1, "V7", lost=7, orphan_s=1.0),
    CRASHED,
    measured_run("calm", 3, "V7", lost=3, orphan_s=3.0),
)


@pytest.fixture
def dataset(tmp_path):
    directory = claim(tmp_path / "it", load_campaign(write_campaign(tmp_path)))
    write_lines(directory, EVERY)
    return CampaignResults(directory.path)


def shown(every, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(summary(every))
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_means_are_of_the_runs_that_came_to_their_end():
    assert means(item for item in EVERY if item.case.variant == "calm")["orphan_s"] == 2.0
    assert math.isnan(means([CRASHED])["orphan_s"])


def test_the_frame_has_a_row_for_each_run_and_no_value_for_one_that_crashed():
    frame = frame_of(EVERY)

    assert [*frame["seed"]] == [1, 2, 1, 2, 3]
    assert [*frame["orphan_s"].isna()] == [False, False, False, True, False]
    assert [*frame["verdict"]] == ["valid", "invalid", "invalid", "crashed", "invalid"]


def test_broken_invariants_are_counted_in_runs():
    assert (broken_in(EVERY[1]), broken_in(CRASHED)) == (("V1", "V8"), ())
    assert times_broken(EVERY) == {"V1": 1, "V8": 1, "V7": 2}


def test_the_worst_run_broke_most_then_lost_most():
    order = [(item.case.variant, item.case.seed) for item in worst_first(EVERY)]
    assert order == [("baseline", 2), ("calm", 1), ("calm", 3), ("calm", 2), ("baseline", 1)]


def test_the_table_has_the_measures_that_are_not_0_everywhere_and_the_broken_invariants():
    lines = shown(EVERY)

    assert lines[0] == "variant runs valid invalid crashed no owner s lost CPU s"
    assert lines[1] == "baseline 2 1 1 0 45.2 0.0 0.0"
    assert lines[2] == "calm 3 0 2 1 2.0 5.0 0.0"
    assert lines[5:8] == ["variant V1 V7 V8", "baseline 1 0 1", "calm 0 2 0"]
    assert lines[8].startswith("V1 at most one")


def test_without_broken_invariants_there_is_no_table_of_them():
    assert len(shown(EVERY[:1])) == 2


def test_the_worst_seeds_come_with_their_commands(dataset):
    lines = next_steps(dataset, dataset.case_results()[:6])
    commands = [line for line in lines if "run it again" in line]

    assert lines[1] == "baseline, seed 2: invalid: V1 is broken"
    assert [line.split("/")[-1] for line in commands] == [
        "baseline.toml --seed 2",
        "calm.toml --seed 1",
        "calm.toml --seed 3",
    ]
    assert f"  make it small   rmqemu shrink {dataset.directory.path} baseline:2" in lines


def test_of_valid_runs_the_worst_is_reported_in_figures(dataset):
    lines = next_steps(dataset, [EVERY[0], measured_run("calm", 1), measured_run("calm", 3, duplicates=2)])

    assert "baseline, worst seed 1: no owner 30.0 s" in lines
    assert "calm, worst seed 3: again 2" in lines
