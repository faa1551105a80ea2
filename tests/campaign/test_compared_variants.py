"""`rmqemu compare CAMPAIGN`: what variants change, what matters first, and verdicts of both."""

import json

import pytest
from typer.testing import CliRunner

from emulator.campaign.campaign import Case
from emulator.campaign.compared import compare_variants
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError, claim
from emulator.campaign.file import load_campaign
from emulator.campaign.headline import PairCounts
from emulator.campaign.results import CaseResult, Outcome
from emulator.cli.main import app
from support.campaigns import measured_run, write_campaign, write_lines

SEEDS = range(1, 21)
TWENTY = {'"1-4"': '"1-20"'}


def campaign(folder, every, **changes):
    directory = claim(folder / "it", load_campaign(write_campaign(folder, **(TWENTY | changes))))
    write_lines(directory, every)
    return CampaignResults(directory.path)


def measures(variant, seed):
    """Calm: half the time without an owner, a little more consumed again, as many hand-overs."""
    calm = variant == "calm"
    return {
        "orphan_s": (30 if calm else 60) + seed,
        "duplicates": seed % 3 + calm * (seed % 7 == 0),
        "hand_overs": 4,
    }


EVERY = [
    measured_run(variant, seed, *(["V1"] if broken else []), **measures(variant, seed))
    for seed in SEEDS
    for variant, broken in (("baseline", seed <= 3), ("calm", seed in (3, 4)))
]


@pytest.fixture
def dataset(tmp_path):
    return campaign(tmp_path, EVERY)


def test_what_matters_comes_first_and_what_is_0_everywhere_is_counted(dataset):
    (found,) = compare_variants(dataset)

    assert (found.a, found.b) == ("baseline", "calm")
    assert [(measure.measure, measure.verdict.value) for measure in found.measures] == [
        ("orphan_s", "better"), ("duplicates", "cannot decide"), ("hand_overs", "same"),
    ]  # fmt: skip
    assert found.measures[0].difference.value == -30
    assert len(found.zero) == 27
    assert found.sentence().startswith("With calm, queues had no owner 30.0 s less per run than with baseline")


def test_verdicts_count_in_pairs_and_a_crash_has_none(tmp_path):
    crashed = CaseResult(case=Case("calm", 2), outcome=Outcome.CRASHED)
    every = [crashed if case_result.case == crashed.case else case_result for case_result in EVERY]

    (found,) = compare_variants(campaign(tmp_path, every))
    assert found.counts.invalid == PairCounts(seeds=19, with_a=2, with_b=2, with_both=1)
    assert found.measures[0].without_value == (2,)


def test_the_other_way_round_it_is_worse(dataset):
    (found,) = compare_variants(dataset, ("calm", "baseline"))
    assert found.sentence().startswith("With baseline, queues had no owner 30.0 s more per run than with calm")


def test_variants_without_a_difference_are_said_to_have_none(tmp_path):
    every = [measured_run(variant, seed, orphan_s=seed) for seed in SEEDS for variant in ("baseline", "calm")]
    (found,) = compare_variants(campaign(tmp_path, every))
    assert found.sentence() == "calm changes no measure in any of 20 seeds"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("calm",), "expected two variants of .*, not calm"),
        (("calm", "calm"), "expected two variants of .*, not calm calm"),
        (("calm", "basline"), "there is no variant basline; did you mean baseline"),
    ],
)
def test_names_that_are_no_pair_of_variants_are_refused(dataset, names, problem):
    with pytest.raises(CampaignError, match=problem):
        compare_variants(dataset, names)


def test_a_variant_that_has_not_been_run_is_refused(tmp_path):
    only = campaign(tmp_path, [case_result for case_result in EVERY if case_result.case.variant == "calm"])
    with pytest.raises(CampaignError, match="no run of baseline has been run yet"):
        compare_variants(only)


def test_the_command_prints_a_row_per_measure_and_a_sentence(dataset):
    done = CliRunner().invoke(app, ["compare", str(dataset.directory.path)])
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]

    assert done.exit_code == 0
    assert "fault loss-1 only in baseline: 1000 ms +1000 ms: lose 10 % on all links" in lines
    assert "no owner s 70.5 40.5 -30.0 -30.0 to -30.0 +1.00 20 0 0 better" in lines
    assert "invalid: with baseline 3 of 20 seeds, with calm 2, with both 1" in lines
    begin = lines.index("calm against baseline")
    assert max(map(len, done.stdout.splitlines()[begin : begin + 8])) <= 120


def test_json_has_the_same_and_no_number_that_json_lacks(tmp_path):
    few = campaign(tmp_path, [case_result for case_result in EVERY if case_result.case.seed < 5])
    done = CliRunner().invoke(app, ["compare", str(few.directory.path), "baseline", "calm", "--json"])
    (found,) = json.loads(done.stdout, parse_constant=pytest.fail)

    assert (found["a"], found["b"], found["invalid"]["with_both"]) == ("baseline", "calm", 1)
    assert found["measures"][0]["difference_low"] is None


@pytest.mark.parametrize("others", [[], ["a", "b"]])
def test_what_is_no_campaign_needs_one_other_run(tmp_path, others):
    done = CliRunner().invoke(app, ["compare", str(tmp_path), *others])

    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("rmqemu: expected two runs, or a campaign or a dataset, and two of its variants or none; ")
