"""The plans of silver and gold: how many shuffles, sorts and scans each needs, and how many jobs a judgement."""

import sys

import pytest

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import END_S as RANDOM_END_S
from analysis.trace_rows import write_run
from emulator.analysis.arrow_tables import RUNS, TABLES
from emulator.dataset.landed_runs import SILVER, JudgedRuns, open_landed
from emulator.history.rows.reads import EVERYTHING, MessagesRead
from emulator.lake.landing import land
from emulator.pipeline.gold import BY_WINDOWS, READS, gold
from lake.landed_runs import write
from support.plans import PlanCounts, jobs, plan_counts

JOBS_MAX = 40
SWEEP = PlanCounts(exchanges=2, broadcasts=0, sorts=1, scans=11, python=1)
"""Of each gold table that no window finds: one exchange counts frames, one brings the rows of a run together."""
OF_CONTROL = PlanCounts(exchanges=1, broadcasts=0, sorts=1, scans=8, python=1)
"""Of those that need neither messages nor frames."""
WITHOUT_MESSAGES = PlanCounts(exchanges=2, broadcasts=0, sorts=1, scans=10, python=1)
"""Of those that need frames, and no messages."""
WITH_REPEATED = PlanCounts(exchanges=2, broadcasts=0, sorts=2, scans=9, python=1)
"""Of the one that needs the messages that were consumed again: one exchange and one sort find them."""
SWEEP_IN_SHARES = PlanCounts(exchanges=3, broadcasts=1, sorts=2, scans=21, python=2)
WINDOWS = {
    "holds": PlanCounts(exchanges=2, broadcasts=3, sorts=1, scans=4, python=0),
    "latencies": PlanCounts(exchanges=2, broadcasts=2, sorts=2, scans=3, python=0),
    "duplicates": PlanCounts(exchanges=2, broadcasts=2, sorts=1, scans=3, python=0),
}
OF_SILVER = {
    "processes": PlanCounts(exchanges=1, broadcasts=0, sorts=1, scans=1, python=0),
    "holdings": PlanCounts(exchanges=2, broadcasts=1, sorts=2, scans=4, python=0),
    "queue_holds": PlanCounts(exchanges=2, broadcasts=1, sorts=2, scans=2, python=0),
    "disagreements": PlanCounts(exchanges=2, broadcasts=2, sorts=4, scans=5, python=0),
    "double_owners": PlanCounts(exchanges=4, broadcasts=4, sorts=4, scans=5, python=0),
    "missing_owners": PlanCounts(exchanges=10, broadcasts=7, sorts=6, scans=14, python=0),
    "offsets": PlanCounts(exchanges=1, broadcasts=1, sorts=1, scans=3, python=0),
    "consumptions": PlanCounts(exchanges=2, broadcasts=1, sorts=1, scans=2, python=0),
    "cause_windows": PlanCounts(exchanges=1, broadcasts=0, sorts=1, scans=8, python=1),
    "rates": PlanCounts(exchanges=2, broadcasts=0, sorts=0, scans=2, python=0),
}


def expected_of(name):
    if name in WINDOWS:
        return WINDOWS[name]
    reads = READS.get(name, EVERYTHING)
    if reads.messages is MessagesRead.REPEATED:
        return WITH_REPEATED
    if reads.messages is MessagesRead.NONE:
        return WITHOUT_MESSAGES if reads.frames else OF_CONTROL
    return SWEEP


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = [write_run(demo_trace(), folder / "demo", END_S)]
    runs += [write_run(busy_trace(seed), folder / f"busy-{seed}", RANDOM_END_S) for seed in range(3)]
    uri = tmp_path_factory.mktemp("lake") / "dataset"
    land(runs, uri)
    return open_landed(spark, uri)


def one_of_each_form():
    """A table for each form that a plan has: those that read the same rows have the same one."""
    return [*WINDOWS, *{READS.get(name, EVERYTHING): name for name in (RUNS, *TABLES) if name not in WINDOWS}.values()]


@pytest.mark.parametrize("name", one_of_each_form())
def test_a_gold_table_shuffles_sorts_and_scans_as_often_as_it_has_to(landed, name):
    assert plan_counts(gold(landed.bronze, name)) == expected_of(name)


def test_runs_in_shares_take_one_exchange_and_one_sort_more(landed):
    assert plan_counts(gold(landed.bronze, "losses", rows_per_share=40)) == SWEEP_IN_SHARES


@pytest.mark.parametrize("name", SILVER)
def test_a_silver_table_shuffles_sorts_and_scans_as_often_as_it_has_to(landed, name):
    assert plan_counts(getattr(landed, name)()) == OF_SILVER[name]


def test_the_gold_tables_without_python_are_those_of_windows():
    assert WINDOWS.keys() == BY_WINDOWS.keys()


def jobs_of_judging(spark, folder, runs):
    land([write(folder / "runs", f"run-{number:02}", number % 5) for number in range(runs)], folder / "dataset")
    judged = JudgedRuns(open_landed(spark, folder / "dataset"))
    before = jobs(spark)
    gold_files = judged.write()
    assert len(gold_files.runs) == runs
    return jobs(spark) - before


def test_judging_eight_runs_takes_as_many_jobs_as_judging_one(spark, tmp_path):
    item, eight = (jobs_of_judging(spark, tmp_path / str(runs), runs) for runs in (1, 8))

    assert item == eight <= JOBS_MAX


def test_tasks_of_a_session_on_this_machine_run_the_interpreter_that_has_the_packages(spark, landed, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")  # as PySpark does without the variable
    open_landed(spark, landed.dataset.uri)

    assert spark.sparkContext.pythonExec == sys.executable
