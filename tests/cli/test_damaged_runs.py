"""Damage of a run's files is reported by file, with status 2, and never as a violated oracle or a stack trace."""

import errno
import os
import shutil

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from support.campaigns import SHORT
from support.rmqemu_process import rmqemu, write_small

ASKS = {"analyze": (), "verify": (), "why": ("node", "consumer-2")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder / rmqemu("run", write_small(folder, **SHORT), cwd=folder).stdout.strip()


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def refused(command, run):
    """The lines on stderr, without the path of the run."""
    done = CliRunner().invoke(app, [command, str(run), *ASKS[command]])
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr.replace(f"{run}/", "").splitlines()


@pytest.mark.parametrize("command", ASKS)
def test_each_damaged_file_has_a_line(run, command):
    rpc, beliefs = (run / "trace" / table / "seg-000000.parquet" for table in ("rpc", "beliefs"))
    content = bytearray(rpc.read_bytes())
    content[1_000:1_004] = b"\xff\xff\xff\xff"
    rpc.write_bytes(content)
    whole = beliefs.stat().st_size
    beliefs.write_bytes(beliefs.read_bytes()[:-1])
    shutil.rmtree(run / "trace" / "lifecycle")

    assert refused(command, run) == [
        f"rmqemu: trace/beliefs/seg-000000.parquet is damaged: it has {whole - 1} bytes in place of {whole}",
        "rmqemu: trace/rpc/seg-000000.parquet is damaged: its content was changed",
        "rmqemu: trace/lifecycle/seg-000000.parquet is missing",
    ]


@pytest.mark.parametrize("command", ASKS)
def test_a_damaged_index_and_a_damaged_manifest_are_reported(run, command):
    index, manifest = run / "trace" / "index.jsonl", run / "manifest.json"
    content = index.read_text()
    index.write_text(content.replace('"mode": "sim"', '"mode": "sin"'))
    assert refused(command, run) == [
        "rmqemu: trace/index.jsonl is damaged: line 1: it was changed after it was written"
    ]
    index.write_text(content)
    manifest.write_text(manifest.read_text()[:-40])
    assert refused(command, run)[0].startswith("rmqemu: manifest.json is damaged: it is not JSON (")


def warnings_of(command, run):
    done = CliRunner().invoke(app, [*command, str(run)])
    return done.exit_code, [line.replace(f"{run}/", "") for line in done.stderr.splitlines() if "log.jsonl" in line]


def test_a_log_that_was_changed_is_named_and_changes_no_verdict(run):
    command = ("analyze", "--engine", "local")
    status, lines = warnings_of(command, run)
    assert lines == []

    with (run / "log.jsonl").open("a") as log:
        log.write('{"event": "nothing happened", "level": "info", "seq": 1, "t_s": 0.1}\n')
    assert warnings_of(command, run) == (status, ["rmqemu: warning: log.jsonl was changed after the run"])
    (run / "log.jsonl").unlink()
    assert warnings_of(command, run) == (status, ["rmqemu: warning: log.jsonl is missing"])
    os.mkfifo(run / "log.jsonl")
    expected = "rmqemu: warning: log.jsonl: expected a regular file, not a named pipe"
    assert warnings_of(command, run) == (status, [expected])
    assert warnings_of(("verify",), run) == (0, [expected])


def test_a_full_disk_takes_the_picture_but_not_the_tables(run, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    done = CliRunner().invoke(app, ["analyze", "--all", "--engine", "local", str(run)])

    assert done.exit_code == 2
    assert "Invariants of RocketMQ" in done.stdout
    assert done.stderr.splitlines()[-1] == f"rmqemu: {run}/ownership.html: No space left on device"
    assert not (run / "ownership.html").exists()
    assert not (run / ".ownership.html.tmp").exists()
