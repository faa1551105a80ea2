"""What cannot be run is reported in one line, with status 2, before anything has started."""

import json
import os
import re
import resource
from pathlib import Path

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
    assert re.match(rf"rmqemu: wrong\.toml:\d+: {re.escape(problem)}", done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.toml"], "nothing was started"


def test_a_limit_of_the_log_that_is_no_size_is_refused_before_anything_starts(tmp_path):
    write_small(tmp_path)
    done = rmqemu("up", "small.toml", "--store-max", "lots", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rmqemu: --store-max: expected bytes >= 1 such as 200MB or 1GiB, not lots\n"
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


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


PATHS = ["../../evil", "/tmp/evil", "a/b", "..", ".hidden", "a\nb", "a\0b", "a b", "x" * 101, "", "-x"]


@pytest.mark.parametrize("name", PATHS, ids=repr)
def test_the_name_of_a_scenario_cannot_be_a_path(tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("s.toml").write_text(SMALL.replace('name = "small"', f"name = {json.dumps(name)}"))
    done = CliRunner().invoke(app, ["run", "s.toml"])

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqemu: s.toml:3: scenario.name: expected a name of up to 100 letters, digits and")
    assert [path.name for path in tmp_path.rglob("*")] == ["here", "s.toml"], "nothing was written"


def _sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 30)
    return path


ODD_FILES = {
    "a directory": (lambda path: path.mkdir() or path, "expected a regular file"),
    "a pipe without a writer": (lambda path: os.mkfifo(path) or path, "expected a regular file"),
    "a device without an end": (lambda _: Path("/dev/zero"), "expected a regular file"),
    "a file of 1 GiB": (_sparse, "expected at most"),
    "no UTF-8": (lambda path: path.write_bytes(b"# \xff") and path, "expected UTF-8: byte 2 is not"),
}


@pytest.mark.parametrize(("make", "problem"), ODD_FILES.values(), ids=list(ODD_FILES))
def test_odd_files_are_no_scenario_and_no_script(tmp_path, make, problem):
    odd = make(tmp_path / "odd")
    for arguments in (["run", str(odd)], ["up", str(odd)], ["check", str(odd)]):
        done = CliRunner().invoke(app, arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"rmqemu: {odd}: file: cannot be read: {problem}")
    scenario = write_small(tmp_path)
    done = CliRunner().invoke(app, ["run", str(scenario), "--script", str(odd), "--runs", str(tmp_path)])
    assert done.exit_code == 2
    assert f"rmqemu: {odd}: cannot be read: {problem}" in done.stderr


SIZES = {
    "[[broker]]\nname = 'b'\nreplicas = 100_000": "broker[2].replicas: expected a whole number >= 1 and at most 2000",
    "[[broker]]\nname = 'b'\nreplicas = 2_000": "broker[2]: expected 2000 brokers at most in all",
    "[[topic]]\nname = 't'\nqueues = 2_147_483_647": "topic[1].queues: expected a whole number >= 1 and at most 1024",
    "[[consumer]]\ngroup = 'k'\ntopics = ['orders']\ncount = 1_000_000_000": "consumer[1].count: expected a whole",
    "[[producer]]\ngroup = 'k'\ntopic = 'orders'\nrate_per_s = 1_000_000_000": "producer[1].rate_per_s: expected",
    "[[nemesis]]\nkind = 'kill'\nnode = 'broker-a'\nevery_ms = 1\nmin_s = 1": "nemesis: expected 10000 faults",
    "[[broker]]\nname = 'b'\nstart_after_s = 1e10": "broker[2].start_after_s: expected 31536000 seconds at most",
}


@pytest.mark.parametrize(("text", "problem"), SIZES.items(), ids=list(SIZES.values()))
def test_what_no_cluster_has_is_refused_before_anything_is_built(tmp_path, text, problem):
    (tmp_path / "s.toml").write_text(f"{SMALL}\n{text}\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "s.toml")])

    assert (done.exit_code, done.stdout) == (2, "")
    assert re.match(rf"rmqemu: {tmp_path / 's.toml'}:\d+: {re.escape(problem)}", done.stderr)
    assert len(done.stderr.splitlines()) == 1


LONG = "9" * 100_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", LONG],
        ["run", "s.toml", "--seed", LONG],
        ["run", "s.toml", "--seed", "1e999"],
        ["run", "s.toml", "--seed", str(2**63)],
        ["run", "s.toml", "--mode", LONG],
        ["run", "s.toml", "--runs", LONG],
        ["run", "s.toml", f"--{LONG}"],
        ["up", "s.toml", "--guest", LONG],
        ["up", "s.toml", "--guest", ""],
        ["up", "s.toml", "--web-port", LONG],
        ["why", LONG, "node", LONG],
        ["ctl", "--run", LONG, "status"],
        [LONG],
    ],
    ids=lambda words: " ".join(word[:9] for word in words),
)
def test_no_complaint_about_an_argument_repeats_all_of_it(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SMALL)
    done = CliRunner().invoke(app, arguments)

    assert done.exit_code == 2, done.exception
    assert len(done.stderr) < 3_000
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--runs", ("run", "first-cluster", "--runs", "s3a://bucket/runs")),
        ("--runs", ("run", "first-cluster", "--seeds", "1-2", "--runs", "file:///runs")),
        ("--runs", ("up", "first-cluster", "--runs", "hdfs://h:1/runs")),
        ("--runs", ("demo", "--runs", "http://h/runs")),
        ("--campaigns", ("campaign", "silent-member", "--engine", "local", "--campaigns", "s3a://bucket/c")),
        ("--checkpoint", ("watch", "run", "--checkpoint", "s3a://bucket/checkpoint")),
    ],
)
def test_a_uri_in_the_place_of_a_folder_makes_no_folder_of_that_name(tmp_path, option, words):
    done = rmqemu(*words, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rmqemu: {option} '{Path(words[-1])}': expected a folder of this machine, not a URI\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["", "a*b", "http://h/x", "s3a://"])
def test_a_campaign_with_no_place_for_its_dataset_begins_nothing(tmp_path, place):
    done = rmqemu("campaign", "silent-member", "--engine", "local", "--to", place, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rmqemu: '{place}': expected ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
