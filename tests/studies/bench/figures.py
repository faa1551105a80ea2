"""What a benchmark says: one row of `bench.json`, and the floor that it is held against."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import median
from typing import Any

import attrs


@attrs.frozen
class Work:
    """How much to do, as shares of what a full benchmark does."""

    size: float = 1.0
    """Share of the calls or of the time of each run."""
    rounds: float = 1.0
    """Share of the runs."""

    def sized(self, full: int) -> int:
        """That share of a number of calls or seconds, 1 at least."""
        return max(1, round(full * self.size))

    def repeated(self, full: int) -> int:
        """That share of a number of runs, 1 at least."""
        return max(1, round(full * self.rounds))


FULL = Work()
QUICK = Work(size=0.2, rounds=0.5)
"""A tenth of the work."""


@attrs.frozen
class Sample:
    """What several runs of the same thing measured."""

    values: tuple[float, ...] = attrs.field(validator=attrs.validators.min_len(1))

    @property
    def median(self) -> float:
        """The value in the middle."""
        return median(self.values)

    @property
    def spread_pct(self) -> float:
        """From the smallest to the largest value, in percent of the median."""
        return 100 * (max(self.values) - min(self.values)) / abs(self.median) if self.median else 0.0


def interleave(sides: Sequence[Callable[[], Sequence[float]]], rounds: int) -> list[Sample]:
    """Run each side in turn, `rounds` times over, so that a noisy moment hits all of them.

    Args:
        sides: what to run; each returns what it has measured, one value or several.

    Returns:
        One sample per side.
    """
    values: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, found in zip(sides, values, strict=True):
            found.extend(side())
    return [Sample(tuple(found)) for found in values]


@attrs.frozen
class Row:
    """One figure and what it was run next to."""

    name: str
    value: float
    unit: str
    spread_pct: float
    """Of the runs behind `value`, smallest to largest."""
    reference: str
    """What it was run next to, with its own figure where it has one."""
    ratio: float | None
    """`value` by the figure of the reference; None where there is none."""
    reference_2: str | None = None
    """A second rival; None where there is none."""
    ratio_2: float | None = None

    def plain(self) -> dict[str, Any]:
        """The row as JSON says it, at four significant digits."""
        return {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in attrs.asdict(self).items()
            if not (key.endswith("_2") and self.reference_2 is None)
        }


class Judged(StrEnum):
    """Which figure of a row a floor is about."""

    VALUE = "value"
    RATIO = "ratio"


@attrs.frozen
class Floor:
    """What the reference machine, two virtual CPUs with nothing else to do, is expected to reach."""

    judged: Judged
    limit: float
    at_most: bool = False
    """The limit is a ceiling: less is better."""

    def is_met(self, row: Row) -> bool:
        """Whether the row reaches it."""
        figure = row.value if self.judged is Judged.VALUE else row.ratio
        if figure is None:
            return False
        return figure <= self.limit if self.at_most else figure >= self.limit

    def __str__(self) -> str:
        return f"{self.judged} {'<=' if self.at_most else '>='} {self.limit:g}"
