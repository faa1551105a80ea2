"""`rmqemu campaign --to`: each run of a campaign lands in a dataset, whatever interrupts it."""

import shutil
import signal
from functools import partial

import pytest

from emulator.campaign import landing
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError
from emulator.campaign.execution import execute_campaign
from emulator.campaign.file import load_campaign
from emulator.campaign.landing import sources_at
from emulator.campaign.on_this_machine import execute_here
from emulator.lake.errors import DatasetError
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset
from support.campaigns import CALM, CONDITIONS, write_campaign
from support.object_store import BUCKET, object_store
from support.rmqemu_process import rmqemu, started
from support.waiting import until

NAME = "small-campaign"
SEEDS = {'"1-4"': '"1-2"'}
"""Two variants with two seeds."""
KEPT = {'"1-4"': '"1-2"\nkeep = "all"'}


def execute(folder, uri, watch=lambda _: None, **changes):
    """Run the small campaign in this process, with a dataset."""
    campaign = load_campaign(write_campaign(folder, **(SEEDS | changes)))
    engine = partial(execute_here, jobs=2)
    to = None if uri is None else str(uri)
    return execute_campaign(campaign, folder / "campaigns", engine, lambda _: watch, retry=False, to=to)


def executions(folder):
    """How many lines the parts of the campaign have."""
    parts = (folder / "campaigns" / NAME / "parts").iterdir()
    return sum(len(path.read_text().splitlines()) for path in parts)


def is_the_campaign(dataset, campaign):
    """Whether a dataset has exactly the complete runs of a campaign, with the traces that it judged."""
    outcomes = {row["run"]: row["digest"] for row in campaign.outcomes().to_pylist() if row["outcome"] == "complete"}
    runs = {row["run"]: row["digest"] for row in dataset.table("runs").to_pylist()}
    dataset.check()
    return bool(outcomes) and runs == outcomes and list(dataset.runs) == sorted(outcomes)


@pytest.fixture(scope="module")
def landed(tmp_path_factory):
    """A folder with a campaign whose runs have landed, and the campaign."""
    folder = tmp_path_factory.mktemp("landed")
    return folder, execute(folder, folder / "dataset")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a campaign whose traces are all kept, and no dataset."""
    folder = tmp_path_factory.mktemp("whole")
    execute(folder, None, **KEPT)
    return folder


@pytest.fixture
def kept(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path, dirs_exist_ok=True)


def test_all_runs_land_also_those_whose_traces_are_not_kept(landed):
    folder, campaign = landed
    dataset = open_dataset(folder / "dataset")

    assert is_the_campaign(dataset, campaign)
    assert dataset.rows == sum(campaign.outcomes()["rows"].to_pylist())
    assert list((folder / "campaigns" / NAME / "runs").iterdir()) == []
    assert not (folder / "campaigns" / NAME / "unlanded").exists()


def test_a_run_lands_with_its_campaign_its_variant_and_its_condition(tmp_path):
    execute(tmp_path, tmp_path / "dataset", **{CALM: CALM + CONDITIONS})
    rows = open_dataset(tmp_path / "dataset").table("runs").to_pylist()

    assert {row["run"]: (row["campaign"], row["variant"], row["condition"], row["seed"]) for row in rows} == {
        f"{variant}.{condition}-seed{seed}": (NAME, f"{variant}.{condition}", condition, seed)
        for variant in ("baseline", "calm")
        for condition in ("quiet", "lossy")
        for seed in (1, 2)
    }


def test_runs_land_while_others_still_run(tmp_path, monkeypatch):
    monkeypatch.setattr(landing, "RUNS_PER_PART", 2)
    there = []

    def watch(executed):
        if executed is not None and (tmp_path / "dataset" / "dataset.json").exists():
            there.append(len(open_dataset(tmp_path / "dataset").runs))

    execute(tmp_path, tmp_path / "dataset", watch, **{'"1-4"': '"1-3"'})

    assert there[0] == 2
    assert there == sorted(there)
    assert len(open_dataset(tmp_path / "dataset").runs) == 6


def test_traces_that_are_retained_land_and_stay(tmp_path):
    campaign = execute(tmp_path, tmp_path / "dataset", **KEPT)

    assert is_the_campaign(open_dataset(tmp_path / "dataset"), campaign)
    assert len(list((tmp_path / "campaigns" / NAME / "runs").iterdir())) == 4


def test_an_interrupted_campaign_lands_what_is_missing_when_it_goes_on(tmp_path):
    def stop(executed):
        if executed is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        execute(tmp_path, tmp_path / "dataset", stop)
    assert f"1 of 4 runs are in {tmp_path}/campaigns/{NAME}, 0 of 4 runs are in file://{tmp_path}/dataset; " in str(
        interrupted.value
    )
    campaign = execute(tmp_path, tmp_path / "dataset")

    assert is_the_campaign(open_dataset(tmp_path / "dataset"), campaign)
    assert executions(tmp_path) == 4


def test_runs_whose_traces_are_gone_are_executed_again_for_the_dataset(tmp_path):
    before = execute(tmp_path, None).outcomes()
    assert executions(tmp_path) == 4
    campaign = execute(tmp_path, tmp_path / "dataset")

    assert is_the_campaign(open_dataset(tmp_path / "dataset"), campaign)
    assert campaign.outcomes() == before
    assert executions(tmp_path) == 8


def test_runs_whose_traces_were_retained_are_landed_without_being_executed_again(kept):
    campaign = execute(kept, kept / "dataset", **KEPT)

    assert is_the_campaign(open_dataset(kept / "dataset"), campaign)
    assert executions(kept) == 4


def test_a_campaign_that_has_landed_is_left_as_it_is(landed):
    folder, _ = landed
    before = (folder / "dataset" / "dataset.json").read_bytes()
    execute(folder, folder / "dataset")

    assert (folder / "dataset" / "dataset.json").read_bytes() == before
    assert executions(folder) == 4


def test_a_landing_that_was_killed_while_it_removed_a_run_does_no_harm(landed):
    folder, _ = landed
    half = folder / "campaigns" / NAME / "unlanded"
    for name in ("calm-seed1", "calm-seed2-removed"):
        (half / name / "trace").mkdir(parents=True)
        (half / name / "manifest.json").write_text("")
    campaign = execute(folder, folder / "dataset")

    assert is_the_campaign(open_dataset(folder / "dataset"), campaign)
    assert not half.exists()


def test_more_seeds_are_added_to_the_dataset(tmp_path):
    execute(tmp_path, tmp_path / "dataset", **{'"1-4"': '"1"'})
    campaign = execute(tmp_path, tmp_path / "dataset")

    assert is_the_campaign(open_dataset(tmp_path / "dataset"), campaign)
    assert executions(tmp_path) == 4


def test_a_dataset_with_other_runs_of_the_same_names_is_refused(landed, tmp_path):
    uri = landed[0] / "dataset"
    before = (uri / "dataset.json").read_bytes()
    with pytest.raises(CampaignError) as refused:
        execute(tmp_path, uri, **{'leave_out = ["loss-1", "kill-2"]': 'leave_out = ["loss-1"]'})

    assert "has another run called calm-seed" in str(refused.value)
    assert "a landing replaces nothing: land it in another dataset; " in str(refused.value)
    assert (uri / "dataset.json").read_bytes() == before


def test_nothing_is_executed_for_a_dataset_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="Not a directory"):
        execute(tmp_path, tmp_path / "file" / "dataset")

    assert executions(tmp_path) == 0


def test_a_campaign_directory_is_landed_with_its_variants(whole, tmp_path):
    done = rmqemu("land", f"campaigns/{NAME}", "--to", tmp_path / "dataset", cwd=whole)
    rows = open_dataset(tmp_path / "dataset").table("runs").to_pylist()

    assert done.stdout.splitlines()[0].startswith("landed 4 runs: ")
    assert done.stdout.splitlines()[-1] == f"file://{tmp_path}/dataset"
    assert [(row["campaign"], row["variant"]) for row in rows] == [
        (NAME, "baseline"),
        (NAME, "baseline"),
        (NAME, "calm"),
        (NAME, "calm"),
    ]


def test_a_campaign_directory_without_traces_is_refused_in_a_line(tmp_path):
    execute(tmp_path, None, **{'"1-4"': '"1"\nkeep = "none"'})
    done = rmqemu("land", f"campaigns/{NAME}", "--to", "dataset", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        f'rmqemu: campaigns/{NAME}: no trace of this campaign is stored: keep = "all", or rmqemu campaign --to\n'
    )
    assert not (tmp_path / "dataset").exists()


def test_runs_that_were_landed_by_hand_are_those_of_the_campaign(kept):
    land([kept / "campaigns" / NAME / "runs"], kept / "dataset")
    campaign = execute(kept, kept / "dataset", **KEPT)

    assert is_the_campaign(open_dataset(kept / "dataset"), campaign)
    assert executions(kept) == 4


def test_a_run_of_a_campaign_lands_with_its_variant_also_where_it_or_the_folder_of_runs_is_named(whole, tmp_path):
    runs = whole / "campaigns" / NAME / "runs"
    for places in ([runs], sorted(runs.iterdir()), [runs.parent]):
        uri = tmp_path / f"dataset-{len(places)}-{places[0].name}"
        land([source for place in places for source in sources_at(place)], uri)
        rows = open_dataset(uri).table("runs").to_pylist()
        assert {(row["campaign"], row["variant"], row["seed"]) for row in rows} == {
            (NAME, variant, seed) for variant in ("baseline", "calm") for seed in (1, 2)
        }


@pytest.mark.slow
def test_a_killed_campaign_goes_on_with_the_same_command(tmp_path):
    write_campaign(tmp_path, **{'"1-4"': '"1-60"'})
    words = ("campaign", "campaign.toml", "--to", "dataset", "--jobs", "2")
    process = started(*words, cwd=tmp_path)
    until((tmp_path / "dataset" / "dataset.json").exists)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    killed = open_dataset(tmp_path / "dataset").runs
    done = rmqemu(*words, cwd=tmp_path)

    assert 50 <= len(killed) < 120
    assert done.stdout.splitlines()[-2:] == [
        f"120 of 120 runs are in file://{tmp_path}/dataset",
        f"campaigns/{NAME}",
    ], done.stderr
    assert is_the_campaign(open_dataset(tmp_path / "dataset"), CampaignResults(tmp_path / "campaigns" / NAME))


def test_a_campaign_lands_on_an_object_store(tmp_path, monkeypatch):
    with object_store() as environment:
        file = write_campaign(tmp_path, **SEEDS)
        done = rmqemu("campaign", file, "--to", f"s3://{BUCKET}/small", cwd=tmp_path, **environment)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

        assert done.stdout.splitlines()[-2] == f"4 of 4 runs are in s3a://{BUCKET}/small"
        dataset = open_dataset(f"s3a://{BUCKET}/small")
        assert is_the_campaign(dataset, CampaignResults(tmp_path / "campaigns" / NAME))


@pytest.mark.slow
@pytest.mark.spark
def test_tasks_of_spark_land_the_runs_that_they_execute(tmp_path):
    process = started("campaign", write_campaign(tmp_path), "--master", "local[2]", "--to", "dataset", cwd=tmp_path)
    stdout, stderr = process.communicate(timeout=180)

    uri = f"file://{tmp_path}/dataset"
    assert stdout.splitlines()[-3:] == [f"8 of 8 runs are in {uri}", f"{uri}/gold", f"campaigns/{NAME}"], stderr
    dataset = open_dataset(tmp_path / "dataset")
    assert is_the_campaign(dataset, CampaignResults(tmp_path / "campaigns" / NAME))
    # A landing of the driver would have landed them as one part.
    assert len([entry for entry in dataset.snapshot.files if entry.table == "runs"]) >= 2
