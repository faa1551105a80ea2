"""Intervals summed up per run: runs without any interval stay."""

import pandas as pd
import pytest

from emulator.statistics import StatisticsError, estimate, per_run

RUNS = pd.DataFrame({"variant": ["x", "x", "y"], "seed": [1, 2, 1], "verdict": ["valid", "invalid", "valid"]})
S = 1_000_000_000


def overlaps(*rows):
    return pd.DataFrame(rows, columns=["variant", "seed", "start_ns", "end_ns"])


def test_each_run_gets_count_sum_and_longest():
    summed = per_run(overlaps(("x", 2, 0, 3 * S), ("x", 2, 5 * S, 6 * S), ("y", 1, 0, 0)), RUNS, "overlap")

    assert [*summed.columns] == ["variant", "seed", "verdict", "overlap_count", "overlap_s", "overlap_longest_s"]
    assert [*summed["overlap_count"]] == [0, 2, 1]
    assert [*summed["overlap_s"]] == [0.0, 4.0, 0.0]
    assert [*summed["overlap_longest_s"]] == [0.0, 3.0, 0.0]


def test_a_run_without_intervals_counts_as_0_in_an_estimate():
    summed = per_run(overlaps(("x", 2, 0, 4 * S)), RUNS, "overlap")
    x, y = estimate(summed, "overlap_s")

    assert (x.mean.value, x.share_above_0.value) == (2.0, 0.5)
    assert (y.mean.value, y.runs) == (0.0, 1)


def test_without_any_interval_all_runs_are_0():
    assert [*per_run(overlaps(), RUNS, "overlap")["overlap_s"]] == [0.0, 0.0, 0.0]


def test_runs_are_known_by_their_seed_alone_if_there_are_no_variants():
    summed = per_run(overlaps(("x", 2, 0, S)).drop(columns="variant"), RUNS.drop(index=2), "overlap", by=None)

    assert [*summed["overlap_s"]] == [0.0, 1.0]


def test_intervals_of_a_run_that_is_not_there_are_refused():
    with pytest.raises(StatisticsError, match="intervals of 1 runs that are not among the runs: z seed 9"):
        per_run(overlaps(("z", 9, 0, S)), RUNS, "overlap")


def test_a_run_that_stands_twice_is_refused():
    with pytest.raises(StatisticsError, match="x seed 1 stands twice among the runs"):
        per_run(overlaps(("x", 1, 0, S)), pd.concat([RUNS, RUNS]), "overlap")
