"""Statistics over the runs of many seeds: estimates, paired comparisons of variants, survival of intervals.

Frames in, values out: no I/O, no Spark. May import `base`.
"""

from emulator.statistics.estimates import Estimate, estimate
from emulator.statistics.figures import CONFIDENCE, SEEDS_MIN, Figure, chance_of_sign
from emulator.statistics.frames import StatisticsError, per_run, with_durations
from emulator.statistics.kaplan_meier import Survival, survival
from emulator.statistics.pairs import Better, Comparison, PairVerdict, compare
from emulator.statistics.tables import table

__all__ = [
    "CONFIDENCE",
    "SEEDS_MIN",
    "Better",
    "Comparison",
    "Estimate",
    "Figure",
    "PairVerdict",
    "StatisticsError",
    "Survival",
    "chance_of_sign",
    "compare",
    "estimate",
    "per_run",
    "survival",
    "table",
    "with_durations",
]
