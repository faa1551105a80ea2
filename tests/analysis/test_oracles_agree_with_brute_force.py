"""Each oracle against the naive version of itself, on many random traces."""

import pytest

from analysis.naive_oracles import NaiveRun
from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, found_in
from nodes.beliefs import BeliefKind
from support.findings import views_of

TRACES = 120


@pytest.fixture(scope="module")
def runs():
    """What was found in each random trace, next to the naive version."""
    traces = [random_trace(seed) for seed in range(TRACES)]
    return [(found_in(trace, END_S), NaiveRun(trace, END_S * SECOND)) for trace in traces]


def compare(runs, found, naive):
    seen = 0
    for number, (findings, run) in enumerate(runs):
        expected = sorted(naive(run))
        assert sorted(found(findings)) == expected, f"random trace {number}"
        seen += len(expected)
    assert seen > TRACES / 10, "the random traces are too tame to prove anything"


def divergence(row):
    return row.kind, row.role, row.subject, row.start_ns, row.end_ns, row.views_max, row.censored


def queue(row):
    return row.queue.group, row.queue.topic, row.queue.broker_name, row.queue.queue_id


def test_views_equal_brute_force(runs):
    compare(runs, lambda found: map(divergence, views_of(found)), lambda run: run.view())


def test_views_of_another_kind_equal_brute_force(runs):
    compare(
        runs,
        lambda found: [divergence(row) for row in found["beliefs"] if row.kind == BeliefKind.ROUTE],
        lambda run: run.view("route"),
    )


def test_holders_equal_brute_force(runs):
    seen = 0
    for found, run in runs:
        for row in views_of(found):
            holders, lasted_ns = run.holders(row.kind, row.role, row.subject, row.start_ns, row.end_ns)
            assert {holder.value_hash: list(holder.nodes) for holder in row.holders} == holders
            assert row.holders_ns == lasted_ns
            seen += 1
    assert seen > TRACES / 10


def test_overlaps_equal_brute_force_also_while_owners_sleep(runs):
    def reported(row):
        return *queue(row), row.start_ns, row.end_ns, row.owners_max, list(row.owners), row.censored, row.active_ns

    compare(runs, lambda found: map(reported, found["overlaps"]), lambda run: run.overlap())
    assert any(row.active_ns < row.end_ns - row.start_ns for found, _ in runs for row in found["overlaps"])


def test_orphans_equal_brute_force(runs):
    compare(
        runs,
        lambda found: [(*queue(row), row.start_ns, row.end_ns, row.censored) for row in found["orphans"]],
        lambda run: run.orphan(),
    )


def test_first_agreement_equals_brute_force(runs):
    compare(
        runs,
        lambda found: [] if found.agreed_ns is None else [found.agreed_ns],
        lambda run: [] if run.agreed_ns() is None else [run.agreed_ns()],
    )


def test_agreement_equals_brute_force(runs):
    compare(
        runs,
        lambda found: [
            (row.layer, row.t_ns, row.next_ns, list(row.what), row.took_ns, row.censored) for row in found["agreement"]
        ],
        lambda run: run.agreement(),
    )


def test_phases_equal_brute_force(runs):
    compare(
        runs,
        lambda found: [
            (row.start_ns, row.end_ns, list(row.what), row.view_ns, row.overlap_ns, row.orphan_ns)
            for row in found["phases"]
        ],
        lambda run: run.phases(),
    )
