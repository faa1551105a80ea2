"""Ctrl-C: status 130, one line, all that was traced readable, nothing left behind."""

import re
import signal
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from support.rmqemu_process import manifest_of, rmqemu, seqs_of, started, write_small
from support.waiting import until

ENDLESS = {"run_for_s = 70": "run_for_s = 500_000"}


@pytest.fixture(scope="module", params=["sim", "fast"])
def interrupted(request, tmp_path_factory):
    """A run that got Ctrl-C while its clients were starting."""
    folder = tmp_path_factory.mktemp(request.param)
    process = started("run", write_small(folder, **ENDLESS), "--mode", request.param, cwd=folder)
    run = folder / "runs" / f"small-{request.param}-seed1-1"
    log = run / "log.jsonl"
    until(lambda: process.poll() is not None or (log.exists() and log.stat().st_size > 0))
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    return process.returncode, run, stdout, stderr


def test_ctrl_c_ends_a_run_with_one_line_and_keeps_what_was_traced(interrupted):
    status, run, stdout, stderr = interrupted
    manifest = manifest_of(run)

    assert status == 130
    assert stdout == f"runs/{run.name}\n"
    assert stderr.splitlines()[-1] == f"rmqemu: interrupted; what was traced is in runs/{run.name}"
    assert "Traceback" not in stderr
    assert manifest["ended"] == "interrupted"
    assert 0 < manifest["virtual_s"] < 500_000
    assert seqs_of(run) == list(range(1, sum(manifest["rows"].values()) + 1))


def test_an_interrupted_run_cannot_be_repeated(interrupted, tmp_path):
    _, run, _, _ = interrupted
    done = rmqemu("verify", run, cwd=tmp_path)

    assert done.returncode == 2
    why = r"the run was interrupted at \d+\.\d s; its files are whole, but only complete runs can be repeated"
    assert re.fullmatch(rf"rmqemu: {run}: {why}\n", done.stderr)


def test_a_live_cluster_prints_one_aligned_line_per_event_until_ctrl_c(tmp_path):
    process = started("up", write_small(tmp_path), cwd=tmp_path)
    lines = [line.rstrip("\n") for line in islice(process.stdout, 30)]
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    run = tmp_path / "runs" / "small-live-seed1-1"

    assert process.returncode == 130
    assert all(re.match(r"^ *\d+\.\d{3}  [a-z0-9-]+ +[a-z_]+", line) for line in lines), lines
    assert len({line.index(line.split()[2], 13) for line in lines}) == 1, "the third column is aligned"
    assert lines[0].split()[1:] == ["ns-1", "started"]
    assert stdout.splitlines()[-1] == f"runs/{run.name}"
    assert stderr == f"rmqemu: interrupted; what was traced is in runs/{run.name}\n"
    assert manifest_of(run)["ended"] == "interrupted"


def test_a_script_ends_the_live_cluster_that_it_has_in_the_background(tmp_path):
    def as_shells_begin_background_jobs():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = started("up", write_small(tmp_path), cwd=tmp_path, before=as_shells_begin_background_jobs)
    process.stdout.readline()
    process.terminate()
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()

    assert process.returncode == 130
    assert manifest_of(tmp_path / "runs" / "small-live-seed1-1")["ended"] == "interrupted"


def test_a_reader_who_goes_away_ends_a_live_cluster(tmp_path):
    process = started("up", write_small(tmp_path), cwd=tmp_path)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=30)

    assert process.returncode == 130
    assert stderr == "rmqemu: interrupted; what was traced is in runs/small-live-seed1-1\n"
    assert manifest_of(tmp_path / "runs" / "small-live-seed1-1")["crashes"] == []


@pytest.mark.slow
@pytest.mark.spark
def test_ctrl_c_while_spark_works_leaves_no_java_behind(tmp_path):
    run = rmqemu("run", write_small(tmp_path), cwd=tmp_path).stdout.strip()
    process = started("analyze", "--engine", "spark", run, cwd=tmp_path)
    until(lambda: process.poll() is not None or java_below(process.pid))
    assert process.poll() is None, process.stderr.read()
    java = java_below(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)

    assert (process.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == "rmqemu: interrupted"
    assert "Traceback" not in stderr
    assert not Path(f"/proc/{java}").exists()


def java_below(pid):
    """The process of Spark's JVM among the children of a process, if it has begun."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # threads and children come and go
            for child in (thread / "children").read_text().split():
                if b"org.apache.spark.deploy.SparkSubmit" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
    return None
