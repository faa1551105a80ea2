"""Overlaps, orphans and views once more, in SQL over raw Parquet: another engine and another way to think.

Over the files of run directories, and over those of a dataset in which the runs have landed.
"""

import pytest

from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, write_run
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_rows
from emulator.history.rows.reader import StoredRows
from emulator.lake.landing import land
from emulator.trace.run_directory import open_run
from support import sql_oracles

TRACES = 60
END_NS = END_S * SECOND


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [write_run(random_trace(seed), folder / f"random-{seed}", END_S, segment_rows=7) for seed in range(TRACES)]


@pytest.fixture(scope="module", params=["run directories", "a dataset"])
def base(request, runs, tmp_path_factory):
    if request.param == "run directories":
        opened = sql_oracles.connection(runs, END_NS)
    else:
        dataset = tmp_path_factory.mktemp("lake") / "dataset"
        assert len(land(runs, dataset).runs) == TRACES
        opened = sql_oracles.landed_connection(dataset, END_NS)
    with opened as base:
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


def test_views_equal_sql(found, base):
    views = [(run, row) for run, of in found.items() for row in of["views"] if row.kind == "view"]
    rows = sorted((run, row.role, row.subject, row.start_ns, row.end_ns, row.views_max) for run, row in views)
    assert rows == sql_oracles.views(base, END_NS)
    assert len(rows) > TRACES / 4
