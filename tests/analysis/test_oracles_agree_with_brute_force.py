"""Each oracle against the naive version of itself, on many random traces in one Spark job."""

import pytest

from analysis.naive_oracles import NaiveRun
from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, frames_of
from emulator.analysis.ownership import orphan, overlap
from emulator.analysis.phases import agreement, disturbances, first_agreement, layered, phases
from emulator.analysis.views import view, view_camps
from nodes.beliefs import BeliefKind

TRACES = 60


@pytest.fixture(scope="module")
def traces():
    return [random_trace(seed) for seed in range(TRACES)]


@pytest.fixture(scope="module")
def naive(traces):
    return [NaiveRun(trace, END_S * SECOND) for trace in traces]


@pytest.fixture(scope="module")
def found(spark, traces):
    """Every oracle's frame, computed once."""
    frames = frames_of(spark, traces, END_S)
    views = view(frames.beliefs, frames.lifecycle, frames.runs).localCheckpoint()
    overlaps = overlap(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()
    orphans = orphan(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()
    divergent = layered(views, overlaps, orphans).localCheckpoint()
    agreed = first_agreement(frames.beliefs, frames.ownership, divergent).localCheckpoint()
    disturbed = disturbances(frames.faults, frames.lifecycle, agreed).localCheckpoint()
    return {
        "view": views,
        "routes": view(frames.beliefs, frames.lifecycle, frames.runs, BeliefKind.ROUTE),
        "camps": view_camps(frames.beliefs, frames.lifecycle, frames.runs),
        "overlap": overlaps,
        "orphan": orphans,
        "agreed": agreed,
        "disturbances": disturbed,
        "agreement": agreement(disturbed, divergent, frames.runs),
        "phases": phases(disturbed, views, overlaps, orphans, frames.runs),
    }


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def compare(frame, expected):
    expected = sorted(expected)
    assert len(expected) > TRACES / 10, "the random traces are too tame to prove anything"
    assert rows(frame) == expected


def test_view_in_sql_equals_brute_force(found, naive):
    compare(found["view"], (row for run in naive for row in run.view()))


def test_view_of_another_kind_equals_brute_force(found, naive):
    compare(found["routes"], (row for run in naive for row in run.view("route")))


def test_view_in_arrow_equals_view_in_sql(found):
    columns = found["view"].columns
    assert rows(found["camps"].select(columns)) == rows(found["view"])


def test_camps_equal_brute_force(found, naive):
    by_run = {run.run: run for run in naive}
    seen = 0
    for row in found["camps"].collect():
        camps, lasted_ns = by_run[row.run].camps(row.kind, row.role, row.subject, row.start_ns, row.end_ns)
        assert {camp.value_hash: camp.nodes for camp in row.camps} == camps
        assert row.camps_ns == lasted_ns
        seen += 1
    assert seen > TRACES / 10


def test_overlap_equals_brute_force(found, naive):
    compare(found["overlap"], (row for run in naive for row in run.overlap()))


def test_orphan_equals_brute_force(found, naive):
    compare(found["orphan"], (row for run in naive for row in run.orphan()))


def test_first_agreement_equals_brute_force(found, naive):
    compare(found["agreed"], ((run.run, run.agreed_ns()) for run in naive if run.agreed_ns() is not None))


def test_disturbances_equal_brute_force(found, naive):
    compare(found["disturbances"], ((run.run, t, what) for run in naive for t, what in run.disturbances()))


def test_agreement_equals_brute_force(found, naive):
    compare(found["agreement"], (row for run in naive for row in run.agreement()))


def test_phases_equal_brute_force(found, naive):
    compare(found["phases"], (row for run in naive for row in run.phases()))
