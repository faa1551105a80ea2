"""Campaigns whose runs Spark executes, lands and judges: the results of one process, whatever interrupts them."""

import json
import re
import shutil
from functools import partial
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import emulator
from emulator.analysis.arrow_tables import RUNS, TABLES
from emulator.campaign import case as case_module
from emulator.campaign import landing as landing_module
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.digest import campaign_digest
from emulator.campaign.directory import CampaignError
from emulator.campaign.execution import CampaignInterrupted, execute_campaign, exit_status
from emulator.campaign.file import load_campaign
from emulator.campaign.on_spark import execute_on_spark
from emulator.campaign.on_this_machine import execute_here
from emulator.cli.judging import Judging
from emulator.cli.main import app
from emulator.dataset.landed_runs import LandedRuns
from emulator.lake.filesystems import located
from emulator.lake.gold import gold_of
from emulator.lake.snapshot import open_dataset
from emulator.trace.seals import sealed
from support.campaigns import CALM, FORGETFUL, LONGER, costless, write_campaign

NAME = "small-campaign"
CHANGES = {'"1-4"': '"1-2"', CALM: FORGETFUL}
"""Two variants with two seeds; those of the second one are invalid."""
HERE = partial(execute_here, jobs=2)
RUNS_OF_ALL = sorted(f"{variant}-seed{seed}" for variant in ("baseline", "forgetful") for seed in (1, 2))


def execute(folder, engine, judge=None, *, watch=lambda _: None, to=None, **changes):
    """Execute the campaign, with Spark where it is the engine."""
    folder.mkdir(exist_ok=True)
    campaign = load_campaign(write_campaign(folder, small=LONGER, **(CHANGES | changes)))
    to = None if to is None else str(to)
    return execute_campaign(campaign, folder / "campaigns", engine, lambda _: watch, retry=False, to=to, judge=judge)


def judging(spark, calls=None):
    """The judge of a campaign; `calls` gets how many runs an earlier call had left."""

    def judge(uri, left):
        if calls is not None:
            calls.append(left)
        LandedRuns(spark, open_dataset(uri)).judge().write()

    return judge


def no_judge(uri, _left):
    pytest.fail(f"{uri} is judged")


def interrupted_after(runs):
    """What watches a campaign and ends it when so many runs have lines, none of which has landed."""
    seen = []

    def watch(case_result):
        if case_result is not None:
            seen.append(case_result)
        if len(seen) == runs:
            raise KeyboardInterrupt

    return watch


def executions(dataset):
    """How many lines the parts of the campaign have."""
    return sum(len(path.read_text().splitlines()) for path in (dataset.directory.path / "parts").iterdir())


def results(dataset):
    """All that is compared: outcomes and findings, with the order of rows, and what other programs read."""
    found = {name: dataset.findings(name) for name in dataset.tables()}
    files = {path.stem: pq.read_table(path).num_rows for path in (dataset.directory.path / "tables").iterdir()}
    compared = CliRunner().invoke(app, ["compare", str(dataset.directory.path), "--json"])
    junit = re.sub(r' time="[^"]*"', "", (dataset.directory.path / "junit.xml").read_text())
    return costless(dataset.outcomes()), found, files, json.loads(compared.stdout), re.sub(r"/\S*campaigns/", "", junit)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The campaign, executed and judged in this process."""
    return execute(tmp_path_factory.mktemp("here"), HERE)


@pytest.fixture(scope="module")
def results_of_here(here):
    return results(here)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """All runs of the campaign are executed and none has landed; the folder, and what the command said."""
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(CampaignInterrupted) as stopped:
        execute(folder, HERE, no_judge, watch=interrupted_after(4))
    return folder, str(stopped.value)


@pytest.fixture
def unlanded(interrupted, tmp_path):
    """A copy of the campaign that was interrupted."""
    return shutil.copytree(interrupted[0], tmp_path / "copy")


@pytest.fixture(scope="module")
def died(tmp_path_factory):
    """All runs of the campaign have landed, and gold has none of them, since the worker died before it wrote that."""

    def die(*_):
        raise OSError

    folder = tmp_path_factory.mktemp("died")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(landing_module, "write_part", die)
        with pytest.raises(CampaignError):
            execute(folder, HERE, no_judge)
    return folder


@pytest.fixture
def without_gold(died, tmp_path):
    """A copy of the campaign whose runs gold lacks."""
    return shutil.copytree(died, tmp_path / "copy")


@pytest.fixture(scope="module")
def on_spark(spark, tmp_path_factory):
    """The campaign, executed, landed and judged by tasks of Spark."""
    engine = partial(execute_on_spark, connect=lambda: spark)
    return execute(tmp_path_factory.mktemp("spark"), engine, no_judge)


def test_spark_gives_what_one_process_gives_in_all_tables(here, results_of_here, on_spark):
    outcomes, tables, files, compared, junit = results(on_spark)
    of_here = results_of_here

    assert outcomes == of_here[0]
    assert sorted(set(outcomes["verdict"].to_pylist())) == ["invalid", "valid"]
    assert list(tables) == list(of_here[1]) == [RUNS, *TABLES]
    assert [name for name, table in tables.items() if table != of_here[1][name]] == []
    assert sum(table.num_rows > 0 for table in tables.values()) > 15
    assert files == of_here[2]
    assert compared == of_here[3]
    assert compared[0]["measures"]
    assert junit == of_here[4]
    assert len(ET.fromstring(junit).findall(".//failure")) == 2
    assert exit_status(on_spark.case_results()) == exit_status(here.case_results()) == 1


def test_the_gold_that_the_tasks_have_written_is_that_of_the_pipeline(spark, on_spark, tmp_path):
    of_tasks = gold_of(located(on_spark.directory.dataset_uri))
    of_pipeline = LandedRuns(spark, open_dataset(on_spark.directory.dataset_uri)).judge().write(tmp_path / "gold")

    assert of_tasks.runs == of_pipeline.runs
    for name in (RUNS, *TABLES):
        assert _sorted(of_tasks.table(name)) == _sorted(of_pipeline.table(name)), name


def _sorted(table):
    return sorted(map(repr, table.to_pylist()))


def test_what_another_program_has_judged_meanwhile_is_in_gold_once(spark, results_of_here, tmp_path, monkeypatch):
    write_part = landing_module.write_part

    def slowly(place, judged):
        files = write_part(place, judged)
        dataset = open_dataset(tmp_path / "campaigns" / NAME / "dataset")
        if not gold_of(dataset.location).runs:
            LandedRuns(spark, dataset).judge().write()
        return files

    monkeypatch.setattr(landing_module, "write_part", slowly)
    both = execute(tmp_path, HERE, no_judge)

    assert results(both)[:4] == results_of_here[:4]
    listed = {entry.file for entry in gold_of(located(both.directory.dataset_uri)).files}
    there = {f"{path.parent.name}/{path.name}" for path in (both.directory.path / "dataset/gold").glob("*/*.parquet")}
    assert there == listed, "the part of the slower one is removed"


def test_runs_that_landed_without_gold_are_judged_by_the_pipeline(spark, results_of_here, without_gold):
    calls = []
    judged = execute(without_gold, HERE, judging(spark, calls))

    assert calls == [4]
    assert executions(judged) == 4
    assert results(judged)[:4] == results_of_here[:4]


def test_lines_have_no_judgement_and_gold_has_each_run_once(on_spark):
    (uri,) = {on_spark.directory.dataset_uri}
    lines = [json.loads(line) for path in (on_spark.directory.path / "parts").iterdir() for line in path.open()]

    assert uri == f"file://{on_spark.directory.path}/dataset"
    assert [line["outcome"] for line in lines] == ["executed"] * 4
    assert not any({"verdict", "service", "reasons", "findings"} & line.keys() for line in lines)
    assert sorted(gold_of(located(uri)).table(RUNS)["run"].to_pylist()) == RUNS_OF_ALL
    assert list(open_dataset(uri).runs) == RUNS_OF_ALL
    assert not (on_spark.directory.path / "unlanded").exists()


def test_traces_of_failures_are_retained_and_are_those_of_the_table(on_spark):
    retained = {row["run"] for row in on_spark.outcomes().to_pylist() if row["trace"]}

    assert retained == {"forgetful-seed1", "forgetful-seed2"}
    assert {path.name for path in (on_spark.directory.path / "runs").iterdir()} == retained


def test_notebooks_read_the_dataset_of_a_campaign_and_its_gold(spark, here, on_spark):
    path = on_spark.directory.path
    landed = emulator.traces(spark, path)
    frames, frames_of_here = emulator.traces(path), emulator.traces(here.directory.path)

    assert landed.dataset.uri == on_spark.directory.dataset_uri
    assert landed.runs().count() == 4
    assert frames.orphans().equals(frames_of_here.orphans())
    assert frames.runs()["verdict"].tolist() == frames_of_here.runs()["verdict"].tolist()


def test_a_campaign_that_moves_takes_its_dataset_along(on_spark, tmp_path):
    moved = tmp_path / "moved" / NAME
    shutil.copytree(on_spark.directory.path, moved)

    assert CampaignResults(moved).directory.dataset_uri == f"file://{moved}/dataset"
    assert costless(CampaignResults(moved).outcomes()) == costless(on_spark.outcomes())


def test_runs_that_were_executed_and_not_landed_are_landed_and_judged_by_the_same_command(
    spark, results_of_here, interrupted, unlanded
):
    there = interrupted[0] / "campaigns" / NAME
    assert interrupted[1] == (
        f"interrupted; 4 of 4 runs are in {there}, 0 of 4 runs are in file://{there}/dataset, 4 have not been "
        "judged; the same command goes on from there"
    )
    path = unlanded / "campaigns" / NAME
    assert len(list((path / "unlanded").iterdir())) == 2, "the traces of the others stay"
    left = CampaignResults(path)
    assert {row["outcome"] for row in left.outcomes().to_pylist()} == {"executed"}
    assert exit_status(left.case_results()) == 2

    calls = []
    judged = execute(unlanded, HERE, judging(spark, calls))
    assert calls == [4]
    assert executions(judged) == 4
    assert results(judged)[:4] == results_of_here[:4]
    assert sorted(path.name for path in (path / "runs").iterdir()) == ["forgetful-seed1", "forgetful-seed2"]
    assert not (path / "unlanded").exists()
    execute(unlanded, HERE, no_judge)


def test_an_interrupted_campaign_goes_on_and_each_run_lands_once(spark, results_of_here, tmp_path):
    with pytest.raises(CampaignInterrupted):
        execute(tmp_path, HERE, no_judge, watch=interrupted_after(1))
    calls = []
    resumed = execute(tmp_path, HERE, judging(spark, calls))

    assert calls == [1]
    assert executions(resumed) == 4
    assert results(resumed)[:4] == results_of_here[:4]
    dataset = open_dataset(resumed.directory.dataset_uri)
    dataset.check()
    assert sorted(dataset.table(RUNS)["run"].to_pylist()) == RUNS_OF_ALL


def test_a_dataset_that_has_some_runs_gets_the_others_and_judges_no_run_twice(spark, results_of_here, tmp_path):
    execute(tmp_path / "one", HERE, judging(spark), to=tmp_path / "dataset", **{'"1-4"': '"1"'})
    both = execute(tmp_path / "two", HERE, judging(spark), to=tmp_path / "dataset")

    assert results(both)[:4] == results_of_here[:4]
    assert sorted(open_dataset(tmp_path / "dataset").table(RUNS)["run"].to_pylist()) == RUNS_OF_ALL
    assert sorted(gold_of(located(tmp_path / "dataset")).table(RUNS)["run"].to_pylist()) == RUNS_OF_ALL
    assert not (both.directory.path / "dataset").exists()


def test_a_campaign_that_one_process_has_judged_goes_on_with_spark(spark, results_of_here, tmp_path):
    execute(tmp_path, HERE, **{'"1-4"': '"1"'})
    mixed = execute(tmp_path, HERE, judging(spark))

    assert executions(mixed) == 4, "no run is executed again for the dataset"
    assert results(mixed)[:4] == results_of_here[:4]
    assert list(open_dataset(mixed.directory.dataset_uri).runs) == ["baseline-seed2", "forgetful-seed2"]


def test_one_process_executes_again_what_spark_has_not_judged(results_of_here, unlanded):
    judged = execute(unlanded, HERE)

    assert executions(judged) == 8
    assert results(judged)[:4] == results_of_here[:4]


def test_the_outcome_of_a_run_that_crashed_comes_from_its_line(spark, here, tmp_path, monkeypatch):
    run_scenario = case_module.run_scenario

    def run(scenario, **options):
        if scenario.seed == 2:
            raise ZeroDivisionError
        return run_scenario(scenario, **options)

    monkeypatch.setattr(case_module, "run_scenario", run)
    found = execute(tmp_path, HERE, judging(spark))
    rows = {row["run"]: row for row in found.outcomes().to_pylist()}
    of_here = {row["run"]: row["verdict"] for row in here.outcomes().to_pylist()}

    assert {name: row["outcome"] for name, row in rows.items() if "seed2" in name} == {
        "baseline-seed2": "crashed",
        "forgetful-seed2": "crashed",
    }
    assert rows["baseline-seed2"]["reasons"] == ["ZeroDivisionError:"]
    assert all(row["verdict"] == of_here[name] for name, row in rows.items() if "seed2" not in name)
    assert len(gold_of(located(found.directory.dataset_uri)).runs) == 2


def test_compare_judges_first_what_gold_lacks(spark, here, without_gold, monkeypatch):
    path = without_gold / "campaigns" / NAME
    monkeypatch.setattr(Judging, "write_gold", lambda _, uri: judging(spark)(uri, 0))
    done = CliRunner().invoke(app, ["compare", str(path), "--json"])

    assert done.stderr == "rmqemu: 4 runs have not been judged: they are judged first\n"
    assert json.loads(done.stdout) == json.loads(
        CliRunner().invoke(app, ["compare", str(here.directory.path), "--json"]).stdout
    )


def test_what_keeps_a_worker_from_executing_runs_is_one_line(spark, tmp_path):
    def connect():
        head = tmp_path / "campaigns" / NAME / "campaign.json"
        content = json.loads(head.read_text())
        content.pop("seal")
        # The driver has looked at it: to workers it is that of a machine with another version.
        content["versions"]["trio"] = "0.1"
        head.write_text(sealed({**content, "digest": campaign_digest(content)}))
        return spark

    with pytest.raises(CampaignError) as refused:
        execute(tmp_path, partial(execute_on_spark, connect=connect), no_judge)
    assert str(refused.value).startswith("a worker cannot run: version of trio is '0.1' there and ")
    assert "; 0 of 4 runs are in " in str(refused.value)
