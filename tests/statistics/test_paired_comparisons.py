"""Two variants over the same seeds: what may be claimed, and in which words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.statistics import PairVerdict, StatisticsError, compare
from support.frames_of_runs import runs

OWNERS = "queues had two owners"


def compared(a, b, **named):
    return compare(runs(a=a, b=b), "overlap_s", "a", "b", **named)


def test_a_change_that_helps_is_reported_in_one_sentence():
    a = [20.0] * 81 + [5.0] * 15 + [3.0] * 4
    b = [4.8] * 81 + [5.0] * 15 + [4.0] * 4
    found = compared(a, b, phrase=OWNERS)

    assert found.verdict is PairVerdict.BETTER
    assert (found.better_in, found.equal_in, found.worse_in) == (81, 15, 4)
    assert found.effect_size == pytest.approx(0.77)
    assert found.difference.value == pytest.approx(-12.272)
    assert found.sentence() == (
        "With b, queues had two owners 12.3 s less per run than with a (95 %: 11.0 to 13.4); "
        "better in 81 of 100 seeds, equal in 15, worse in 4"
    )


def test_a_change_that_harms_is_reported_too_and_without_a_phrase_the_measure_is_named():
    found = compared([1.0, 2.0] * 10, [3.0, 5.0] * 10)

    assert found.verdict is PairVerdict.WORSE
    assert found.sentence() == (
        "With b: overlap 2.5 s more per run than with a (95 %: 2.3 to 2.7); "
        "better in 0 of 20 seeds, equal in 0, worse in 20"
    )


def test_of_some_measures_more_is_better():
    frame = runs("consumed", a=[10] * 20, b=[*range(11, 31)])
    found = compare(frame, "consumed", "a", "b", better="more")

    assert found.verdict is PairVerdict.BETTER
    assert (found.better_in, found.worse_in, found.effect_size) == (20, 0, 1.0)
    assert found.sentence().startswith("With b: consumed 10.5 more per run than with a")
    fewer = compare(frame, "consumed", "b", "a", better="more")
    assert fewer.verdict is PairVerdict.WORSE
    assert "consumed 10.5 fewer per run" in fewer.sentence()


def test_a_pair_differs_by_its_seed_and_not_by_its_place():
    seeds = [*range(1, 21)]
    a = {seed: 100.0 * seed for seed in seeds}
    b = {seed: 100.0 * seed - 1 for seed in reversed(seeds)}
    found = compared(a, b)

    assert found.difference.value == found.median_difference.value == -1.0
    assert (found.difference.low, found.difference.high) == (-1.0, -1.0)


def test_a_difference_that_seeds_hide_from_unpaired_statistics_is_seen():
    between_seeds = np.random.default_rng(1).normal(100, 30, size=30)
    found = compared(between_seeds, between_seeds - np.random.default_rng(2).normal(3, 2, size=30))

    assert found.verdict is PairVerdict.BETTER


@pytest.mark.parametrize("seeds", [1, 2, 9])
def test_with_few_seeds_nothing_is_claimed(seeds):
    found = compared([5.0] * seeds, [1.0] * seeds)

    assert found.verdict is PairVerdict.UNKNOWN
    assert found.sentence().startswith(
        f"Cannot decide with {seeds} seed{'s' * (seeds > 1)}: expected at least 10; better"
    )


def test_what_the_interval_leaves_open_is_not_claimed():
    found = compared([4.0, 1.0] * 6, [1.0, 3.0] * 6, phrase=OWNERS)

    assert found.verdict is PairVerdict.UNKNOWN
    assert found.sentence() == (
        "Cannot decide with 12 seeds: with b, queues had two owners between 1.8 s less and 0.8 s more "
        "per run than with a (95 %); better in 6 of 12 seeds, equal in 0, worse in 6"
    )


def test_five_seeds_that_differ_are_too_few_however_much_they_differ():
    a = [0.0] * 95 + [50.0, 60.0, 70.0, 80.0, 90.0]
    found = compared(a, [0.0] * 100)

    assert found.difference.high < 0  # the bootstrap alone would claim it
    assert found.verdict is PairVerdict.UNKNOWN
    assert "only 5 of them differ, expected at least 6; better in 5 of 100 seeds, equal in 95" in found.sentence()


def test_what_chance_gives_as_well_is_not_claimed_although_the_interval_leaves_out_0():
    a = [0.0] * 92 + [1.0] + [0.0] + [30.0, 40.0, 20.0, 35.0, 25.0, 0.0]
    found = compared(a, [0.0] * 93 + [22.0] + [0.0] * 6)

    assert found.difference.high < 0
    assert found.chance > 0.05
    assert found.sentence().startswith(
        "Cannot decide with 100 seeds: with b: overlap 1.3 s less per run than with a, but chance alone gives as "
        "much in"
    )


def test_the_chance_is_that_of_all_signs():
    # Of the 2^7 ways to set the signs, 2 give a sum as far from 0, and each zero may have either sign.
    assert compared([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, *[0.0] * 5], [0.0] * 12).chance == 2 / 2**7


def test_no_difference_in_any_seed_is_reported_with_what_it_does_not_exclude():
    found = compared([0.0] * 100, [0.0] * 100)

    assert found.verdict is PairVerdict.SAME
    assert found.effect_size == 0.0
    assert found.sentence() == (
        "b makes no difference to a in any of 100 seeds: overlap is the same (95 %: at most 3.6 % of all seeds differ)"
    )


def test_a_mean_that_few_seeds_decide_is_marked():
    a = [1.0] * 60 + [1_000.0] * 20
    found = compared(a, [2.0] * 60 + [10.0] * 20)

    assert found.verdict is PairVerdict.BETTER
    assert found.effect_size < 0
    assert found.sentence().endswith("worse in 60, so a few seeds with large differences decide the mean")


def test_seeds_without_a_partner_or_a_value_are_named():
    a = dict.fromkeys(range(1, 20), 1.0) | {18: math.nan}
    b = dict.fromkeys(range(3, 22), 2.0) | {17: math.nan, 21: math.nan}
    found = compared(a, b)

    assert (found.pairs, found.only_a, found.only_b, found.without_value) == (15, (1, 2), (20, 21), (17, 18))
    assert found.sentence().endswith(
        "; left out: seeds 1, 2 (no run with b), seeds 20, 21 (no run with a), seeds 17, 18 (no value)"
    )


def test_many_seeds_without_a_partner_are_counted():
    found = compared([1.0] * 30, [2.0] * 10)

    assert "left out: seeds 11, 12, 13, 14, 15, 16, 17, 18 and 12 more (no run with b)" in found.sentence()


def test_without_a_common_seed_there_is_no_figure():
    found = compared({1: 1.0}, {2: 1.0})

    assert (found.pairs, found.verdict) == (0, PairVerdict.UNKNOWN)
    assert math.isnan(found.effect_size)
    assert found.sentence() == (
        "Cannot decide: no seed has a value with both b and a; left out: seed 1 (no run with b), seed 2 (no run with a)"
    )


def test_sums_in_another_order_are_equal():
    found = compared([0.1 + 0.2 + 0.3] * 12, [0.3 + 0.2 + 0.1] * 12)

    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert found.verdict is PairVerdict.SAME


def test_nanoseconds_are_reported_in_seconds():
    found = compare(runs("pause_ns", a=[3_000_000_000] * 10, b=[1_500_000_000] * 10), "pause_ns", "a", "b")

    assert found.sentence().startswith("With b: pause 1.5 s less per run than with a (95 %: 1.5 to 1.5)")


VALUES = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=30)


@given(VALUES, VALUES)
def test_exchanging_the_two_exchanges_the_verdict(a, b):
    forth, back = compared(a, b), compare(runs(a=a, b=b), "overlap_s", "b", "a")

    assert (forth.better_in, forth.equal_in, forth.worse_in) == (back.worse_in, back.equal_in, back.better_in)
    assert forth.better_in + forth.equal_in + forth.worse_in == forth.pairs == min(len(a), len(b))
    assert forth.effect_size == -back.effect_size
    assert forth.difference.value == -back.difference.value
    assert len(forth.sentence().splitlines()) == 1


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("a", "a"), "expected two variants, not a twice"),
        (("a", "bb"), "there is no variant bb; "),
        (("z", "b"), "there is no variant z; there are a, b"),
    ],
)
def test_variants_that_make_no_sense_are_refused(names, problem):
    with pytest.raises(StatisticsError) as refused:
        compare(runs(a=[1.0], b=[1.0]), "overlap_s", *names)
    assert str(refused.value).startswith(problem)
