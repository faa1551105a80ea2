"""Every operation on a run's files fails in turn: it is said at once in one line, and what is readable is whole."""

import errno
import os
import shutil

import attrs
import pyarrow.parquet as pq
import pytest
import typer

from emulator.cli.terminal import one_line_errors
from emulator.console.session import Session
from emulator.run import RunError, run_scenario
from emulator.testing import a_scenario
from emulator.time.mode import TimeMode
from emulator.trace import recorder as recorder_module
from emulator.trace import segments as segments_module
from emulator.trace.files import RunFiles, ScratchFiles
from emulator.trace.index import INDEX
from emulator.trace.run_directory import LOG_FILE, MANIFEST, NotARunError, RunEnd, open_run
from emulator.trace.schema import TABLES
from support.run_rows import table_rows

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
NEVER_S = 1e9


class FailingDisk(RunFiles):
    """Fails from the n-th operation on.

    Args:
        fails_at: number of the operation, from 1; 0: never.
        error: errno.
        half: whether a write that fails has written half of its bytes.
    """

    def __init__(self, fails_at=0, error=errno.ENOSPC, *, half=False):
        self.operations = []
        self.short_writes = False
        self._fails_at = fails_at
        self._error = error
        self._half = half

    @property
    def failed(self):
        return 0 < self._fails_at <= len(self.operations)

    def _count(self, name, path):
        self.operations.append((name, path.name))
        if self.failed:
            raise OSError(self._error, os.strerror(self._error))

    def make_directory(self, path):
        self._count("directory", path)
        super().make_directory(path)

    def make_new_directory(self, path):
        self._count("directory", path)
        super().make_new_directory(path)

    def rename(self, path, target):
        self._count("rename", target)
        super().rename(path, target)

    def remove(self, path):
        super().remove(path)

    def create(self, path, content):
        self._begin(path, "create", content, super().create)

    def append(self, path, content):
        self._begin(path, "append", content, super().append)

    def _begin(self, path, name, content, act):
        try:
            self._count(name, path)
        except OSError:
            if self._half:
                act(path, content[: len(content) // 2])
            raise
        act(path, content)

    def write(self, descriptor, content):
        return super().write(descriptor, content[: max(1, len(content) // 3)] if self.short_writes else content)


@pytest.fixture(autouse=True)
def _many_small_segments(monkeypatch):
    monkeypatch.setattr(recorder_module, "_BATCH_ROWS", 20)
    monkeypatch.setattr(recorder_module, "WRITE_EVERY_S", NEVER_S)
    monkeypatch.setattr(segments_module, "SEGMENT_ROWS", 100)


async def _cut_interactively(session: Session):
    """So that there is a line of a node in the log, and a `by_hand.toml`."""
    await session.cluster.started.wait()
    process, timeline = session.cluster.hosts["broker-a"].process, session.cluster.world.timeline
    timeline.call_at(timeline.now_ns + 1_000_000, lambda: process.log.warning("a word"), process)
    await session.say("cut c1 broker-a")


def run_on(disk, runs, mode=TimeMode.SIM):
    scenario = attrs.evolve(a_scenario(run_for_ms=2_000, consumers=1, rate_per_s=20), name="small")
    return run_scenario(scenario, mode=mode, runs=runs, files=disk, session_tasks=(_cut_interactively,))


def seqs_of(run):
    return sorted(row["seq"] for table in TABLES for row in table_rows(run, table, ("seq",)))


def operations_of_a_whole_run(runs):
    disk = FailingDisk()
    run_on(disk, runs)
    return disk.operations


def fails_at(number, error, runs, *, half):
    """Fail there, and judge what is said and what is left; returns how much of the trace is readable."""
    disk = FailingDisk(number, error, half=half)
    with pytest.raises(RunError) as reported:
        run_on(disk, runs)
    assert disk.failed
    at = disk.operations[number - 1]
    run = runs / "small-sim-seed1-1"
    where = runs if at in (("directory", runs.name), ("directory", run.name)) else run
    assert str(reported.value).startswith(f"{where}: "), at
    assert str(reported.value).endswith(f": {os.strerror(error)}"), at
    assert "\n" not in str(reported.value)
    more = disk.operations[number:]
    assert more in ([], [("append", LOG_FILE)]), "nothing more is written, except the traceback in the log"
    assert not more or at[1] != LOG_FILE, "a log that fails is left alone, and no node is blamed"
    assert not (run / MANIFEST).exists()
    assert not [path for path in run.rglob(".*") if path.is_file()], "nothing half-written is left"
    assert all(pq.read_metadata(segment).num_rows for segment in run.rglob("*.parquet")), "nor has a name"
    if not (run / "trace" / INDEX).exists():
        with pytest.raises(NotARunError, match="is not a run"):
            open_run(run)
        return 0
    opened = open_run(run)
    assert opened.ended is RunEnd.KILLED
    seqs = seqs_of(run)
    assert seqs == list(range(1, len(seqs) + 1)), at
    return len(seqs)


def test_whichever_operation_fails_it_is_said_at_once_and_what_is_readable_is_whole(tmp_path):
    operations = operations_of_a_whole_run(tmp_path / "whole")
    readable = [
        fails_at(number, ERRORS[number % 3], tmp_path / str(number), half=number % 2 == 0)
        for number in range(1, len(operations) + 1)
    ]

    kinds = dict.fromkeys(operations)
    for file in ("waiting.rows", "index.jsonl", LOG_FILE, "by_hand.toml", MANIFEST, "seg-000001.parquet"):
        assert [name for _, name in kinds if name == file], file
    assert readable == sorted(readable), "who fails later has more"
    assert readable[-1] > 200


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("half", [False, True])
def test_each_operation_fails_with_each_error(tmp_path, error, half):
    for number in range(1, len(operations_of_a_whole_run(tmp_path / "whole")) + 1):
        fails_at(number, error, tmp_path / str(number), half=half)


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_all_of_them(tmp_path):
    disk = FailingDisk()
    disk.short_writes = True
    slow = run_on(disk, tmp_path / "slow")
    fast = run_on(FailingDisk(), tmp_path / "fast")

    assert slow.manifest["digest"] == fast.manifest["digest"]
    assert seqs_of(slow.path) == seqs_of(fast.path)


@pytest.mark.parametrize("number", range(1, 16))
def test_a_scratch_folder_that_another_process_removes_is_not_created_again(tmp_path, number):
    folder = tmp_path / "under-way" / "scratch"
    folder.mkdir(parents=True)

    class Removed(ScratchFiles):
        operations = 0

        def _before_one(self):
            self.operations += 1
            if self.operations == number:
                shutil.rmtree(folder.parent)

        def make_directory(self, path):
            self._before_one()
            super().make_directory(path)

        def make_new_directory(self, path):
            self._before_one()
            super().make_new_directory(path)

        def create(self, path, content):
            self._before_one()
            super().create(path, content)

    with pytest.raises(RunError, match="No such file or directory"):
        run_scenario(a_scenario(run_for_ms=100), runs=folder, files=Removed())
    assert not folder.parent.exists()


def test_a_live_cluster_does_not_begin_on_a_full_disk(tmp_path):
    class FullDisk(RunFiles):
        def write(self, _descriptor, _content):
            raise OSError(errno.ENOSPC, "No space left on device")

    begun = []

    async def note(session):
        begun.append(session)

    with pytest.raises(RunError, match=r"live-seed1-1: the trace cannot be written: No space left on device$"):
        run_scenario(
            a_scenario(run_for_ms=100), mode=TimeMode.LIVE, runs=tmp_path, files=FullDisk(), session_tasks=(note,)
        )
    assert begun == []


def test_the_status_of_a_disk_that_fails_is_2_and_never_that_of_a_violated_oracle(tmp_path, capsys):
    with pytest.raises(typer.Exit) as ended, one_line_errors():
        run_on(FailingDisk(30), tmp_path)

    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        f"rmqemu: {tmp_path}/small-sim-seed1-1: the trace cannot be written: No space left on device\n"
    )
