"""A checkpoint that somebody else has made runs no code: it is refused."""

import pickle
import zlib

import pytest

from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.live.changes import LiveWatch
from emulator.dataset.checkpoint import WATCH, Checkpoint, CheckpointError, StoredWatch
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
