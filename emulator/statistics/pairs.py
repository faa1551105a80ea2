"""Two variants compared over the same seeds.

Both runs of a pair have the same seed, so the same instants of faults and the same random streams; their difference is
what the variant changed. A claim needs two things: the confidence interval of the mean difference leaves out 0, and
chance alone would give such a mean in less than 5 % of comparisons (`chance_of_mean`). The interval alone claims too
much: of two variants that are the same, in 1 of 7 comparisons of 20 seeds if most runs are 0.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import attrs
import numpy as np

from emulator.base.amounts import Amounts, counted, name_of, percent, unit_of
from emulator.base.text import nearest
from emulator.statistics.figures import (
    CONFIDENCE,
    SEEDS_MIN,
    Bootstrap,
    Figure,
    chance_of_mean,
    mean,
    quantile,
    share,
)
from emulator.statistics.frames import Numbers, Sample, StatisticsError, samples

DIFFERENT_MIN = 6
"""Fewest seeds that must differ for a claim: chance sends five of them one way in 6 % of comparisons (2 x 0.5^5)."""
_SAME_WITHIN = 1e-9
"""Relative difference below which two values are equal: sums of the same times in another order differ so much."""
_SEEDS_SHOWN = 8


class Better(StrEnum):
    """Which values of a measure are the better ones."""

    LESS = "less"
    MORE = "more"


class PairVerdict(StrEnum):
    """What a comparison shows about b."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    """No seed differs."""
    UNKNOWN = "cannot decide"


@attrs.frozen
class Comparison:
    """What b changes against a, over the seeds that both have run with; differences are b - a."""

    measure: str
    a: Any
    b: Any
    better: Better
    phrase: str
    pairs: int
    """Seeds with a value of both; all figures are of them."""
    only_a: tuple[int, ...]
    """Seeds that only a has run with; no figure counts them."""
    only_b: tuple[int, ...]
    without_value: tuple[int, ...]
    """Seeds that both have run with, where one run has no value (NaN); no figure counts them."""
    mean_a: float
    mean_b: float
    difference: Figure
    """Mean of the differences."""
    chance: float
    """How often chance alone makes the mean difference as large, 0..1."""
    median_difference: Figure
    better_in: int
    """Number of seeds in which b is better."""
    equal_in: int
    worse_in: int

    @property
    def effect_size(self) -> float:
        """Paired dominance (Cliff's d_w): the share of seeds in which b is better, minus that in which it is worse.

        -1: b is worse in every seed; 1: better in every seed; NaN without pairs. It needs no normal distribution, one
        extreme seed cannot change it much, and seeds without a difference count, where Cohen's d and rank correlations
        divide by a spread that is 0 or leave such seeds out.
        """
        return (self.better_in - self.worse_in) / self.pairs if self.pairs else float("nan")

    @property
    def verdict(self) -> PairVerdict:
        """What may be claimed of b."""
        if self.pairs < SEEDS_MIN:
            return PairVerdict.UNKNOWN
        if self.equal_in == self.pairs:
            return PairVerdict.SAME
        if self.chance >= 1 - CONFIDENCE or self._interval_has_0():
            return PairVerdict.UNKNOWN
        falls = self.difference.value < 0
        return PairVerdict.BETTER if falls is (self.better is Better.LESS) else PairVerdict.WORSE

    def row(self) -> dict[str, Any]:
        """The comparison as a row of `table`."""
        return {
            "measure": self.measure,
            "a": self.a,
            "b": self.b,
            "verdict": self.verdict.value,
            "pairs": self.pairs,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            **self.difference.columns("difference"),
            **self.median_difference.columns("median_difference"),
            "better_in": self.better_in,
            "equal_in": self.equal_in,
            "worse_in": self.worse_in,
            "effect_size": self.effect_size,
            "chance": self.chance,
            "left_out_seeds": sorted((*self.only_a, *self.only_b, *self.without_value)),
        }

    def sentence(self) -> str:
        """The comparison for people; and what it cannot decide."""
        answer = self._claim() if self.pairs else f"Cannot decide: no seed has a value with both {self.b} and {self.a}"
        left_out = self._left_out()
        return f"{answer}; left out: {left_out}" if left_out else answer

    def by_how_much(self) -> str:
        """`147 s less per run (95 %: 139 to 154)`; without the interval where there are too few seeds for it."""
        return f"{self._by_how_much()}{self._interval() if self.difference.is_known else ''}"

    def _claim(self) -> str:
        match self.verdict:
            case PairVerdict.SAME:
                maximum = percent(share(0, self.pairs).high)
                return (
                    f"{self.b} makes no difference to {self.a} in any of {counted(self.pairs, 'seed')}: "
                    f"{name_of(self.measure)} is the same (95 %: at most {maximum} of all seeds differ)"
                )
            case PairVerdict.UNKNOWN:
                return f"Cannot decide with {counted(self.pairs, 'seed')}: {self._why_unknown()}; {self._counts()}"
            case _:
                return f"With {self.b}{self._what()} {self._by_how_much()} than with {self.a}{self._interval()}; " + (
                    self._counts() + self._contradiction()
                )

    def _interval_has_0(self) -> bool:
        return self.difference.low <= 0 <= self.difference.high

    def _why_unknown(self) -> str:
        differ = self.better_in + self.worse_in
        if self.pairs < SEEDS_MIN:
            return f"expected at least {SEEDS_MIN}"
        if differ < DIFFERENT_MIN:
            return f"only {differ} of them differ, expected at least {DIFFERENT_MIN}"
        with_b = f"with {self.b}{self._what()}"
        if not self._interval_has_0():
            as_much = f"chance alone gives as much in {percent(self.chance)} of comparisons"
            return f"{with_b} {self._by_how_much()} than with {self.a}, but {as_much}"
        amounts = self._amounts()
        low, high = self.difference.low, self.difference.high
        between = f"between {amounts.full(abs(low))} {self._less} and {amounts.full(abs(high))} more"
        return f"{with_b} {between} per run than with {self.a} (95 %)"

    def _what(self) -> str:
        return f", {self.phrase}" if self.phrase else f": {name_of(self.measure)}"

    def _by_how_much(self) -> str:
        value = self.difference.value
        return f"{self._amounts().full(abs(value))} {self._less if value < 0 else 'more'} per run"

    def _interval(self) -> str:
        low, high = sorted((abs(self.difference.low), abs(self.difference.high)))
        amounts = self._amounts()
        return f" (95 %: {amounts.plain(low)} to {amounts.plain(high)})"

    def _counts(self) -> str:
        seeds = counted(self.pairs, "seed")
        return f"better in {self.better_in} of {seeds}, equal in {self.equal_in}, worse in {self.worse_in}"

    def _contradiction(self) -> str:
        majority = self.better_in - self.worse_in
        says = 1 if self.verdict is PairVerdict.BETTER else -1
        return ", so a few seeds with large differences decide the mean" if majority * says < 0 else ""

    def _left_out(self) -> str:
        parts = (
            (self.only_a, f"no run with {self.b}"),
            (self.only_b, f"no run with {self.a}"),
            (self.without_value, "no value"),
        )
        return ", ".join(f"{_seeds(seeds)} ({why})" for seeds, why in parts if seeds)

    @property
    def _less(self) -> str:
        return "less" if unit_of(self.measure) else "fewer"

    def _amounts(self) -> Amounts:
        return Amounts(self.measure, (self.difference.value, self.difference.low, self.difference.high))


def compare(
    frame: Any,
    measure: str,
    a: Any,
    b: Any,
    *,
    by: str = "variant",
    better: Better = Better.LESS,
    phrase: str = "",
    bootstrap_seed: int = 1,
) -> Comparison:
    """Compare two variants, paired by seed.

    Args:
        frame: one row per run, with columns `seed`, `measure` and `by`.
        measure: column of numbers, the unit last in its name: `overlap_s`.
        a: value of `by` that is compared with, such as the defaults.
        b: value of `by` whose effect is asked for.
        by: column that divides the runs.
        better: which values are the better ones.
        phrase: what is measured, for the sentence: `queues had two owners`. By default the name of the measure.
        bootstrap_seed: decides the resamples.

    Raises:
        StatisticsError: the frame makes no sense, or it has no such variants.
    """
    if a == b:
        raise StatisticsError(f"expected two variants, not {a} twice")
    found = {sample.variant: sample for sample in samples(frame, measure, by)}
    for variant in (a, b):
        if variant not in found:
            raise StatisticsError(nearest(by, str(variant), [str(known) for known in found]))
    return _compared(found[a], found[b], measure, Better(better), phrase, bootstrap_seed)


def _compared(a: Sample, b: Sample, measure: str, better: Better, phrase: str, bootstrap_seed: int) -> Comparison:
    values_a, values_b = (dict(zip(item.seeds, item.measured, strict=True)) for item in (a, b))
    pairs = [seed for seed in a.seeds if seed in values_b]
    paired_a = np.array([values_a[seed] for seed in pairs], dtype=np.float64)
    paired_b = np.array([values_b[seed] for seed in pairs], dtype=np.float64)
    differences = _differences(paired_a, paired_b)
    falls, rises = int((differences < 0).sum()), int((differences > 0).sum())
    run_a, run_b = (dict.fromkeys((*item.seeds, *item.missing)) for item in (a, b))
    return Comparison(
        measure,
        a.variant,
        b.variant,
        better,
        phrase,
        len(pairs),
        only_a=_without(run_a, run_b),
        only_b=_without(run_b, run_a),
        without_value=tuple(
            sorted(dict.fromkeys(seed for seed in (*a.missing, *b.missing) if seed in run_a and seed in run_b))
        ),
        mean_a=float(np.mean(paired_a)) if pairs else float("nan"),
        mean_b=float(np.mean(paired_b)) if pairs else float("nan"),
        difference=mean(differences, bootstrap_seed, Bootstrap.SYMMETRIC),
        chance=chance_of_mean(differences, bootstrap_seed),
        median_difference=quantile(differences, 0.5),
        better_in=falls if better is Better.LESS else rises,
        equal_in=len(pairs) - falls - rises,
        worse_in=rises if better is Better.LESS else falls,
    )


def _differences(a: Numbers, b: Numbers) -> Numbers:
    return np.where(np.isclose(a, b, rtol=_SAME_WITHIN, atol=0.0), 0.0, b - a)


def _without(seeds: dict[int, None], others: dict[int, None]) -> tuple[int, ...]:
    return tuple(sorted(seed for seed in seeds if seed not in others))


def _seeds(seeds: Sequence[int]) -> str:
    shown = ", ".join(map(str, seeds[:_SEEDS_SHOWN]))
    more = len(seeds) - _SEEDS_SHOWN
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {shown}{f' and {more} more' if more > 0 else ''}"
