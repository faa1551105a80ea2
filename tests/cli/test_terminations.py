"""SIGTERM: a command ends as with Ctrl-C, and leaves nothing of its own behind."""

import os
import signal
import subprocess

import pytest

from emulator.trace.schema import TraceLevel
from support.growing import executed, growing
from support.rmqemu_process import COMMAND, SMALL
from support.waiting import until

CAMPAIGN = '[campaign]\nname = "c"\nseeds = "1-200"\ntrace = "findings"\nkeep = "none"\n'


def terminated(words, folder, when, signals=(signal.SIGTERM,)):
    """Start a command with a folder of its own for scratch files, and end it when something is there."""
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: process.poll() is not None or when(scratch))
        assert process.poll() is None, process.stderr.read()
        for number in signals:
            process.send_signal(number)
        stdout, stderr = process.communicate(timeout=180)  # other tests may have both cores
    finally:
        process.kill()
        process.wait()
    return process.returncode, stdout, stderr, [path.name for path in scratch.iterdir()]


def begun(prefix):
    return lambda scratch: any(scratch.glob(f"{prefix}*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_terminated_keeps_what_was_traced_and_says_so(tmp_path, number):
    (tmp_path / "s.toml").write_text(SMALL.replace("run_for_s = 70", "run_for_s = 500_000"))
    log = tmp_path / "runs" / "small-sim-seed1-1" / "log.jsonl"

    words = ("run", "s.toml")
    status, stdout, stderr, left = terminated(words, tmp_path, lambda _: log.exists() and log.stat().st_size, (number,))

    assert (status, stdout.strip(), left) == (130, "runs/small-sim-seed1-1", [])
    assert stderr.splitlines()[-1].startswith("rmqemu: interrupted; what was traced is in ")
    assert "Traceback" not in stderr


def test_verify_that_is_terminated_leaves_no_scratch_folder(tmp_path):
    run = executed(tmp_path / "runs").path
    status, _, stderr, left = terminated(("verify", run), tmp_path, begun("rmqemu-verify-"))

    assert (status, left) == (130, [])
    assert stderr == "rmqemu: interrupted\n"


@pytest.mark.spark
def test_an_analysis_on_spark_that_is_terminated_leaves_no_scratch_folder(tmp_path):
    run = executed(tmp_path / "runs").path
    words = ("analyze", "--engine", "spark", run)
    status, stdout, stderr, left = terminated(words, tmp_path, begun("rmqemu-spark-"))

    assert (status, stdout, left) == (130, "", [])
    assert "Traceback" not in stderr


def test_watch_that_is_terminated_leaves_no_scratch_folder(tmp_path):
    run = executed(tmp_path / "runs", TraceLevel.FULL)
    with growing(tmp_path / "growing", run) as under_way:
        under_way.grow(500)
        status, _, stderr, left = terminated(("watch", under_way.path), tmp_path, begun("rmqemu-watch-"))

    assert (status, left) == (130, [])
    assert stderr.splitlines()[-1].startswith("rmqemu: interrupted")
    assert "Traceback" not in stderr


@pytest.mark.slow
@pytest.mark.spark
def test_a_campaign_on_spark_that_is_terminated_leaves_no_scratch_folder(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN + SMALL)
    words = ("campaign", "c.toml", "--engine", "spark", "--jobs", "1")
    parts = tmp_path / "campaigns" / "c" / "parts"
    status, _, stderr, left = terminated(words, tmp_path, lambda _: parts.exists() and any(parts.iterdir()))

    assert (status, left) == (130, [])
    assert "Traceback" not in stderr
