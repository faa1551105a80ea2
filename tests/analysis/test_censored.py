"""Quantiles of durations that had not all ended: by hand, and against the curve that scipy computes."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.analysis.rendering.quantiles import half_and_p90, quantile_ns
from emulator.statistics import survival

SECOND = 1_000_000_000


def ended(*seconds):
    return [(second * SECOND, False) for second in seconds]


def waiting(*seconds):
    return [(second * SECOND, True) for second in seconds]


def test_without_censoring_it_is_the_ordinary_quantile():
    durations = ended(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert (quantile_ns(durations, 0.5), quantile_ns(durations, 0.9)) == (5 * SECOND, 9 * SECOND)


def test_what_had_not_ended_moves_quantiles_up_and_may_hide_them():
    # Of four, one ended after 1 s, one after 3 s; of those that go on beyond 2 s, one of two ended by 3 s.
    durations = ended(1, 3) + waiting(2, 9)
    assert quantile_ns(durations, 0.5) == 3 * SECOND
    assert quantile_ns(durations, 0.9) is None
    assert half_and_p90(durations) == "half within 3.0 s, 90 % not yet"
    assert quantile_ns([], 0.5) is None


@given(
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=2, max_size=12),
    st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9]),
)
@settings(max_examples=30)  # each resamples a confidence band
def test_the_curve_of_scipy_gives_the_same(durations, share):
    frame = pd.DataFrame(
        {"seed": range(len(durations)), "d_s": [float(d) for d, _ in durations], "censored": [c for _, c in durations]}
    )
    (found,) = survival(frame, "d_s", "censored", by=None)
    curve = found.curve
    below = curve[curve["survival"] <= 1 - share + 1e-12]
    expected = None if below.empty else below["d_s"].iloc[0]
    assert quantile_ns([(d * SECOND, c) for d, c in durations], share) == (
        None if expected is None else pytest.approx(expected * SECOND)
    )
