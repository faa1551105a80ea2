"""A checkpoint that somebody else has made runs no code: its watchers are left out, and the rows are read again."""

import pickle
import zlib

import pytest

from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.live.changes import LiveWatch
from emulator.dataset.checkpoint import WATCH, Checkpoint, StoredWatch
from emulator.trace.run_directory import open_run, versions
from emulator.trace.seals import checksum, sealed, unsealed
from emulator.trace.tail import Place
from lake.landed_runs import killed


class Program:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Checkpoint(tmp_path / "checkpoint", open_run(killed(tmp_path, "run")))
    made.claim()
    yield made
    made.release()


def stored():
    return StoredWatch(Place(), Place(3, 3, 0), LiveWatch(RunFacts(1)))


def test_the_watchers_that_this_user_has_stored_go_on(checkpoint):
    checkpoint.save_watch(stored())
    assert checkpoint.stored_watch().place == Place(3, 3, 0)


def test_a_state_with_a_program_in_it_is_left_out(checkpoint, tmp_path):
    checkpoint.save_watch(stored())
    line = (checkpoint.folder / WATCH).read_bytes().partition(b"\n")[0]
    state = zlib.compress(pickle.dumps(Program(str(tmp_path / "run-by-the-state"))))
    head = unsealed(line) | {"release": versions()["rocketmq-emulator"], "state": checksum(state)}
    (checkpoint.folder / WATCH).write_bytes(sealed(head).encode() + b"\n" + state)

    assert checkpoint.stored_watch() is None
    assert not (tmp_path / "run-by-the-state").exists()


def test_watchers_of_another_user_are_left_out(checkpoint, tmp_path, monkeypatch):
    checkpoint.save_watch(stored())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert checkpoint.stored_watch() is None


def test_without_a_place_for_the_key_nothing_is_stored(checkpoint, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    checkpoint.save_watch(stored())
    assert not (checkpoint.folder / WATCH).exists()
