"""An oracle alone finds and explains what it does with all others, by the inputs that it declares."""

import pytest

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S as DEMO_END_S
from analysis.demo_trace import demo_trace
from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, RowsOf
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_rows, judge_tables
from emulator.analysis.oracles.catalogue import ORACLE_TABLES

WITHOUT_ROWS = ("assigner_disagreements", "proxy_disagreements", "busy_brokers", "membership")
"""Tables of which these traces have no row, or few."""


@pytest.fixture(scope="module", params=[8, pytest.param(24, marks=pytest.mark.slow)])
def runs(request):
    """Traces, the more the more seeds, and what all oracles find in them."""
    traces = [(demo_trace(), DEMO_END_S)]
    traces += [(busy_trace(seed), END_S) for seed in range(request.param)]
    traces += [(random_trace(seed), END_S) for seed in range(request.param // 4)]
    every = [(RowsOf(trace), RunFacts(end_s * SECOND)) for trace, end_s in traces]
    return [(rows, facts, judge_rows(rows, facts)) for rows, facts in every]


@pytest.mark.parametrize("name", ORACLE_TABLES)
def test_a_table_alone_is_that_among_all(runs, name):
    found = 0
    for rows, facts, expected in runs:
        (table,) = judge_tables(rows, facts, [name]).items()
        assert table == (name, expected[name])
        found += len(expected[name])
    assert found > len(runs) / 3 or name in WITHOUT_ROWS, f"{found} rows of {name}: busy_traces.py breaks it too rarely"
