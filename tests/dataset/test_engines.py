"""Many runs judged by this process and by Spark: the same reports, whoever reads the rows."""

import tempfile

import pytest

from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import random_trace
from analysis.trace_rows import killed_run, write_run
from emulator.analysis.arrow_tables import RUNS, TABLES
from emulator.dataset import runs_in_place
from emulator.dataset.judged_reports import JudgedReports, judge_on_spark, judge_runs
from emulator.trace.run_directory import open_run
from support.every_case import each_case
from support.findings import rows_of


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Five runs: one that is whole, three of random rows, one that was killed; and a directory that is no run."""
    folder = tmp_path_factory.mktemp("runs")
    whole = write_run(demo_trace(), folder / "whole + half", END_S)
    random = [write_run(random_trace(seed), folder / f"random-{seed}", 40) for seed in range(3)]
    killed = killed_run(random_trace(3), folder / "killed", closed=3)
    (folder / "nothing").mkdir()
    return [whole, *random, killed, folder / "nothing"]


@pytest.fixture(scope="module")
def judged(runs):
    return judge_runs(runs)


def test_runs_are_judged_in_order_and_what_is_no_run_is_reported(judged, runs):
    assert [report.run_id for report in judged.reports] == [run.name for run in runs[:5]]
    (refused,) = judged.refused
    assert refused.path == runs[5]
    assert "is not a run" in refused.problem


def test_spark_finds_what_this_process_finds(spark, judged, runs):
    assert judge_on_spark(runs, spark) == judged


def test_large_runs_are_read_where_they_lie(spark, judged, runs, monkeypatch, tmp_path):
    monkeypatch.setattr(runs_in_place, "ROWS_MIN", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert runs_in_place.are_read_in_place([open_run(run) for run in runs[:4]])
    assert judge_on_spark(runs[:4], spark) == JudgedReports(judged.reports[:4], ())
    assert list(tmp_path.glob("rmqemu-dataset-*")) == []


@pytest.mark.parametrize("place", [0, 4], ids=["small", "killed"])
def test_a_run_that_is_small_or_was_killed_is_not_read_where_it_lies(runs, place, monkeypatch):
    monkeypatch.setattr(runs_in_place, "ROWS_MIN", 1 if place else runs_in_place.ROWS_MIN)

    assert not runs_in_place.are_read_in_place([open_run(runs[place])])


@each_case("name", [RUNS, *TABLES])
def test_the_findings_of_many_runs_are_one_table(judged, name):
    table = judged.table(name)
    assert table.column_names[0] == "run"
    assert len(set(table.column_names)) == table.num_columns
    if name == RUNS:
        assert table["run"].to_pylist() == [report.run_id for report in judged.reports]
    else:
        assert table.num_rows == sum(len(rows_of(report, name)) for report in judged.reports)
