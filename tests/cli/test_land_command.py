"""`rmqemu land`: what it prints, its exit status, and what Ctrl-C leaves."""

import fcntl
import signal

import pytest

from emulator.lake.snapshot import open_dataset
from lake.landed_runs import killed, write
from support.object_store import BUCKET, object_store
from support.rmqemu_process import rmqemu, started
from support.waiting import until

AGAIN = "when that is mended, the same command goes on from there"


@pytest.fixture
def runs(tmp_path):
    return [write(tmp_path / "runs", "a"), write(tmp_path / "runs", "b"), killed(tmp_path / "runs", "c")]


def test_a_folder_of_runs_lands_and_the_last_line_is_the_uri(runs, tmp_path):
    done = rmqemu("land", "runs", "--to", "dataset", cwd=tmp_path)
    dataset = open_dataset(tmp_path / "dataset")
    size = sum(entry.bytes for entry in dataset.snapshot.files)

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"landed 3 runs: {dataset.rows} rows, {size:,} bytes",
        f"file://{tmp_path}/dataset",
    ]
    assert dataset.runs == ("a", "b", "c")


def test_a_run_that_is_there_is_skipped_and_named(runs, tmp_path):
    rmqemu("land", "runs/a", "--to", "dataset", cwd=tmp_path)
    done = rmqemu("land", "runs/a", "runs/b", "--to", "dataset", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("landed 1 run: ")
    assert done.stdout.splitlines()[1:] == ["skipped 1 run that the dataset has: a", f"file://{tmp_path}/dataset"]


def test_a_run_that_cannot_be_read_is_a_line_and_the_others_land(runs, tmp_path):
    (runs[0] / "manifest.json").write_text("{}")
    done = rmqemu("land", "runs", "--to", "dataset", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"rmqemu: {runs[0]}/manifest.json is damaged: it has no seal"
    assert done.stdout.splitlines()[1:] == ["refused 1 run", f"file://{tmp_path}/dataset"]
    assert open_dataset(tmp_path / "dataset").runs == ("b", "c")


def test_runs_of_different_releases_land_and_are_mentioned(tmp_path):
    for name, release in (("a", "0.2.0"), ("b", "0.3.0")):
        write(tmp_path / "runs", name, versions={"rocketmq-emulator": release})
    done = rmqemu("land", "runs", "--to", "dataset", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        f"rmqemu: file://{tmp_path}/dataset has runs of the releases 0.2.0, 0.3.0, which may differ from each other"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("nowhere", "--to", "dataset"),
            "nowhere does not exist: expected a run directory, a folder of runs, or a campaign",
        ),
        ((".", "--to", "dataset"), ".: expected a run directory, a folder of runs, or a campaign; it has none"),
        (
            ("runs", "--to", "ftp://host/x"),
            "'ftp://host/x': expected a path, or a URI that begins with file:, hdfs:, s3: or s3a:",
        ),
        (
            ("runs", "--to", "runs/a/manifest.json"),
            "file://FOLDER/runs/a/manifest.json: Not a directory; nothing was changed; " + AGAIN,
        ),
        (
            ("runs", "--to", "runs/a"),
            "file://FOLDER/runs/a is no dataset, it holds manifest.json: expected a dataset, or a directory that is "
            "empty; nothing was changed; " + AGAIN,
        ),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(runs, tmp_path, words, problem):
    done = rmqemu("land", *words, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].replace(str(tmp_path), "FOLDER") == f"rmqemu: {problem}"
    assert not (tmp_path / "dataset").exists()


def test_a_dataset_that_is_needed_is_asked_for(runs, tmp_path):
    done = rmqemu("land", "runs", cwd=tmp_path)

    assert done.returncode == 2
    assert "Missing option '--to'" in done.stderr


def test_ctrl_c_leaves_what_was_landed_and_says_how_to_go_on(runs, tmp_path):
    rmqemu("land", "runs/a", "--to", "dataset", cwd=tmp_path)
    with (tmp_path / "dataset" / ".lock").open("wb") as another:
        fcntl.flock(another, fcntl.LOCK_EX)  # another landing, for which this one waits
        process = started("land", "runs", "--to", "dataset", cwd=tmp_path)
        until(lambda: any((tmp_path / "dataset").glob(".landing-*")))
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout) == (130, ""), stderr
    assert stderr.splitlines()[-1] == (
        f"rmqemu: interrupted; 1 of 3 runs are in file://{tmp_path}/dataset; the same command goes on from there"
    )
    assert "Traceback" not in stderr
    assert open_dataset(tmp_path / "dataset").runs == ("a",)
    rmqemu("land", "runs", "--to", "dataset", cwd=tmp_path)
    assert open_dataset(tmp_path / "dataset").runs == ("a", "b", "c")


def test_runs_land_on_an_object_store(runs, tmp_path):
    with object_store() as environment:
        done = rmqemu("land", "runs", "--to", f"s3://{BUCKET}/x", cwd=tmp_path, **environment)
        none = rmqemu("land", "runs", "--to", "s3://nowhere/x", cwd=tmp_path, **environment)

    assert done.stdout.splitlines()[-1] == f"s3a://{BUCKET}/x"
    assert none.returncode == 2
    assert none.stderr.splitlines()[-1] == (
        f"rmqemu: s3a://nowhere/x: there is no bucket nowhere; nothing was changed; {AGAIN}"
    )
