"""How long something lasts, when some of it had not ended yet: Kaplan-Meier.

The curve is that of `scipy.stats.ecdf`, which keeps right-censored durations. Its own confidence band takes all
intervals for independent; those of one run are not, since one fault causes many. So the band resamples seeds, each
with all its intervals.
"""

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse, stats

from emulator.base.amounts import Amounts, counted, name_of
from emulator.statistics.figures import CONFIDENCE, SEEDS_MIN, Figure
from emulator.statistics.frames import (
    Numbers,
    StatisticsError,
    groups,
    numbers,
    require_columns,
    require_rows,
    seeds_of,
)

RESAMPLES = 2_000
_POINTS_MAX = 400
"""Most points of a curve for people; the figures are computed from all."""
_INSTANTS_MAX = 2_000
"""Most instants of a resampled curve: of more, each stands for those since the one before, which moves no bound by more
than a two-thousandth of the intervals, and 100,000 intervals take a second in place of half a minute."""
_NUMBERS_AT_ONCE = 2_000_000
_ROUNDING = 1e-12
"""A product of shares reaches one half only up to rounding."""


@attrs.frozen(eq=False)
class Survival:
    """How long the intervals of one variant last."""

    variant: Any
    duration: str
    """Name of the column of durations, with the unit last."""
    intervals: int
    censored: int
    """Intervals that had not ended when they were last seen; they are retained."""
    seeds: int
    """Runs with an interval; with fewer than `SEEDS_MIN` there are no confidence bounds."""
    curve: Any
    """A pandas frame: `duration` (ascending), `survival` (share that lasts longer), `low`, `high`, `at_risk`.

    The band is pointwise. At most 400 points, the first and the last instant included.
    """
    median: Figure
    """Duration within which half have ended; infinite: not yet."""
    p90: Figure
    """Duration within which 90 % have ended."""
    restricted_mean: Figure
    """Mean duration, where what lasts longer than `horizon` counts as `horizon`. NaN: the curve ends before it."""
    horizon: float

    def row(self) -> dict[str, Any]:
        """The survival, without its curve, as a row of `table`."""
        return {
            "variant": self.variant,
            "duration": self.duration,
            "seeds": self.seeds,
            "intervals": self.intervals,
            "censored": self.censored,
            **self.median.columns("median"),
            **self.p90.columns("p90"),
            **self.restricted_mean.columns("restricted_mean"),
            "horizon": self.horizon,
        }

    def sentence(self) -> str:
        """The survival for people."""
        figures = (self.median, self.p90, self.restricted_mean)
        amounts = Amounts(
            self.duration, [number for figure in figures for number in (figure.value, figure.low, figure.high)]
        )
        ended = self.intervals - self.censored
        return (
            f"{self.variant}: {ended:,} of {counted(self.intervals, 'interval')} in {counted(self.seeds, 'seed')} "
            f"had ended. {name_of(self.duration).capitalize()} of half of them: {_reported(self.median, amounts)}; "
            f"of p90: {_reported(self.p90, amounts)}; mean up to {amounts.full(self.horizon)}: "
            f"{_reported(self.restricted_mean, amounts)}"
        )


def survival(
    frame: Any,
    duration: str,
    censored: str = "censored",
    by: str | None = "variant",
    *,
    horizon: float | None = None,
    bootstrap_seed: int = 1,
) -> tuple[Survival, ...]:
    """Estimate how long intervals last, for each variant.

    A variant without any interval has no row, so it is not in the result.

    Args:
        frame: one row per interval, with columns `seed`, `duration`, `censored` and `by`; see `with_durations`.
        duration: column of numbers >= 0, the unit last in its name.
        censored: column of true and false: the interval had not ended yet.
        by: column that divides the intervals; None: all are one group.
        horizon: for the restricted mean, in the unit of `duration`; by default the longest duration that every
            variant has seen, so that the means can be compared.
        bootstrap_seed: decides the resamples.

    Returns:
        One per value of `by`, in the order in which they first appear.

    Raises:
        StatisticsError: the frame or the horizon makes no sense.
    """
    require_columns(frame, ("seed", duration, censored, *(() if by is None else (by,))))
    require_rows(frame)
    allocated = [(variant, _Observed.of(rows, duration, censored)) for variant, rows in groups(frame, by)]
    if horizon is None:
        horizon = min(float(observed.durations.max()) for _, observed in allocated)
    elif not 0 < horizon < math.inf:
        raise StatisticsError(f"horizon: expected a number above 0, not {horizon}")
    return tuple(_survival(variant, observed, duration, horizon, bootstrap_seed) for variant, observed in allocated)


@attrs.frozen(eq=False)
class _Observed:
    """The intervals of one variant, in the order of seeds and durations."""

    durations: Numbers
    censored: npt.NDArray[np.bool_]
    runs: npt.NDArray[np.intp]
    """Position of each interval's seed among the seeds, from 0."""
    seeds: int

    @classmethod
    def of(cls, rows: Any, duration: str, censored: str) -> "_Observed":
        durations = numbers(rows, duration)
        if np.isnan(durations).any():
            raise StatisticsError(f"column {duration}: {int(np.isnan(durations).sum())} intervals have no duration")
        if (durations < 0).any():
            raise StatisticsError(f"column {duration}: expected durations >= 0, not {durations.min():g}")
        if rows[censored].isna().any() or not rows[censored].isin((True, False)).all():
            raise StatisticsError(f"column {censored}: expected true or false")
        is_censored = rows[censored].to_numpy(dtype=bool)
        seeds, runs = np.unique(seeds_of(rows), return_inverse=True)
        order = np.lexsort((is_censored, durations, runs))  # the order of the rows must not change a figure
        return cls(durations[order], is_censored[order], runs[order], len(seeds))


def _survival(variant: Any, observed: _Observed, duration: str, horizon: float, bootstrap_seed: int) -> Survival:
    data = stats.CensoredData.right_censored(observed.durations, observed.censored)
    sf = stats.ecdf(data).sf
    ends = np.unique(observed.durations[~observed.censored])
    survives = np.asarray(sf.evaluate(ends), dtype=np.float64)
    last = float(observed.durations.max())
    instants = ends[_spread(len(ends), _INSTANTS_MAX)]
    shown = instants[_spread(len(instants), _POINTS_MAX)]
    resampled = _resampled(observed, instants, np.searchsorted(instants, shown), horizon, bootstrap_seed)
    mean = _restricted_mean(survives, ends, horizon)
    # Fewer instants make every curve fall a little later; the same shift takes it back.
    means = resampled.means + (mean - _restricted_mean(np.asarray(sf.evaluate(instants)), instants, horizon))
    reaches = horizon <= last or (len(survives) > 0 and survives[-1] <= _ROUNDING)
    return Survival(
        variant,
        duration,
        len(observed.durations),
        int(observed.censored.sum()),
        observed.seeds,
        _curve(duration, shown, np.asarray(sf.evaluate(shown)), resampled.curves, observed.durations),
        median=_bounded(_time_of(survives, ends, 0.5), resampled.medians),
        p90=_bounded(_time_of(survives, ends, 0.1), resampled.p90s),
        restricted_mean=_bounded(mean, means) if reaches else Figure(math.nan),
        horizon=horizon,
    )


@attrs.frozen(eq=False)
class _Resampled:
    """What the resamples of the seeds give, one row each; no rows where there are too few seeds."""

    curves: Numbers
    """Shape (resamples, shown points)."""
    medians: Numbers
    p90s: Numbers
    means: Numbers


def _resampled(
    observed: _Observed, instants: Numbers, shown: npt.NDArray[np.intp], horizon: float, bootstrap_seed: int
) -> _Resampled:
    curves, medians, p90s, means = [np.empty((0, len(shown)))], [np.empty(0)], [np.empty(0)], [np.empty(0)]
    if observed.seeds >= SEEDS_MIN:
        for resample in _resamples(observed, instants, np.random.default_rng(bootstrap_seed)):
            curves.append(resample[:, shown])
            medians.append(_times_of(resample, instants, 0.5))
            p90s.append(_times_of(resample, instants, 0.1))
            means.append(_restricted_means(resample, instants, horizon))
    return _Resampled(*(np.concatenate(part) for part in (curves, medians, p90s, means)))


def _resamples(observed: _Observed, instants: Numbers, chance: np.random.Generator) -> Iterator[Numbers]:
    """Kaplan-Meier curves of resampled seeds at some instants, in batches of shape (resamples, instants).

    A seed that is drawn twice counts twice. Where nothing is at risk any more, the curve stays as it is.
    """
    seeds, ended = observed.seeds, ~observed.censored
    ends_at = np.searchsorted(instants, observed.durations[ended], side="left")
    # At how many instants an interval is at risk: if it ended, also at that of its end; else as far as it was seen.
    reached = np.searchsorted(instants, observed.durations, side="right")
    reached[ended] = ends_at + 1
    ends_of = _table(observed.runs[ended], ends_at, (seeds, len(instants)))
    leaves = _table(observed.runs, reached, (seeds, len(instants) + 1))
    in_all = np.bincount(observed.runs, minlength=seeds)
    at_once = max(1, _NUMBERS_AT_ONCE // (len(instants) + 1))
    for begin in range(0, RESAMPLES, at_once):
        drawn = chance.multinomial(seeds, np.full(seeds, 1 / seeds), size=min(at_once, RESAMPLES - begin))
        at_risk = (drawn @ in_all)[:, None] - np.cumsum(drawn @ leaves, axis=1)[:, :-1]
        yield np.cumprod(1 - (drawn @ ends_of) / np.maximum(at_risk, 1), axis=1)


def _table(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], shape: tuple[int, int]) -> Any:
    """How often each (row, column) occurs."""
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)


def _time_of(survives: Numbers, ends: Numbers, share: float) -> float:
    return float(_times_of(survives[None, :], ends, share)[0])


def _times_of(curves: Numbers, ends: Numbers, share: float) -> Numbers:
    """The first instant at which at most a share survives, per curve; infinite: not yet."""
    below = curves <= share + _ROUNDING
    later = np.append(ends, math.inf)
    return (
        later[np.where(below.any(axis=1), below.argmax(axis=1), len(ends))]
        if len(ends)
        else np.full(len(curves), math.inf)
    )


def _restricted_mean(survives: Numbers, ends: Numbers, horizon: float) -> float:
    return float(_restricted_means(survives[None, :], ends, horizon)[0])


def _restricted_means(curves: Numbers, ends: Numbers, horizon: float) -> Numbers:
    """The area below each curve from 0 to the horizon."""
    edges = np.minimum(np.concatenate(([0.0], ends, [horizon])), horizon)
    heights = np.concatenate((np.ones((len(curves), 1)), curves), axis=1)
    return np.asarray(heights @ np.diff(edges))


def _bounded(value: float, resampled: Numbers) -> Figure:
    if not len(resampled):
        return Figure(value)
    tail = (1 - CONFIDENCE) / 2
    # Without interpolation, since some of them may be infinite.
    low, high = np.quantile(resampled, (tail, 1 - tail), method="inverted_cdf")
    return Figure(value, float(low), float(high))


def _spread(many: int, maximum: int) -> npt.NDArray[np.intp]:
    """Positions among many, evenly spread, the first and the last included."""
    return np.unique(np.linspace(0, max(many - 1, 0), min(many, maximum)).round().astype(np.intp))


def _curve(duration: str, ends: Numbers, survives: Numbers, curves: Numbers, durations: Numbers) -> Any:
    tail = (1 - CONFIDENCE) / 2
    unknown = np.full(len(ends), math.nan)
    low, high = np.quantile(curves, (tail, 1 - tail), axis=0) if len(curves) else (unknown, unknown)
    points = [(0.0, 1.0, 1.0, 1.0)] if not len(ends) or ends[0] > 0 else []
    points += [*zip(ends.tolist(), survives.tolist(), low.tolist(), high.tolist(), strict=True)]
    last = float(durations.max())
    if last > points[-1][0]:
        points.append((last, *points[-1][1:]))
    found = pd.DataFrame(points, columns=[duration, "survival", "low", "high"])
    ordered = np.sort(durations)
    return found.assign(at_risk=len(ordered) - np.searchsorted(ordered, found[duration].to_numpy(), side="left"))


def _reported(figure: Figure, amounts: Amounts) -> str:
    if not figure.is_known or math.isinf(figure.low):
        return amounts.full(figure.value)
    return f"{amounts.full(figure.value)} (95 %: {amounts.plain(figure.low)} to {amounts.plain(figure.high)})"
