"""What cannot be run is told in one line, with status 2, before anything has started."""

import os
import resource

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from support.rmqemu_process import SMALL, rmqemu, write_small

MISTAKES = {
    "an unknown key": (
        "name = 'small'\nnmae = 'x'",
        'scenario.nmae: unknown key; did you mean "name"?',
    ),
    "a negative time-out": (
        "[nameserver]\noptions = {scanNotActiveBrokerInterval = -1}",
        "nameserver.options.scanNotActiveBrokerInterval: expected",
    ),
    "two nodes of one name": (
        "[[broker]]\nname = 'broker-a'",
        'broker[2].name: expected a name of its own, "broker-a" is already at broker[0].name',
    ),
    "a topic on no broker": (
        "[[topic]]\nname = 't'\nbrokers = []",
        "topic[1].brokers: expected a list of one text or more",
    ),
    "a fault on a link that does not exist": (
        "[[fault]]\nkind = 'cut'\nfrom = 'consumer-9'\nto = 'broker-b'\nat_s = 1",
        'fault[2].from: unknown node "consumer-9"; did you mean',
    ),
}


@pytest.mark.parametrize("command", ["run", "up"])
@pytest.mark.parametrize(("text", "problem"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_one_line_with_file_key_and_what_was_expected(tmp_path, monkeypatch, command, text, problem):
    monkeypatch.chdir(tmp_path)
    whole = SMALL.replace('name = "small"', text) if text.startswith("name") else SMALL + text
    (tmp_path / "wrong.toml").write_text(whole)
    done = CliRunner().invoke(app, [command, "wrong.toml"])

    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"rmqemu: wrong.toml: {problem}")
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.toml"], "nothing was started"


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = rmqemu("run", "nowhere.toml", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("rmqemu: nowhere.toml: file: cannot be read: ")
    assert list(tmp_path.iterdir()) == []


def test_a_seed_that_is_no_number_is_refused(tmp_path):
    done = rmqemu("run", write_small(tmp_path), "--seed", "-1", cwd=tmp_path)

    assert done.returncode == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("runs", ["taken", "taken/below", "/proc/nothing"])
def test_a_run_directory_that_cannot_be_made_is_said_at_once(tmp_path, runs):
    (tmp_path / "taken").write_text("")
    done = rmqemu("run", write_small(tmp_path), "--runs", runs, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert len([line for line in done.stderr.splitlines() if "rmqemu:" in line]) == 1
    assert f"rmqemu: {runs}: no run directory can be created: " in done.stderr


def test_a_full_disk_is_said_in_one_line_and_leaves_no_run(tmp_path):
    scenario = write_small(tmp_path, **{"rate_per_s = 5": "rate_per_s = 300", "run_for_s = 70": "run_for_s = 500_000"})
    limit = 100_000  # bytes per file, less than the first segment of the rpc table

    def fills_up():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = rmqemu("run", scenario, cwd=tmp_path, before=fills_up)
    run = tmp_path / "runs" / "small-sim-seed1-1"

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"rmqemu: runs/{run.name}: the trace cannot be written: {os.strerror(27)}"
    assert "100%" not in done.stderr, "the run ends when the disk is full, not at its own end"
    assert not (run / "manifest.json").exists()
    assert not [path for path in run.rglob(".*") if path.is_file()], "nothing half-written is left"
    assert rmqemu("verify", run, cwd=tmp_path).returncode == 2
