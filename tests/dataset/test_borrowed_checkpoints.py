"""A checkpoint that somebody else has made runs no code, fills no memory and leads nowhere: it is refused."""

import pickle
import zlib

import pytest

from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.live import checkpoint as checkpoints
from emulator.analysis.live.changes import LiveWatch
from emulator.analysis.live.checkpoint import WATCH, Checkpoint, CheckpointError, StoredWatch
from emulator.base.files import UnexpectedFileError
from emulator.dataset.following_runs import REACHED, FollowingRuns
from emulator.trace.run_directory import open_run, versions
from emulator.trace.seals import checksum, sealed, unsealed
from emulator.trace.tail import TracePlace
from lake.landed_runs import killed


class Program:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def checkpoint(tmp_path):
    made = Checkpoint(tmp_path / "checkpoint", open_run(killed(tmp_path, "run")))
    made.claim()
    yield made
    made.release()


def stored():
    return StoredWatch(TracePlace(), TracePlace(3, 3, 0), LiveWatch(RunFacts(1)))


def test_the_watchers_that_were_stored_go_on(checkpoint):
    checkpoint.save_watch(stored())
    assert checkpoint.stored_watch().place == TracePlace(3, 3, 0)


def test_a_state_with_a_program_in_it_is_refused(checkpoint, tmp_path):
    checkpoint.save_watch(stored())
    line = (checkpoint.folder / WATCH).read_bytes().partition(b"\n")[0]
    state = zlib.compress(pickle.dumps(Program(str(tmp_path / "run-by-the-state"))))
    head = unsealed(line) | {"release": versions()["rocketmq-emulator"], "state": checksum(state)}
    (checkpoint.folder / WATCH).write_bytes(sealed(head).encode() + b"\n" + state)

    with pytest.raises(CheckpointError, match="remove the folder to begin again"):
        checkpoint.stored_watch()
    assert not (tmp_path / "run-by-the-state").exists()


def sealed_state(checkpoint, state, **changes):
    """The stored watchers with another state, and with other words in the head."""
    checkpoint.save_watch(stored())
    line = (checkpoint.folder / WATCH).read_bytes().partition(b"\n")[0]
    head = unsealed(line) | {"release": versions()["rocketmq-emulator"], "state": checksum(state)} | changes
    (checkpoint.folder / WATCH).write_bytes(sealed(head).encode() + b"\n" + state)


@pytest.mark.parametrize(
    ("state", "changes", "problem"),
    [
        (zlib.compress(bytes(2 << 20)), {}, "expected a state of at most 1048576 bytes"),
        (b"no zlib", {}, "incorrect header check"),
        (zlib.compress(pickle.dumps(range(10**12))), {}, "a range of more than 1000000 numbers"),
        (zlib.compress(pickle.dumps(7)), {"place": {"rows": "many"}}, "expected a number, not 'many'"),
        (zlib.compress(pickle.dumps(7)), {"place": 7}, "'int' object is not iterable"),
    ],
    ids=["of many bytes", "of none", "of many numbers", "without a place", "with a number as place"],
)
def test_a_state_that_would_fill_the_memory_or_is_none_is_refused(checkpoint, monkeypatch, state, changes, problem):
    monkeypatch.setattr(checkpoints, "DATA_BYTES_MAX", 1 << 20)
    sealed_state(checkpoint, state, **changes)

    with pytest.raises(CheckpointError, match=problem):
        checkpoint.stored_watch()


@pytest.mark.parametrize("changes", [{"t_ns": "noon"}, {"place": {"rows": -1}}, {"place": [1]}, {"place": {"row": 1}}])
def test_progress_that_is_none_is_refused(checkpoint, changes):
    path = checkpoint.folder / "watch.json"
    path.write_text(sealed(unsealed(path.read_bytes()) | changes))
    checkpoint.release()

    with pytest.raises(CheckpointError, match=r"watch\.json is damaged: "):
        checkpoint.claim()


@pytest.mark.parametrize("place", ["spark", "spark/offsets", "spark/state/0/7"])
def test_spark_writes_nothing_where_a_link_in_a_checkpoint_leads(tmp_path, place):
    killed(tmp_path / "runs", "run")
    mine = tmp_path / "mine"
    mine.mkdir()
    linked = tmp_path / "checkpoint" / place
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(mine)

    with pytest.raises(UnexpectedFileError, match=f"{place}: expected "):
        FollowingRuns([tmp_path / "runs"], tmp_path / "checkpoint", print)


@pytest.mark.parametrize(
    "reached", [{}, {"numbers": [1], "open": []}, {"numbers": {"a/0": "x"}, "open": []}, {"numbers": {}, "open": [{}]}]
)
def test_a_checkpoint_of_several_runs_that_was_altered_is_refused(tmp_path, reached):
    killed(tmp_path / "runs", "run")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / REACHED).write_text(sealed(reached))

    with pytest.raises(CheckpointError, match=r"reached\.json is damaged: "):
        FollowingRuns([tmp_path / "runs"], tmp_path / "checkpoint", print)
