"""`rmqemu why`: a finished run is asked from the command line."""

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from support.rmqemu_process import COMMAND, rmqemu, write_small


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The small scenario, in which consumer-2 is killed at 40 s."""
    folder = tmp_path_factory.mktemp("finished")
    return folder / rmqemu("run", write_small(folder), cwd=folder).stdout.strip()


def why(*words):
    return CliRunner().invoke(app, ["why", *map(str, words)])


def test_the_chain_is_printed_and_the_status_is_0(run):
    done = why(run, "node", "consumer-2", "at", "50s")

    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:2] == [
        "  40.000 s  consumer-2  its process 1 was killed",
        "  40.000 s  operator      since the operator began kill-2 (kill consumer-2)",
    ]


def test_words_may_be_quoted_as_one(run):
    assert why(run, "node consumer-2 at 50s").stdout == why(run, "node", "consumer-2", "at", "50s").stdout


def test_who_took_the_queues_of_a_killed_consumer_is_led_to_the_kill(run):
    output = why(run, "consumer_ids", "g", "of", "broker-a", "at", "45s").stdout

    assert "(consumer-2 gone)" in output
    assert "since consumer-2 closed its connection" in output
    assert "since the operator began kill-2 (kill consumer-2)" in output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("queue", "orders/broker-a"), "rmqemu: expected a queue as TOPIC/BROKER/ID"),
        (("node", "consumer-9"), "rmqemu: there is no node consumer-9; did you mean consumer-"),
        (("node", "consumer-2", "at", "late"), "rmqemu: expected a time such as 31.2s, 31200ms or 2m, not late"),
    ],
)
def test_what_is_no_question_ends_with_one_line_and_status_2(run, words, problem):
    done = why(run, *words)

    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(problem)
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux shows them")
def test_reading_a_trace_starts_no_thread(run):
    count = "len(os.listdir('/proc/self/task'))"
    code = f"""
import os
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
before = {count}
answer_of_run(["consumer_ids g"], open_run({str(run)!r}))
print({count} - before)
"""
    done = subprocess.run([COMMAND[0], "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "0\n"


def test_what_is_no_run_is_refused(tmp_path):
    done = why(tmp_path, "node", "c1")

    assert done.exit_code == 2
    assert "is not a run: it has neither manifest.json nor trace/index.jsonl" in done.stderr
