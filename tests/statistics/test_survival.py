"""How long intervals last when some had not ended: known answers, degenerate data, and the band over seeds."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from emulator.statistics import Figure, StatisticsError, survival, with_durations
from support.frames_of_runs import intervals

# Weeks in remission of leukaemia patients with and without 6-mercaptopurine: Freireich and others, Blood 21 (1963),
# the example of most textbooks, such as Kleinbaum and Klein, Survival Analysis, chapter 2.
TREATED = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
CONTROL = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"


def survived(durations, **named):
    (found,) = survival(intervals(durations, named.pop("seeds", None)), "pause_s", **named)
    return found


def at(found, seconds):
    return found.curve[found.curve["pause_s"] <= seconds]["survival"].iloc[-1]


def test_the_curve_is_that_of_the_textbook():
    found = survived(TREATED)

    assert [round(at(found, week), 4) for week in (5, 6, 7, 10, 13, 16, 22, 23, 35)] == [
        1, 0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482, 0.4482,
    ]  # fmt: skip
    assert (found.intervals, found.censored, found.seeds) == (21, 12, 21)
    assert [*found.curve["at_risk"]] == [21, 21, 17, 15, 12, 11, 7, 6, 1]


def test_the_median_is_that_of_the_textbook_and_what_is_not_reached_is_not_yet():
    treated, control = survived(TREATED), survived(CONTROL)

    assert (treated.median.value, control.median.value) == (23, 8)
    assert control.p90.value == 17
    assert treated.p90 == Figure(math.inf, math.inf, math.inf)
    assert treated.sentence().startswith(
        "x: 9 of 21 intervals in 21 seeds had ended. Pause of half of them: 23.0 s (95 %"
    )
    assert "of p90: not yet; mean up to 35.0 s: 23.3 s (95 %" in treated.sentence()


def test_the_restricted_mean_is_the_area_below_the_curve():
    assert survived(CONTROL).restricted_mean.value == pytest.approx(182 / 21)  # nothing is censored: the mean
    by_hand = 6 + 0.8571 * 1 + 0.8067 * 3 + 0.7529 * 3 + 0.6902 * 3 + 0.6275 * 4
    assert survived(TREATED, horizon=20).restricted_mean.value == pytest.approx(by_hand, abs=1e-3)


def test_variants_are_compared_up_to_the_same_horizon():
    frame = pd.concat([intervals(TREATED, variant="treated"), intervals(CONTROL, variant="control")])
    treated, control = survival(frame, "pause_s")

    assert (treated.variant, control.variant) == ("treated", "control")
    assert treated.horizon == control.horizon == 23


def test_beyond_the_last_observation_a_curve_that_has_not_ended_has_no_mean():
    assert math.isnan(survived(TREATED, horizon=40).restricted_mean.value)
    assert survived(CONTROL, horizon=40).restricted_mean.value == pytest.approx(182 / 21)


def test_what_is_censored_is_neither_dropped_nor_ended():
    dropped = survived([item for item in TREATED.split() if not item.endswith("+")])
    ended = survived(TREATED.replace("+", ""))

    assert dropped.median.value < survived(TREATED).median.value
    assert ended.median.value < survived(TREATED).median.value


def test_if_nothing_has_ended_yet_everything_is_not_yet():
    found = survived(["5+"] * 12)

    assert found.median.value == found.p90.value == math.inf
    assert found.restricted_mean == Figure(5, 5, 5)
    assert [*found.curve["survival"]] == [1, 1]
    assert "0 of 12 intervals in 12 seeds had ended. Pause of half of them: not yet" in found.sentence()


def test_equal_durations_fall_at_once():
    found = survived(["4"] * 12)

    assert found.median == found.p90 == Figure(4, 4, 4)
    assert [*found.curve["pause_s"]] == [0, 4]
    assert [*found.curve["survival"]] == [1, 0]


def test_durations_of_0_are_durations():
    found = survived(["0"] * 6 + ["3"] * 6)

    assert found.median.value == 0
    assert [*found.curve["pause_s"]] == [0, 3]
    assert [*found.curve["survival"]] == [0.5, 0]


def test_one_seed_has_a_curve_and_no_band():
    found = survived(["1", "2", "3+"], seeds=[7, 7, 7])

    assert found.seeds == 1
    assert found.median.value == 2
    assert not found.median.is_known
    assert found.curve["low"].iloc[1:].isna().all()
    assert "Pause of half of them: 2.0 s; of p90: not yet" in found.sentence()


def test_the_band_is_that_of_greenwood_where_each_interval_has_a_seed_of_its_own():
    chance = np.random.default_rng(3)
    lasting, limit = chance.exponential(10, size=400), chance.uniform(5, 30, size=400)
    frame = intervals([f"{min(a, b)}{'+' * int(b < a)}" for a, b in zip(lasting, limit, strict=True)])
    (found,) = survival(frame, "pause_s")
    data = stats.CensoredData.right_censored(frame["pause_s"], frame["censored"])
    greenwood = stats.ecdf(data).sf.confidence_interval(0.95)
    middle = found.curve[found.curve["pause_s"].between(2, 15)]
    seconds = middle["pause_s"]

    assert np.abs(middle["low"] - greenwood.low.evaluate(seconds)).max() < 0.015
    assert np.abs(middle["high"] - greenwood.high.evaluate(seconds)).max() < 0.015


def test_many_intervals_of_one_seed_do_not_make_the_band_narrow():
    seeds = [*range(20)]
    alone = survived([f"{1 + seed}" for seed in seeds], seeds=seeds)
    fifty = survived([f"{1 + seed}" for seed in seeds for _ in range(50)], seeds=[s for s in seeds for _ in range(50)])

    assert fifty.intervals == 50 * alone.intervals
    assert fifty.median == alone.median


def test_a_long_curve_has_few_points_and_exact_figures():
    found = survived([str(number) for number in range(1, 5_001)])

    assert len(found.curve) <= 402
    assert found.median.value == 2_500
    assert found.p90.value == 4_500
    assert found.curve["pause_s"].iloc[-1] == 5_000


def test_bounds_hardly_depend_on_how_many_instants_are_resampled(monkeypatch):
    lasting = np.random.default_rng(4).exponential(10, size=6_000).round(6)
    frame = intervals(
        [f"{item}{'+' * int(item > 15)}" for item in lasting], seeds=[number % 50 for number in range(6_000)]
    )
    (coarse,) = survival(frame, "pause_s")
    monkeypatch.setattr("emulator.statistics.kaplan_meier._INSTANTS_MAX", 6_000)
    (fine,) = survival(frame, "pause_s")

    assert coarse.median.value == fine.median.value
    assert coarse.median.low == pytest.approx(fine.median.low, abs=0.02)
    assert coarse.restricted_mean.high == pytest.approx(fine.restricted_mean.high, abs=0.02)
    at_10 = [item.curve[item.curve["pause_s"] <= 10]["high"].iloc[-1] for item in (coarse, fine)]
    assert at_10[0] == pytest.approx(at_10[1], abs=0.005)


DURATIONS = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(1, 14)), min_size=1, max_size=30)


@given(DURATIONS, st.randoms(use_true_random=False))
def test_the_curve_is_the_product_of_the_shares_that_go_on(rows, chance):
    frame = pd.DataFrame(rows, columns=["pause_s", "censored", "seed"])
    (found,) = survival(frame, "pause_s", by=None)
    expected = 1.0
    for second in range(9):
        at_risk = sum(duration >= second for duration, _, _ in rows)
        ended = sum(duration == second and not censored for duration, censored, _ in rows)
        expected *= 1 - ended / at_risk if at_risk else 1
        assert at(found, second) == pytest.approx(expected)
    shuffled = frame.sample(frac=1, random_state=chance.randrange(100))
    assert repr(survival(shuffled, "pause_s", by=None)[0]) == repr(found)
    known = found.curve.dropna()
    assert (known["low"] <= known["high"]).all()


def test_durations_are_made_from_begin_and_end():
    frame = pd.DataFrame({"start_ns": [0, 1_000_000_000], "end_ns": [1_500_000_000, 1_000_000_000]})

    assert [*with_durations(frame)["duration_s"]] == [1.5, 0.0]


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ({"start_ns": [5], "end_ns": [4]}, "1 intervals end before they begin"),
        ({"start_ns": [5], "end_ns": [None]}, "1 intervals lack start_ns or end_ns; expected the end of the run"),
        ({"start_ns": [5]}, "there is no column end_ns; there are start_ns"),
    ],
)
def test_intervals_that_make_no_sense_are_refused(frame, problem):
    with pytest.raises(StatisticsError) as refused:
        with_durations(pd.DataFrame(frame))
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("changed", "named", "problem"),
    [
        ({"pause_s": [-1.0]}, {}, "column pause_s: expected durations >= 0, not -1"),
        ({"pause_s": [math.nan]}, {}, "column pause_s: 1 intervals have no duration"),
        ({"censored": ["no"]}, {}, "column censored: expected true or false"),
        ({"censored": [None]}, {}, "column censored: expected true or false"),
        ({"seed": [None]}, {}, "column seed: expected whole numbers, not None"),
        ({}, {"horizon": 0}, "horizon: expected a number above 0, not 0"),
        ({}, {"censored": "open"}, "there is no column open"),
    ],
)
def test_a_frame_that_makes_no_sense_is_refused(changed, named, problem):
    with pytest.raises(StatisticsError) as refused:
        survival(intervals(["1"]).assign(**changed), "pause_s", **named)
    assert str(refused.value).startswith(problem)
