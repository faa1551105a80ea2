"""A judgement that is killed or interrupted: the gold before stays readable, and the next judgement completes it."""

import os
import signal
import subprocess
import sys

import pytest

from analysis.demo_trace import END_S, demo_trace
from analysis.trace_rows import write_run
from emulator.dataset.landed_runs import JudgedRuns, open_landed, read_gold_table
from emulator.lake.filesystems import located
from emulator.lake.gold import GOLD_TABLES, read_gold
from emulator.lake.landing import land
from lake.landed_runs import write
from support.rmqemu_process import started
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.spark]
KILLED_BEFORE_ITS_COMMIT = """
import sys
from emulator.dataset import landed_runs
from emulator.dataset.sessions import open_session

def blocked(location, files, runs):
    print(len(files), flush=True)
    sys.stdin.read()

landed_runs.commit_gold = blocked
landed_runs.open_landed(open_session("local[1]", rows=10), sys.argv[1]).judge().write()
"""


JUDGES_IN_MANY_TASKS = """
import sys
from emulator.dataset.landed_runs import open_landed
from emulator.dataset.sessions import open_session

session = open_session("local[1]", rows=10)
session.conf.set("spark.sql.shuffle.partitions", "16")
open_landed(session, sys.argv[1]).judge().write()
"""


def rows(spark, gold):
    """Mapping gold table -> its rows as sorted texts."""
    return {name: sorted(map(repr, read_gold_table(spark, gold, name).collect())) for name in GOLD_TABLES}


def test_a_judgement_that_is_killed_leaves_the_gold_before_and_the_next_one_completes_it(spark, tmp_path):
    dataset = tmp_path / "dataset"
    runs = [write(tmp_path / "runs", name, number) for number, name in enumerate("ab", 1)]
    runs.append(write_run(demo_trace(), tmp_path / "runs" / "demo", END_S))
    land(runs[:1], dataset)
    before = JudgedRuns(open_landed(spark, dataset)).write()
    rows_before = rows(spark, before)
    land(runs, dataset)

    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_BEFORE_ITS_COMMIT, dataset],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    written = int(process.stdout.readline())
    process.kill()
    process.communicate()

    gold = read_gold(located(dataset / "gold"))
    assert written > 0
    assert gold == before
    assert rows(spark, gold) == rows_before

    completed = JudgedRuns(open_landed(spark, dataset)).write()
    at_once = JudgedRuns(open_landed(spark, dataset)).write(tmp_path / "gold")
    assert completed.runs == at_once.runs
    assert tuple(completed.runs) == ("a", "b", "demo")
    assert rows(spark, completed) == rows(spark, at_once) != rows_before


@pytest.mark.parametrize("files", [1, 20, 40])
def test_a_judgement_that_is_killed_while_tasks_write_adds_nothing_to_gold(spark, tmp_path, files):
    dataset = tmp_path / "dataset"
    runs = [write(tmp_path / "runs", f"run-{number}", number % 5) for number in range(12)]
    land(runs[:1], dataset)
    before = JudgedRuns(open_landed(spark, dataset)).write()
    land(runs, dataset)
    files_before = set(dataset.glob("gold/*/*.parquet"))

    process = subprocess.Popen([sys.executable, "-c", JUDGES_IN_MANY_TASKS, dataset], start_new_session=True)
    until(lambda: len(set(dataset.glob("gold/*/*.parquet")) - files_before) >= files)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    assert read_gold(located(dataset / "gold")) == before
    completed = JudgedRuns(open_landed(spark, dataset)).write()
    at_once = JudgedRuns(open_landed(spark, dataset)).write(tmp_path / "gold")
    assert rows(spark, completed) == rows(spark, at_once)


def test_ctrl_c_in_a_judgement_on_spark_is_one_line(tmp_path):
    write_run(demo_trace(), tmp_path / "runs" / "demo", END_S)
    land([tmp_path / "runs" / "demo"], tmp_path / "dataset")
    process = started("analyze", "dataset", "--engine", "spark", cwd=tmp_path)
    assert process.stderr.readline().startswith("engine: Spark ")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout, stderr) == (130, "", "rmqemu: interrupted\n")
