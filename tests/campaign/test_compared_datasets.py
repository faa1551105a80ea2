"""`rmqemu compare DATASET`: a dataset with gold is compared as the campaign whose runs it has."""

import json
from functools import partial

import attrs
import pytest
from typer.testing import CliRunner

from emulator.analysis.arrow_tables import tables_of
from emulator.campaign.campaign import Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.execution import execute_campaign
from emulator.campaign.file import load_campaign
from emulator.campaign.landing import sources_of_campaign
from emulator.campaign.on_this_machine import execute_here
from emulator.campaign.results import CaseResult, Outcome, line_of, read_line
from emulator.campaign.variant_runs import GoldRuns
from emulator.cli.judging import Judging
from emulator.cli.main import app
from emulator.dataset.judged_reports import judge_runs
from emulator.lake.filesystems import located
from emulator.lake.gold import GOLD_FOLDER, commit_gold, read_gold, write_part
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset
from emulator.lake.sources import RunSource
from lake.landed_runs import killed, write
from support.campaigns import CALM, CONDITIONS, write_campaign

THREE = {'"1-4"': '"1-3"\nkeep = "all"'}


def campaign(folder, **changes):
    """The small campaign, executed and judged in this process."""
    folder.mkdir(exist_ok=True)
    item = load_campaign(write_campaign(folder, **changes))
    return execute_campaign(
        item, folder / "campaigns", partial(execute_here, jobs=2), lambda _: lambda _: None, retry=False
    )


def write_gold(dataset, sources):
    """Gold as tasks write it, with the judgements of this process; runs of two parts alternate."""
    location = located(f"{dataset}/{GOLD_FOLDER}")
    reports = sorted(judge_runs([source.path for source in sources]).reports, key=lambda report: report.run_id)
    judged = [(item.run_id, item.seed, tables_of(item)) for item in reports]
    files = [entry for part in (judged[::2], judged[1::2]) for entry in write_part(location, part)]
    runs = open_dataset(dataset).snapshot.runs
    commit_gold(location, files, [runs[name] for name, _, _ in judged])


def landed(folder, sources, *, judged=True):
    land(sources, folder / "dataset")
    if judged:
        write_gold(folder / "dataset", sources)
    return str(folder / "dataset")


def compare(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A campaign, and a dataset with its runs and gold."""
    folder = tmp_path_factory.mktemp("small")
    found = campaign(folder, **THREE)
    return found.directory.path, landed(folder, sources_of_campaign(found.directory.path))


def test_json_of_a_dataset_is_that_of_its_campaign_but_for_what_a_scenario_alone_knows(small):
    of_campaign, of_dataset = (json.loads(compare(item, "--json").stdout) for item in small)

    assert of_campaign[0]["measures"]
    assert of_campaign[0]["changes"]
    assert of_dataset == [{**of_campaign[0], "changes": []}]
    swapped = [compare(item, "calm", "baseline", "--json").stdout for item in small]
    assert json.loads(swapped[1])[0]["measures"] == json.loads(swapped[0])[0]["measures"]


def test_the_table_of_a_dataset_is_that_of_its_campaign(small):
    of_campaign, of_dataset = (compare(item).stdout.splitlines() for item in small)
    changes = of_campaign[of_campaign.index("calm against baseline") + 1 : of_campaign.index("", 3)]

    assert changes
    assert of_dataset == [line for line in of_campaign if line not in changes]


def test_a_dataset_with_conditions_has_a_table_of_all_of_them(tmp_path):
    found = campaign(tmp_path, **{'"1-4"': '"1-2"\nkeep = "all"', CALM: CALM + CONDITIONS}).directory.path
    dataset = landed(tmp_path, sources_of_campaign(found))
    of_campaign, of_dataset = (json.loads(compare(item, "--json").stdout) for item in (found, dataset))

    assert of_campaign["conditions"] == ["quiet", "lossy", "all"]
    assert of_dataset["conditions"] == ["lossy", "quiet", "all"]
    assert of_dataset["variants"] == of_campaign["variants"]
    assert {name: sorted(map(str, cells)) for name, cells in of_dataset["measures"].items()} == {
        name: sorted(map(str, cells)) for name, cells in of_campaign["measures"].items()
    }
    assert not (tmp_path / "dataset" / "conditions.html").exists()


def test_runs_that_gold_lacks_are_judged_first_and_a_line_reports_it(tmp_path, small, monkeypatch):
    sources = sources_of_campaign(small[0])
    dataset = landed(tmp_path, sources[:4])
    land(sources, tmp_path / "dataset")
    monkeypatch.setattr(Judging, "write_gold", lambda _, uri: write_gold(uri, sources[4:]))
    done = compare(dataset, "--json")

    assert done.stderr == "rmqemu: 2 of 6 runs have not been judged: they are judged first\n"
    assert done.stdout == compare(small[1], "--json").stdout
    assert compare(dataset).stderr == ""


def test_runs_without_a_variant_are_left_out_and_counted(tmp_path, small):
    other = RunSource(write(tmp_path / "runs", "alone"))
    dataset = landed(tmp_path, [*sources_of_campaign(small[0]), other])
    done = compare(dataset, "--json")

    assert done.stderr == "rmqemu: 1 runs without a variant are left out\n"
    assert done.stdout == compare(small[1], "--json").stdout


def test_a_run_that_was_broken_off_is_no_pair(tmp_path):
    sources = [RunSource(write(tmp_path / "runs", f"{name}-seed1", seed=1), "it", name) for name in "ab"]
    sources += [RunSource(killed(tmp_path / "runs", "a-seed2", seed=2), "it", "a")]
    sources += [RunSource(write(tmp_path / "runs", "b-seed2", seed=2), "it", "b")]
    (found,) = json.loads(compare(landed(tmp_path, sources), "--json").stdout)

    assert found["invalid"]["seeds"] == 1


def runs(folder, *variants, campaigns=("it", "it"), releases=("1.0", "1.0")):
    """Tiny runs of variants, each of another campaign and another release."""
    return [
        RunSource(write(folder, f"{variant}-seed1", seed=1, versions={"rocketmq-emulator": release}), name, variant)
        for variant, name, release in zip(variants, campaigns, releases, strict=False)
    ]


@pytest.mark.parametrize(
    ("sources", "words", "problem"),
    [
        (lambda at: [RunSource(write(at, "alone"))], (), "has no variants: its runs were landed without a campaign; "),
        (lambda at: runs(at, "calm"), (), "has one variant, calm: expected two to compare, so "),
        (lambda at: runs(at, "a", "b"), ("a", "c"), ": there is no variant c; there are a, b"),
        (lambda at: runs(at, "a", "b"), ("a",), ", not a"),
        (
            lambda at: runs(at, "a", "b", releases=("1.0", "2.0")),
            (),
            "has runs of the releases 1.0, 2.0, whose difference is no effect of a variant: ",
        ),
        (
            lambda at: runs(at, "a", "b", campaigns=("one", "two")),
            (),
            "has runs of the campaigns one, two: name two variants",
        ),
    ],
    ids=["no variant", "one variant", "unknown variant", "one name", "two releases", "two campaigns"],
)
def test_what_cannot_be_compared_is_refused_in_a_line_and_not_judged(tmp_path, monkeypatch, sources, words, problem):
    monkeypatch.setattr(Judging, "write_gold", lambda _, uri: pytest.fail(f"{uri} is judged"))
    done = compare(landed(tmp_path, sources(tmp_path / "runs"), judged=False), *words)

    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"file://{tmp_path}/dataset" in line
    assert problem in line


def test_variants_of_two_campaigns_are_compared_when_they_are_named(tmp_path):
    done = compare(landed(tmp_path, runs(tmp_path / "runs", "a", "b", campaigns=("one", "two"))), "a", "b", "--json")
    (found,) = json.loads(done.stdout)

    assert (found["a"], found["b"], found["invalid"]["seeds"]) == ("a", "b", 1)


def test_limits_are_those_of_the_runs(small):
    done = compare(small[1], "--limit", "lag_s=1")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


def test_gold_of_a_run_with_other_rows_is_no_judgement_of_a_run(small):
    gold = GoldRuns(read_gold(located(f"{small[1]}/{GOLD_FOLDER}")))
    (there,) = [item for item in CampaignResults(small[0]).case_results() if item.case == Case("calm", 2)]
    executed = CaseResult(case=there.case, outcome=Outcome.EXECUTED, digest=there.digest)
    others = [attrs.evolve(executed, digest="other"), attrs.evolve(executed, case=Case("calm", 9))]

    judged = gold.judged(executed)
    assert (judged.outcome, judged.verdict, judged.service) == (there.outcome, there.verdict, there.service)
    assert judged.findings["symptoms"] == there.findings["symptoms"]
    assert [gold.judged(other) for other in others] == others


def test_the_line_of_a_run_that_was_not_judged_has_no_verdict():
    executed = CaseResult(case=Case("calm", 1), outcome=Outcome.EXECUTED, digest="d", rows=3)

    assert (executed.word, executed.ended, executed.is_judged) == ("executed", True, False)
    assert "verdict" not in json.loads(line_of(executed))
    assert read_line(line_of(executed).encode()) == executed
