"""`rmqemu analyze` with several runs, and with a master of Spark."""

import json
import socket

import pytest
from typer.testing import CliRunner

from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import random_trace
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.cli.main import app
from support.rmqemu_process import ENGINE_OF_TESTS


@pytest.fixture
def runs(tmp_path):
    sick = write_run(demo_trace(), tmp_path / "sick", END_S)
    quiet = HandMadeTrace().life("a", "started", "g").believe("a", 1).own("a", "acquired")
    return [sick, write_run(quiet, tmp_path / "quiet", 60)]


def analyze(*words):
    return CliRunner().invoke(app, ["analyze", *map(str, words)])


def test_several_runs_are_a_line_each_and_the_worst_decides_the_status(runs):
    done = analyze(*runs)
    rows = [line.split()[:3] for line in done.stdout.splitlines()]
    assert ["invalid", "calm", "sick"] in rows
    assert ["valid", "calm", "quiet"] in rows
    assert done.stdout.splitlines()[-1] == "2 runs: 1 valid, 1 invalid; service 2 calm"
    assert done.exit_code == 1
    assert not (runs[0] / "ownership.html").exists()


def test_what_is_no_run_is_said_and_the_others_are_judged(runs, tmp_path):
    done = analyze(*runs, tmp_path / "none")
    assert done.stdout.splitlines()[-1] == "2 runs: 1 valid, 1 invalid; service 2 calm; 1 refused"
    assert done.stderr.startswith(f"{ENGINE_OF_TESTS}\nrmqemu: {tmp_path / 'none'} is not a run")
    assert done.exit_code == 2


def test_several_runs_as_json_are_a_list(runs):
    reports = json.loads(analyze("--json", *runs).stdout)
    assert [report["run_id"] for report in reports] == ["sick", "quiet"]


def test_a_damaged_run_among_others_is_reported_by_file(runs, tmp_path):
    damaged = write_run(random_trace(1), tmp_path / "damaged", 40)
    segment = next((damaged / "trace").glob("*/seg-000000.parquet"))
    segment.write_bytes(segment.read_bytes()[:-4] + b"zzzz")
    done = analyze(damaged, runs[1])
    assert done.stderr == f"{ENGINE_OF_TESTS}\nrmqemu: {segment} is damaged: its content was changed\n"
    assert done.stdout.splitlines()[-1] == "1 run: 1 valid; service 1 calm; 1 refused"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_master_that_does_not_answer_or_is_none_is_one_line(runs):
    port = free_port()
    gone = analyze("--master", f"spark://127.0.0.1:{port}", runs[1])
    assert gone.stderr == f"rmqemu: spark://127.0.0.1:{port} cannot be reached: Connection refused\n"
    wrong = analyze("--master", "sprak://x", runs[1])
    assert "expected local[N], local-cluster[N,CORES,MB] or spark://HOST:PORT" in wrong.stderr
    relative_path = analyze("--engine", "local", "--master", "local[2]", runs[1])
    assert relative_path.stderr == "rmqemu: --master: expected only with --engine spark\n"
    assert [done.exit_code for done in (gone, wrong, relative_path)] == [2, 2, 2]
