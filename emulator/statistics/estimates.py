"""What a measure is in the runs of a variant, estimated from its seeds."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from emulator.base.amounts import Amounts, counted, name_of, percent
from emulator.statistics.figures import Figure, mean, quantile, share
from emulator.statistics.frames import Sample, StatisticsError, samples

QUANTILES = (0.25, 0.75, 0.9)
_WORST_MAX = 5


@attrs.frozen
class Estimate:
    """What a measure is in the runs of one variant; intervals are those of `emulator.statistics.figures`."""

    variant: Any
    measure: str
    runs: int
    """Runs with a value, one per seed."""
    missing: tuple[int, ...]
    """Seeds of runs without a value (NaN); no figure counts them."""
    mean: Figure
    median: Figure
    quantiles: Mapping[float, Figure]
    share_above_0: Figure
    """Share of the runs in which the measure is above 0, 0..1."""
    worst: tuple[tuple[int, float], ...]
    """(seed, value) of the largest values, the largest first; at most five."""

    def row(self) -> dict[str, Any]:
        """The estimate as a row of `table`."""
        row: dict[str, Any] = {"variant": self.variant, "measure": self.measure, "runs": self.runs}
        row |= self.mean.columns("mean") | self.median.columns("median")
        for part, figure in self.quantiles.items():
            row |= figure.columns(f"p{100 * part:g}")
        row |= self.share_above_0.columns("share_above_0")
        return row | {"worst_seeds": [seed for seed, _ in self.worst], "missing_seeds": [*self.missing]}

    def sentence(self) -> str:
        """The estimate for people."""
        if not self.runs:
            return f"{self.variant}: no run has a value of {name_of(self.measure)}"
        shown = [self.mean.value, self.mean.high, *(value for _, value in self.worst)]
        amounts = Amounts(self.measure, shown)
        above = f"above 0 in {percent(self.share_above_0.value)} of {counted(self.runs, 'run')}"
        between = f"{percent(self.share_above_0.low)} to {percent(self.share_above_0.high)}"
        worst = ", ".join(f"{seed} ({amounts.full(value)})" for seed, value in self.worst)
        missing = f"; without a value: seeds {', '.join(map(str, self.missing))}" if self.missing else ""
        return (
            f"{self.variant}: {name_of(self.measure)} {amounts.full(self.mean.value)} per run on average "
            f"({_interval(self.mean, amounts)}), {above} (95 %: {between}); worst seeds {worst}{missing}"
        )


def estimate(
    frame: Any,
    measure: str,
    by: str | None = "variant",
    *,
    quantiles: Sequence[float] = QUANTILES,
    bootstrap_seed: int = 1,
) -> tuple[Estimate, ...]:
    """Estimate a measure for each variant.

    The seed is the unit: a run gives one number, however many intervals are behind it.

    Args:
        frame: one row per run, with columns `seed`, `measure` and `by`.
        measure: column of numbers; the larger, the worse.
        by: column that divides the runs; None: all runs together.
        quantiles: shares, each above 0 and below 1.
        bootstrap_seed: decides the resamples: the same data give the same figures, in whatever order the rows are.

    Returns:
        One estimate per value of `by`, in the order in which they first appear.

    Raises:
        StatisticsError: the frame or the quantiles make no sense.
    """
    for part in quantiles:
        if not 0 < part < 1:
            raise StatisticsError(f"quantiles: expected numbers above 0 and below 1, not {part}")
    return tuple(_estimate(sample, measure, tuple(quantiles), bootstrap_seed) for sample in samples(frame, measure, by))


def _estimate(sample: Sample, measure: str, quantiles: tuple[float, ...], bootstrap_seed: int) -> Estimate:
    values = sample.measured
    # Of equal values the smallest seeds come first.
    order = np.argsort(-values, kind="stable")[:_WORST_MAX]
    return Estimate(
        sample.variant,
        measure,
        len(values),
        sample.missing,
        mean(values, bootstrap_seed),
        quantile(values, 0.5),
        MappingProxyType({part: quantile(values, part) for part in quantiles}),
        share(int((values > 0).sum()), len(values)),
        tuple((sample.seeds[at], float(values[at])) for at in order),
    )


def _interval(figure: Figure, amounts: Amounts) -> str:
    if not figure.is_known:
        return "too few seeds for an interval"
    return f"95 %: {amounts.plain(figure.low)} to {amounts.plain(figure.high)}"
