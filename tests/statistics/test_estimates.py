"""What a measure is over many seeds: known answers, degenerate data, and frames that make no sense."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.statistics import Figure, StatisticsError, estimate
from support.every_case import each_case
from support.frames_of_runs import runs

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda number: round(number, 6))


def item(values, **named):
    (found,) = estimate(runs(x=values), "overlap_s", **named)
    return found


def test_the_figures_are_those_of_the_numbers():
    found = item([*range(1, 101)], quantiles=(0.25, 0.9))

    assert (found.runs, found.missing) == (100, ())
    assert found.mean.value == 50.5
    assert found.median.value == 50.5
    assert found.quantiles[0.25].value == pytest.approx(25.75)  # as pandas interpolates
    assert found.quantiles[0.9].value == pytest.approx(90.1)
    assert found.worst == ((100, 100.0), (99, 99.0), (98, 98.0), (97, 97.0), (96, 96.0))


def test_the_interval_of_a_mean_is_close_to_that_of_the_normal_distribution():
    values = np.random.default_rng(5).normal(10, 2, size=400)
    found = item(values).mean
    margin = 1.96 * values.std(ddof=1) / math.sqrt(400)

    assert found.low == pytest.approx(values.mean() - margin, abs=0.03)
    assert found.high == pytest.approx(values.mean() + margin, abs=0.03)


def test_the_interval_of_a_median_is_that_of_order_statistics():
    # Conover, Practical Nonparametric Statistics: of n = 20, the 6th to the 15th hold the median with 95.9 %.
    assert item([*range(1, 21)]).median == Figure(10.5, 6.0, 15.0)


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson():
    found = item([0.0] * 90 + [1.0] * 10).share_above_0

    assert found.value == 0.1
    assert (round(found.low, 4), round(found.high, 4)) == (0.0490, 0.1762)


def test_a_hundred_runs_without_a_failure_do_not_show_that_there_is_none():
    found = item([0.0] * 100)

    assert found.mean == Figure(0.0, 0.0, 0.0)
    assert found.share_above_0.low == 0.0
    assert found.share_above_0.high == pytest.approx(1 - 0.025 ** (1 / 100))
    assert "above 0 in 0 % of 100 runs (95 %: 0 % to 3.6 %)" in found.sentence()


def test_of_one_seed_there_is_a_number_and_no_interval():
    found = item([3.0])

    assert found.mean.value == found.median.value == 3.0
    assert not found.mean.is_known
    assert not found.median.is_known
    assert "3.0 s per run on average (too few seeds for an interval)" in found.sentence()


def test_equal_numbers_have_an_interval_of_width_0():
    assert item([0.1] * 12).mean == Figure(0.1, 0.1, 0.1)


def test_with_nine_seeds_there_is_no_bootstrap_and_with_ten_there_is():
    assert not item([*range(9)]).mean.is_known
    assert item([*range(10)]).mean.is_known


def test_a_quantile_that_the_seeds_cannot_bound_is_open():
    ninth = item([*range(20)], quantiles=(0.9,)).quantiles[0.9]

    assert ninth.low == 14.0
    assert math.isnan(ninth.high)


def test_runs_without_a_value_are_named_and_not_counted():
    found = item([1.0, math.nan, 3.0, None, *range(20)])

    assert found.missing == (2, 4)
    assert found.runs == 22
    assert found.sentence().endswith("; without a value: seeds 2, 4")


def test_a_variant_without_any_value_is_still_there():
    first, second = estimate(runs(x=[1.0] * 10, y=[math.nan, math.nan]), "overlap_s")

    assert first.runs == 10
    assert (second.variant, second.runs, second.missing) == ("y", 0, (1, 2))
    assert math.isnan(second.mean.value)
    assert second.sentence() == "y: no run has a value of overlap"


def test_true_and_false_count_as_1_and_0():
    frame = runs(measure="violated", x=[True, False, False, False])
    (found,) = estimate(frame, "violated")

    assert found.mean.value == found.share_above_0.value == 0.25


def test_the_same_data_give_the_same_figures_in_any_order_of_rows():
    frame = runs(x=np.random.default_rng(1).exponential(size=30), y=[*range(30)])
    shuffled = frame.sample(frac=1, random_state=3)
    by_name = {
        element.variant: repr(element) for element in estimate(shuffled, "overlap_s")
    }  # repr: NaN equals nothing

    assert by_name == {element.variant: repr(element) for element in estimate(frame, "overlap_s")}
    assert repr(estimate(frame, "overlap_s", bootstrap_seed=2)[0]) != by_name["x"]


def test_without_a_column_to_allocate_by_all_runs_are_one_group():
    (found,) = estimate(runs(x=[1.0, 2.0]), "overlap_s", by=None)

    assert (found.variant, found.runs) == ("all", 2)


@given(st.lists(NUMBERS, min_size=1, max_size=40))
def test_a_figure_lies_in_its_interval(values):
    found = item(values)

    for figure in (found.mean, found.median, found.share_above_0, *found.quantiles.values()):
        assert math.isfinite(figure.value)
        assert math.isnan(figure.low) or figure.low <= figure.value
        assert math.isnan(figure.high) or figure.value <= figure.high
    assert found.mean.is_known is (len(values) >= 10)


@each_case(
    ("frame", "problem"),
    [
        (pd.DataFrame({"variant": [], "seed": [], "overlap_s": []}), "the frame has no rows"),
        (pd.DataFrame({"variant": ["x"], "seed": [1]}), "there is no column overlap_s; there are variant, seed"),
        (pd.DataFrame({"variant": ["x"], "overlap_s": [1.0]}), "there is no column seed"),
        ([1.0, 2.0], "expected a pandas frame, not list"),
        (runs(x={1: "many"}), "column overlap_s: expected numbers, not object"),
        (runs(x={1: 1.0, 2: math.inf}), "column overlap_s: expected finite numbers; seed 2 has an infinite one"),
        (runs(x={1.5: 1.0}), "column seed: expected whole numbers, not 1.5"),
        (runs(x={math.nan: 1.0}), "column seed: expected whole numbers, not nan"),
        (pd.concat([runs(x=[1.0])] * 2), "x: seed 1 has 2 rows; expected one row per run"),
        (runs(x=[1.0]).assign(variant=[None]), "1 rows have no variant"),
    ],
)
def test_a_frame_that_makes_no_sense_is_refused_in_one_line(frame, problem):
    with pytest.raises(StatisticsError) as refused:
        estimate(frame, "overlap_s")
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("part", [0, 1, 90, math.nan])
def test_a_quantile_lies_between_0_and_1(part):
    with pytest.raises(StatisticsError, match="quantiles: expected numbers above 0 and below 1"):
        item([1.0], quantiles=(part,))


def test_large_seeds_keep_all_their_digits():
    seeds = (2**63 - 1, 2**63 - 2)
    (found,) = estimate(runs(x={seeds[0]: 2.0, seeds[1]: 1.0}), "overlap_s")

    assert [seed for seed, _ in found.worst] == [*seeds]
