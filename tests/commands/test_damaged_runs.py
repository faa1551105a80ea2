"""Damage of a run's files is told by file, with status 2, and never as a violated oracle or a stack trace."""

import shutil

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from support.rmqemu_process import rmqemu, write_small

ASKS = {"analyze": (), "verify": (), "why": ("node", "consumer-2")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder / rmqemu("run", write_small(folder), cwd=folder).stdout.strip()


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
def test_a_damaged_index_and_a_damaged_manifest_are_told(run, command):
    index, manifest = run / "trace" / "index.jsonl", run / "manifest.json"
    content = index.read_text()
    index.write_text(content.replace('"mode": "sim"', '"mode": "sin"'))
    assert refused(command, run) == [
        "rmqemu: trace/index.jsonl is damaged: line 1: it was changed after it was written"
    ]
    index.write_text(content)
    manifest.write_text(manifest.read_text()[:-40])
    assert refused(command, run)[0].startswith("rmqemu: manifest.json is damaged: it is not JSON (")
