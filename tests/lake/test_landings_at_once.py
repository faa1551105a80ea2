"""Landings that are killed, and several at the same time: no run is lost, and none is there twice."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyarrow import fs

from emulator.lake import exclusive, landing
from emulator.lake.filesystems import Location, located
from emulator.lake.landing import ParquetLanding, commit, land, land_part
from emulator.lake.snapshot import open_dataset, read_snapshot
from emulator.lake.sources import RunSource, parts_of
from lake.landed_runs import commit_at_once, write

BLOCKED = """
import sys
from emulator.lake.landing import land

def block(source):
    if source.run == "c":
        print("c is written", flush=True)
        sys.stdin.read()

land(sys.argv[2:], sys.argv[1], on_run=block)
"""
WRITING = f"from emulator.lake import files\nfiles.ROWS_PER_GROUP = 1\n{BLOCKED}"
"""Its rows are in files when it blocks, not in memory."""


def python(program, *arguments):
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def listed_in(dataset):
    return sorted(entry.file for entry in dataset.snapshot.files)


@pytest.fixture
def runs(tmp_path):
    return [write(tmp_path / "runs", name, number) for number, name in enumerate("abcd", 1)]


@pytest.mark.parametrize("at_end", [signal.SIGKILL, signal.SIGINT])
def test_a_landing_that_ends_in_the_middle_leaves_the_snapshot_before(tmp_path, runs, at_end):
    folder = tmp_path / "dataset"
    land(runs[:1], folder)
    before = listed_in(open_dataset(folder))
    process = python(BLOCKED, folder, *runs)
    assert process.stdout.readline() == "c is written\n"
    process.send_signal(at_end)
    process.communicate()

    assert open_dataset(folder).runs == ("a",)
    assert listed_in(open_dataset(folder)) == before
    landed = land(runs, folder)
    assert [entry.run for entry in landed.runs] == ["b", "c", "d"]
    assert files_in(folder) == listed_in(open_dataset(folder))
    open_dataset(folder).check()


def test_files_of_a_killed_landing_are_removed_by_the_next_one(tmp_path, runs):
    folder = tmp_path / "dataset"
    process = python(WRITING, folder, *runs)
    process.stdout.readline()
    left = files_in(folder)
    process.kill()
    process.communicate()
    land(runs[:1], folder)

    assert left
    assert not [file for file in files_in(folder) if file in left]
    assert [path.name for path in folder.iterdir() if path.name.startswith(".landing")] == []


def test_files_of_a_landing_that_lives_are_left_alone(tmp_path, runs):
    folder = tmp_path / "dataset"
    with ParquetLanding(folder) as living:
        part = land_part([RunSource(runs[0])], folder, landing=living.name)
        land(runs[1:2], folder)

        assert [file for file in files_in(folder) if file in [entry.file for entry in part.files]]
        commit(folder, [part])
    assert open_dataset(folder).runs == ("a", "b")
    open_dataset(folder).check()


def test_files_of_a_part_without_a_landing_are_removed_after_a_day(tmp_path, runs):
    folder = tmp_path / "dataset"
    part = land_part([RunSource(runs[0])], folder)
    land(runs[1:2], folder)
    young = files_in(folder)
    for entry in part.files:
        os.utime(folder / entry.file, (0, 0))
    land(runs[2:3], folder)

    assert [entry.file for entry in part.files if entry.file not in young] == []
    assert files_in(folder) == listed_in(open_dataset(folder))


def test_parts_that_tasks_have_written_are_listed_by_one_commit(tmp_path, runs):
    folder = tmp_path / "dataset"
    with ParquetLanding(folder) as driver:
        parts = [land_part([RunSource(run)], folder, landing=driver.name) for run in runs]
        assert not (folder / "dataset.json").exists()
        snapshot, lost = commit(folder, parts)

    assert list(snapshot.runs) == ["a", "b", "c", "d"]
    assert lost == ()
    open_dataset(folder).check()


def test_a_commit_that_is_repeated_changes_nothing(tmp_path, runs):
    part = land_part([RunSource(runs[0])], tmp_path / "dataset")
    first, _ = commit(tmp_path / "dataset", [part])
    again, lost = commit(tmp_path / "dataset", [part])

    assert (again, lost) == (first, ())
    open_dataset(tmp_path / "dataset").check()


def test_of_two_parts_with_one_run_the_second_is_given_back(tmp_path, runs):
    folder = tmp_path / "dataset"
    first, second = (land_part([RunSource(run) for run in some], folder) for some in (runs[:2], runs[1:3]))
    snapshot, lost = commit(folder, [first, second])

    assert list(snapshot.runs) == ["a", "b"]
    assert lost == (second,)
    assert files_in(folder) == listed_in(open_dataset(folder))


def test_a_landing_skips_what_another_one_has_added_since_it_began(tmp_path, runs):
    folder = tmp_path / "dataset"
    with ParquetLanding(folder) as late:
        land(runs[:2], folder)
        landed = late.append([RunSource(run) for run in runs[:3]])

    assert landed.skipped == ("a", "b")
    assert [entry.run for entry in landed.runs] == ["c"]
    assert open_dataset(folder).runs == ("a", "b", "c")
    assert open_dataset(folder).table("runs")["run"].to_pylist() == ["a", "b", "c"]


def test_commits_at_once_lose_no_run(tmp_path):
    commit_at_once(tmp_path / "dataset", landings=4, commits=20)

    assert len(read_snapshot(located(tmp_path / "dataset")).runs) == 80


def test_landings_at_once_lose_no_run(tmp_path):
    runs = [write(tmp_path / "runs", f"run-{number:02}", 1) for number in range(12)]
    shares = [runs[0:4], runs[3:7], runs[6:10], runs[8:12]]
    with ThreadPoolExecutor(len(shares)) as pool:
        landed = list(pool.map(lambda share: land(share, tmp_path / "dataset"), shares))
    dataset = open_dataset(tmp_path / "dataset")

    assert sorted(entry.run for item in landed for entry in item.runs) == sorted(run.name for run in runs)
    assert sorted(dataset.table("runs")["run"].to_pylist()) == sorted(run.name for run in runs)
    assert files_in(tmp_path / "dataset") == listed_in(dataset)


class MadeMeanwhile:
    """A file system whose directory is made between pyarrow's attempt to list it and its look whether it is there."""

    def __init__(self, path):
        self.path = path

    def get_file_info(self, selector):
        if not self.path.exists():
            self.path.mkdir()
            (self.path / "made").touch()
            raise FileNotFoundError(f"Cannot list directory '{self.path}'")
        return fs.LocalFileSystem().get_file_info(selector)


def test_a_directory_that_is_made_while_it_is_listed_is_listed_again(tmp_path):
    folder = tmp_path / "dataset"
    listed = Location(folder.as_uri(), MadeMeanwhile(folder), str(folder)).listing()

    assert [info.base_name for info in listed] == ["made"]


def test_without_locks_landings_take_turns(tmp_path, runs, monkeypatch):
    def no_locks(*_):
        raise OSError("Function not implemented")

    monkeypatch.setattr(exclusive.fcntl, "flock", no_locks)
    for run in runs:
        land([run], tmp_path / "dataset")

    assert open_dataset(tmp_path / "dataset").runs == ("a", "b", "c", "d")
    assert [path.name for path in (tmp_path / "dataset" / ".turns").iterdir()] == []


def test_the_turn_of_a_killed_landing_ends(tmp_path, runs, monkeypatch):
    turns = tmp_path / "dataset" / ".turns"
    turns.mkdir(parents=True)
    for left in ("choosing-dead", "turn-000007-dead"):
        (turns / left).write_text("-")
    monkeypatch.setattr(exclusive, "_is_locked", lambda *_: False)
    monkeypatch.setattr(exclusive, "_TURN_S", 0.2)
    land(runs, tmp_path / "dataset")

    assert open_dataset(tmp_path / "dataset").runs == ("a", "b", "c", "d")
    assert list(turns.iterdir()) == []


def test_runs_are_landed_in_parts_of_bounded_size(tmp_path, runs, monkeypatch):
    monkeypatch.setattr("emulator.lake.sources.RUNS_PER_PART", 3)
    sources = [RunSource(run) for run in reversed(runs)]

    assert [[source.run for source in part] for part in parts_of(sources)] == [["a", "b", "c"], ["d"]]
    monkeypatch.setattr("emulator.lake.sources.BYTES_PER_PART", 1)
    assert [[source.run for source in part] for part in parts_of(sources)] == [["a"], ["b"], ["c"], ["d"]]


def test_each_part_is_there_when_the_next_one_begins(tmp_path, runs, monkeypatch):
    monkeypatch.setattr("emulator.lake.sources.RUNS_PER_PART", 1)
    there = []
    land(runs, tmp_path / "dataset", on_part=lambda _: there.append(len(open_dataset(tmp_path / "dataset").runs)))

    assert there == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["notes.txt", "trace/index.jsonl", "runs/a/manifest.json"])
def test_a_directory_that_holds_something_else_is_left_alone(tmp_path, runs, name):
    folder = tmp_path / "other"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("")

    with pytest.raises(landing.DatasetError, match=f"is no dataset, it holds {name}: expected a dataset, or"):
        land(runs, folder)
    assert [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()] == [name]


def test_files_that_no_landing_wrote_are_left_alone(tmp_path, runs):
    folder = tmp_path / "dataset"
    land(runs[:1], folder)
    for name in ("notes.parquet", ".hidden"):
        (folder / "trace" / "messages" / name).write_text("")
        os.utime(folder / "trace" / "messages" / name, (0, 0))
    land(runs, folder)

    assert (folder / "trace" / "messages" / "notes.parquet").exists()
    assert (folder / "trace" / "messages" / ".hidden").exists()


def test_a_full_disk_leaves_the_snapshot_before(tmp_path, runs, monkeypatch):
    folder = tmp_path / "dataset"
    land(runs[:1], folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Location, "put", full)
    with pytest.raises(landing.DatasetError, match="No space left on device"):
        land(runs, folder)
    monkeypatch.undo()

    assert open_dataset(folder).runs == ("a",)
    assert files_in(folder) == listed_in(open_dataset(folder))
    assert Path(folder / "dataset.json").exists()
