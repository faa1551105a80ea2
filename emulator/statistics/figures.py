"""Figures with confidence intervals over seeds.

Each figure has the interval that keeps its promise for what seeds give: few, skewed numbers, many of them 0.

* A mean: the bootstrap (`scipy.stats.bootstrap`), bias-corrected and accelerated, since measures are skewed.
* A mean difference of pairs: the bootstrap's plain percentiles. Differences are about symmetric, with a few far out on
  either side; correcting for them makes the interval too narrow (of 20 seeds it covers 80 %, not 87 %).
* A quantile: order statistics (`scipy.stats.quantile_test`). They hold for every distribution, and say so when there
  are too few seeds; the bootstrap of a quantile cannot look beyond the largest value that it has.
* A share of runs: the exact binomial interval (Clopper and Pearson). 0 of 100 runs may mean up to 3.6 %; the
  bootstrap of a hundred zeros would say 0 to 0.
"""

import math
from enum import StrEnum

import attrs
import numpy as np
from scipy import stats

from emulator.statistics.frames import Numbers

CONFIDENCE = 0.95
"""Confidence of all intervals."""
SEEDS_MIN = 10
"""With fewer seeds no bootstrap interval is given: of ten, it covers the truth 80 to 90 times in 100, not 95."""
RESAMPLES = 4_999
_PERMUTATIONS = 4_999
_NUMBERS_AT_ONCE = 1_000_000


@attrs.frozen
class Figure:
    """A number and its confidence interval."""

    value: float
    """Infinite: not yet reached by anything that was observed."""
    low: float = math.nan
    """NaN, as `high`: this bound cannot be known with so few seeds. Infinite: not yet reached."""
    high: float = math.nan

    @property
    def is_known(self) -> bool:
        """Whether both ends of the interval can be reported."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def columns(self, name: str) -> dict[str, float]:
        """The figure as three columns of a table: `mean`, `mean_low`, `mean_high`."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


class Bootstrap(StrEnum):
    """How the interval of a mean is taken from its resamples; the values are scipy's names."""

    SKEWED = "BCa"
    SYMMETRIC = "percentile"


UNKNOWN = Figure(math.nan)


def mean(values: Numbers, bootstrap_seed: int, method: Bootstrap = Bootstrap.SKEWED) -> Figure:
    """The mean, with a bootstrap interval; equal values have an interval of width 0."""
    if not len(values):
        return UNKNOWN
    # The sum of equal floats, divided, may differ from them in the last digit.
    if np.all(values == values[0]):
        same = float(values[0])
        return Figure(same, same, same) if len(values) >= SEEDS_MIN else Figure(same)
    value = float(np.mean(values))
    if len(values) < SEEDS_MIN:
        return Figure(value)
    drawn = stats.bootstrap(
        (values,),
        np.mean,
        axis=-1,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, _NUMBERS_AT_ONCE // len(values)),
        confidence_level=CONFIDENCE,
        method=method.value,
        rng=np.random.default_rng(bootstrap_seed),
    ).confidence_interval
    return Figure(value, float(drawn.low), float(drawn.high))


def quantile(values: Numbers, share: float) -> Figure:
    """The value below which a share of the runs lies (linear between two runs, as in pandas)."""
    if not len(values):
        return UNKNOWN
    found = stats.quantile_test(values, p=share).confidence_interval(CONFIDENCE)
    return Figure(float(np.quantile(values, share)), float(found.low), float(found.high))


def share(count: int, of: int) -> Figure:
    """A share of runs, 0..1."""
    if not of:
        return UNKNOWN
    found = stats.binomtest(count, of).proportion_ci(CONFIDENCE, method="exact")
    return Figure(count / of, float(found.low), float(found.high))


def chance_of_sign(count: int, of: int) -> float:
    """How often chance alone makes one side of `of` pairs that differ as one-sided as `count`, 0..1: the sign test."""
    return float(stats.binomtest(count, of).pvalue) if of else 1.0


def chance_of_mean(differences: Numbers, bootstrap_seed: int) -> float:
    """How often chance alone makes the mean of paired differences as far from 0 as it is, 0..1.

    The permutation test of pairs (`scipy.stats.permutation_test`): if nothing had been changed, each difference might
    as well have the other sign. Exact for up to 12 differences that are not 0.
    """
    changed = differences[differences != 0]
    if len(changed) < 2:
        return 1.0  # either sign is as far from 0
    found = stats.permutation_test(
        (changed,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        axis=-1,
        n_resamples=_PERMUTATIONS,
        batch=max(1, _NUMBERS_AT_ONCE // len(changed)),
        rng=np.random.default_rng(bootstrap_seed),
    )
    return float(found.pvalue)
