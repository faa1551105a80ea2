"""Overlaps and orphans once more, in SQL over the raw Parquet files: another engine and another way to think."""

import pytest

from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, write_run
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_rows
from emulator.analysis.rows.reader import StoredRows
from emulator.trace.run_directory import open_run
from support import sql_oracles

TRACES = 60
END_NS = END_S * SECOND


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [write_run(random_trace(seed), folder / f"random-{seed}", END_S, segment_rows=7) for seed in range(TRACES)]


@pytest.fixture(scope="module")
def base(runs):
    with sql_oracles.connection(runs, END_NS) as base:
        yield base


@pytest.fixture(scope="module")
def found(runs):
    return {run.name: judge_rows(StoredRows(open_run(run)), RunFacts(END_NS)) for run in runs}


def place(run, row):
    queue = row.queue
    return run, queue.group, queue.topic, queue.broker_name, queue.queue_id, row.start_ns, row.end_ns


def test_overlaps_equal_sql(found, base):
    rows = sorted((*place(run, row), row.owners_max) for run, of in found.items() for row in of["overlaps"])
    assert rows == sql_oracles.overlaps(base)
    assert len(rows) > TRACES / 4


def test_orphans_equal_sql(found, base):
    rows = sorted(place(run, row) for run, of in found.items() for row in of["orphans"])
    assert rows == sql_oracles.orphans(base, END_NS)
    assert len(rows) > TRACES / 4
