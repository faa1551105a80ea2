"""Silver `cause_windows` has the windows with which the judge explains, of each run."""

import pytest

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import END_S as RANDOM_END_S
from analysis.trace_rows import write_run
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.run_head import head_of
from emulator.dataset.landed_runs import open_landed
from emulator.history.rows.feed import watch
from emulator.history.rows.reader import StoredRows
from emulator.lake.landing import land
from emulator.trace.run_directory import open_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    busy = [write_run(busy_trace(seed), folder / f"busy-{seed}", RANDOM_END_S) for seed in range(3)]
    return [write_run(demo_trace(), folder / "demo", END_S), *busy]


def test_each_window_of_each_group_is_a_row(spark, runs, tmp_path):
    land(runs, tmp_path / "dataset")
    found = open_landed(spark, tmp_path / "dataset").cause_windows().collect()
    expected = []
    for path in runs:
        run = open_run(path)
        inputs = SharedInputs(head_of(run).facts)
        watch(StoredRows(run), (inputs.presence, inputs.origins, inputs.causes))
        for group, windows in inputs.causes.opened.items():
            expected += [
                (
                    *(run.run, group, window.start_ns, window.end_ns, window.cause.value, window.what),
                    *(window.external, window.origin),
                )
                for window in windows
            ]
    assert sorted(map(tuple, found)) == sorted(expected)
    assert len({row.run for row in found}) == len(runs)
