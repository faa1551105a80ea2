"""The headline of a campaign: what each variant changes that matters most, how sure that is, storms included."""

import json

import attrs
import pytest
from typer.testing import CliRunner

from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.campaign.campaign import Case
from emulator.campaign.compared import compare_variants
from emulator.campaign.crossed import headlines
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import claim
from emulator.campaign.file import load_campaign
from emulator.campaign.results import CaseResult, Outcome
from emulator.cli.main import app
from emulator.report import campaign_page
from support.campaigns import CAMPAIGN, measured_run, with_symptoms, write_campaign, write_lines

STORM = Symptom(SymptomKind.STORM, 800.0, 30_000_000_000, "consumer-1 asked broker-a 159,995 times")
CHURN = Symptom(SymptomKind.CHURN, 2.0, 9_000_000_000, "g took queues of orders 40 times")
LAG = Symptom(SymptomKind.LAG, 9.0, 9_000_000_000, "g was 900 messages behind")
CONDITIONS = """
[[condition]]
name = "as-it-is"

[[condition]]
name = "cut"
options.broker.channelExpiredTimeout = 60_000
"""


def dataset_of(folder, baseline, calm, seeds=12, text=CAMPAIGN):
    """A campaign whose runs are made by two functions of the seed."""
    directory = claim(folder / "it", load_campaign(write_campaign(folder, text, **{'"1-4"': f'"1-{seeds}"'})))
    for seed in range(1, seeds + 1):
        write_lines(directory, [item(seed) for item in (baseline, calm) if item is not None])
    return CampaignResults(directory.path)


def run(variant, *symptoms, broken=(), **measured):
    """Makes the run of a seed; a measure may be a function of it."""

    def made(seed):
        values = {name: value(seed) if callable(value) else value for name, value in measured.items()}
        return with_symptoms(measured_run(variant, seed, *broken, **values), *symptoms)

    return made


def headline(folder, baseline, calm, **more):
    (line,) = headlines(dataset_of(folder, baseline, calm, **more))
    return line


def test_what_matters_most_comes_first_with_its_interval_and_its_seeds_then_what_else_is_better(tmp_path):
    line = headline(
        tmp_path,
        run("baseline", hand_overs=90, orphan_s=100, lost=lambda seed: 50 + seed),
        run("calm", hand_overs=1, orphan_s=20),
    )

    assert line == (
        "calm is better than baseline: the lost messages were 56.5 fewer per run (95 %: 54.5 to 58.4), in 12 of 12 "
        "seeds. Better, too: no owner."
    )


def test_what_makes_something_that_matters_worse_beyond_chance_is_a_trade_with_both_sides(tmp_path):
    line = headline(
        tmp_path, run("baseline", orphan_s=100, active_overlap_s=104), run("calm", orphan_s=20, active_overlap_s=234)
    )

    assert line == (
        "calm is a trade against baseline. Better: queues had no owner 80.0 s less per run (95 %: 80.0 to 80.0), in "
        "12 of 12 seeds. Worse: queues had two owners that were awake 130 s more per run (95 %: 130 to 130), in 12 of "
        "12 seeds."
    )


def test_a_loss_that_chance_may_have_made_or_that_nobody_feels_makes_no_trade(tmp_path):
    def sometimes(seed):
        return 3 if seed < 3 else 0

    line = headline(
        tmp_path,
        run("baseline", orphan_s=100, duplicates=1, late_p99_s=0.010),
        run("calm", orphan_s=20, duplicates=sometimes, late_p99_s=0.012),
    )

    assert line.startswith("calm is better than baseline: queues had no owner 80.0 s less per run ")


def test_what_breaks_rules_beyond_chance_is_a_trade_whatever_it_improves(tmp_path):
    line = headline(tmp_path, run("baseline", orphan_s=100), run("calm", broken=("V1",), orphan_s=20))

    assert line.startswith("calm is a trade against baseline. Better: queues had no owner ")
    assert "Worse: it breaks rules in 12 of 12 seeds in which baseline does not." in line


def test_what_does_not_matter_to_a_choice_is_no_headline(tmp_path):
    assert headline(tmp_path, run("baseline", hand_overs=90), run("calm", hand_overs=1)) == (
        "calm against baseline: no measure that matters differs in any of 12 runs."
    )


def test_what_chance_may_have_made_cannot_be_known_in_one_line(tmp_path):
    line = headline(
        tmp_path,
        run("baseline", stalled_s=50),
        run("calm", stalled_s=lambda seed: 50 + (-1) ** seed * seed),
    )

    assert line.startswith(
        "calm against baseline: cannot decide with 12 seeds: with calm, queues with a backlog stood still "
    )
    assert "\n" not in line


def test_with_few_seeds_nothing_is_claimed_and_the_direction_is_shown(tmp_path):
    line = headline(tmp_path, run("baseline", stalled_s=50, lost=0), run("calm", stalled_s=10, lost=2), seeds=3)

    assert line == (
        "calm against baseline: cannot decide with 3 seeds, 10 are needed; so far the lost messages were 2.0 more per "
        "run, better in 0 of 3. Better: stalled."
    )


def test_a_storm_in_all_runs_of_both_is_named_with_the_command_that_explains_it(tmp_path):
    stored = run("baseline", STORM)
    found = dataset_of(
        tmp_path,
        lambda seed: attrs.evolve(stored(seed), trace="runs/baseline-seed2" if seed == 2 else ""),
        run("calm", STORM, CHURN),
    )

    (line,) = headlines(found)
    assert line == (
        "calm against baseline: no measure that matters differs in any of 12 runs. Paging in 12 of 12 runs with both. "
        f"A request storm in 12 of 12 runs with both (rmqemu why {found.directory.path}/runs/baseline-seed2 storm)."
    )


def test_a_storm_of_one_variant_alone_is_named_and_how_to_run_one_again_if_no_trace_is_stored(tmp_path):
    found = dataset_of(tmp_path, run("baseline", STORM), run("calm"))

    (line,) = headlines(found)
    command = found.directory.command(found.case_results()[0].case)
    assert "Paging in 0 of 12 runs with calm, in 12 with baseline. " in line
    assert line.endswith(
        f"A request storm in 0 of 12 runs with calm, in 12 with baseline ({command}; rmqemu why RUN storm)."
    )


def test_without_a_storm_none_is_named(tmp_path):
    line = headline(tmp_path, run("baseline", LAG), run("calm", CHURN))

    assert "storm" not in line
    assert line.endswith("Paging in 0 of 12 runs with calm, in 12 with baseline.")


def test_runs_that_break_a_rule_are_counted_where_the_variants_differ(tmp_path):
    assert "Invalid in 12 of 12 runs with calm, in 0 with baseline." in headline(
        tmp_path, run("baseline"), run("calm", broken=("V2",))
    )


def test_variants_without_a_common_seed_cannot_be_distinguished_apart(tmp_path):
    def crashed(seed):
        return CaseResult(case=Case("calm", seed), outcome=Outcome.CRASHED)

    assert headline(tmp_path, run("baseline"), crashed) == (
        "calm against baseline: cannot decide, no seed came to its end with both."
    )


@pytest.fixture
def in_conditions(tmp_path):
    def every(variant):
        def made(seed):
            runs = (measured_run(f"{variant}.{name}", seed, orphan_s=30 if variant == "calm" else 10) for name in
                    ("as-it-is", "cut"))  # fmt: skip
            return [with_symptoms(item, STORM) for item in runs]

        return made

    directory = claim(
        tmp_path / "it", load_campaign(write_campaign(tmp_path, CAMPAIGN + CONDITIONS, **{'"1-4"': '"1-12"'}))
    )
    for seed in range(1, 13):
        write_lines(directory, [*every("baseline")(seed), *every("calm")(seed)])
    return CampaignResults(directory.path)


def test_with_conditions_a_line_is_over_all_of_them(in_conditions):
    (line,) = headlines(in_conditions)

    assert line.startswith(
        "calm is worse than baseline: queues had no owner 20.0 s more per run (95 %: 20.0 to 20.0), in 12 "
    )
    assert "A request storm in 24 of 24 runs with both (rmqemu run " in line


@pytest.mark.parametrize("words", [(), ("baseline.cut", "calm.cut")], ids=["conditions", "two variants"])
def test_the_command_opens_with_it_and_its_json_has_it(in_conditions, words):
    path = str(in_conditions.directory.path)
    printed = CliRunner().invoke(app, ["compare", path, *words]).stdout.splitlines()
    found = json.loads(CliRunner().invoke(app, ["compare", path, *words, "--json"]).stdout)

    of_json = [item["headline"] for item in found] if words else found["headline"]
    assert printed[:2] == [*of_json, ""]
    assert of_json[0].startswith("calm" if not words else "calm.cut is worse than baseline.cut: queues had no owner ")


def test_both_verdicts_and_storms_are_counted_in_json(tmp_path):
    (found,) = compare_variants(dataset_of(tmp_path, run("baseline", STORM), run("calm", CHURN, broken=("V2",))))

    plain = found.plain()
    assert plain["invalid"] == {"seeds": 12, "with_a": 0, "with_b": 12, "with_both": 0}
    assert plain["paging"] == plain["storms"] == {"seeds": 12, "with_a": 12, "with_b": 0, "with_both": 0}


def test_the_page_of_a_campaign_has_it_below_its_title(tmp_path):
    page = campaign_page(dataset_of(tmp_path, run("baseline", stalled_s=90), run("calm", stalled_s=1)))

    title, _, rest = page.partition("<main>")[2].partition("<p><b>")
    assert title.startswith("<h1>")
    assert "<h2>" not in title
    assert rest.startswith("calm is better than baseline: queues with a backlog stood still 89.0 s less per run ")


def test_a_page_of_a_campaign_that_has_not_begun_has_the_reason(tmp_path):
    directory = claim(tmp_path / "it", load_campaign(write_campaign(tmp_path)))

    assert "no run of baseline has been run yet" in campaign_page(CampaignResults(directory.path))
