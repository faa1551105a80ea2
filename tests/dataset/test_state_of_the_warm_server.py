"""The state file of the warm server: which process finds it, and what a server that ended leaves; none is started."""

import fcntl
import json
import sys

import attrs
import pytest

from emulator.base.errors import UserError
from emulator.dataset import server
from emulator.dataset.sessions import find_where
from emulator.dataset.spark_location import Origin

RUNS = server.Server(
    pid=0,
    port=4711,
    token="secret",
    master="local[2]",
    memory="2g",
    java="17",
    began_s=100,
    **server._own(),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of this user's server, and no word about Spark in the environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("RMQEMU_SPARK", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    folder = server.server_folder()
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def lock(folder):
    """The lock, held as by a server that runs."""
    with (folder / "server.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def test_a_server_that_runs_is_found(folder, lock):
    server._write(folder / "server.json", RUNS)

    assert server.find_server() == RUNS
    assert find_where().origin is Origin.SERVER
    assert (folder / "server.json").stat().st_mode & 0o777 == 0o600


def test_the_state_of_a_server_that_has_gone_is_ignored_and_removed(folder):
    (folder / "server.lock").touch()
    server._write(folder / "server.json", RUNS)
    (folder / "scratch").mkdir()

    assert server.find_server() is None
    assert find_where().origin is Origin.DEFAULT
    assert server.stop_server() is None
    assert [path.name for path in folder.iterdir()] == ["server.lock"]


@pytest.mark.parametrize("state", ["", "{", "[]", "7", '{"pid": 1}', json.dumps({"odd": 1})])
def test_a_state_file_without_a_server_is_that_of_a_server_that_is_starting(folder, lock, state):
    (folder / "server.json").write_text(state)

    assert server.find_server() is None
    assert server.is_starting()
    with pytest.raises(server.ServerError, match="is just being started"):
        server.stop_server()


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("emulator", "0.1.0", "emulator 0.1.0, here "),
        ("pyspark", "4.2.0", "pyspark 4.2.0, here "),
        ("path", "/elsewhere", "path /elsewhere, here "),
        ("python", "3.12.1 of /usr/bin/python", "python 3.12.1 of /usr/bin/python, here "),
    ],
)
def test_a_server_of_another_version_is_not_used_and_the_hint_says_what_ends_it(folder, lock, key, value, line):
    server._write(folder / "server.json", attrs.evolve(RUNS, **{key: value}))
    notes = []

    assert find_where(note=notes.append).origin is Origin.DEFAULT
    (note,) = notes
    assert note.startswith(f"the warm server is not used: {line}")
    assert note.endswith("; rmqemu spark stop ends it")


def test_a_server_serves_each_interpreter_of_its_environment(folder, lock, monkeypatch):
    """A command is started by `python3`, a kernel by `python`: two names of one interpreter."""
    server._write(folder / "server.json", RUNS)
    monkeypatch.setattr(sys, "executable", f"{sys.executable}-by-another-name")

    assert find_where().origin is Origin.SERVER


def test_an_option_needs_no_hint_about_the_warm_server(folder, lock):
    server._write(folder / "server.json", attrs.evolve(RUNS, pyspark="4.2.0"))
    notes = []

    assert find_where("local[4]", note=notes.append).master == "local[4]"
    assert notes == []


def test_a_second_server_is_refused(folder, lock):
    with pytest.raises(server.ServerError, match="a server runs already, or is just being started"):
        server.start_server("local[2]", "1g")


@pytest.mark.parametrize(
    ("master", "memory", "line"),
    [
        ("nope", "2g", "--master 'nope': expected local[N], local-cluster[N,CORES,MB] or spark://HOST:PORT"),
        ("local[2]", "2x", "--memory '2x': expected a number and a unit, such as 512m or 4g"),
        ("local[2]", "0g", "--memory '0g': expected a number and a unit, such as 512m or 4g"),
    ],
)
def test_odd_options_of_a_server_get_one_line_and_start_nothing(folder, master, memory, line):
    with pytest.raises(UserError) as refused:
        server.start_server(master, memory)

    assert str(refused.value) == line
    assert list(folder.iterdir()) == []


def test_the_token_is_in_no_status():
    assert "secret" not in json.dumps(server.brief(RUNS, 160))
    assert server.brief(RUNS, 160)["up_s"] == 60
