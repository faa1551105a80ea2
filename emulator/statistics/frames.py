"""The frames that statistics are made from: one row per run, or one row per interval.

A run is known by its variant and its seed. What a frame lacks or has twice is refused in one line, because a group
that is left out silently, as pandas leaves out rows without a key, would change every figure.
"""

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pandas as pd

from emulator.base.errors import UserError
from emulator.base.text import listed, nearest
from nodes.units import NS_PER_S

SEED = "seed"
EVERYTHING = "all"
"""Name of the one group of a frame that is not divided."""
_SHOWN_MAX = 5

Numbers = npt.NDArray[np.float64]


class StatisticsError(UserError):
    """A frame, or what is asked of it, makes no sense; the text says what is wrong, where, and what was expected."""


@attrs.frozen(eq=False)
class Sample:
    """One number for each run of a variant, in the order of the seeds."""

    variant: Any
    seeds: tuple[int, ...]
    measured: Numbers
    missing: tuple[int, ...]
    """Seeds of runs without a value; they are in neither `seeds` nor `measured`."""


def samples(frame: Any, measure: str, by: str | None) -> tuple[Sample, ...]:
    """The values of a measure, divided by variant.

    Args:
        frame: one row per run, with columns `seed`, `measure` and `by`.
        measure: column of numbers, or of true and false, which count as 1 and 0; NaN where a run has no value.
        by: column that divides the runs; None: all runs are one group.

    Returns:
        One sample per value of `by`, in the order in which they first appear.

    Raises:
        StatisticsError: a column is missing or holds something else, or a run has several rows.
    """
    require_columns(frame, (SEED, measure, *(() if by is None else (by,))))
    require_rows(frame)
    return tuple(_sample(variant, rows, measure) for variant, rows in groups(frame, by))


def _sample(variant: Any, rows: Any, measure: str) -> Sample:
    seeds = seeds_of(rows)
    twice = _first_repeated(seeds)
    if twice is not None:
        count = int((seeds == twice).sum())
        raise StatisticsError(
            f"{variant}: seed {twice} has {count} rows; expected one row per run: per_run sums up intervals"
        )
    order = np.argsort(seeds, kind="stable")
    seeds, values = seeds[order], numbers(rows, measure)[order]
    there = ~np.isnan(values)
    return Sample(variant, _plain(seeds[there]), values[there], _plain(seeds[~there]))


def groups(frame: Any, by: str | None) -> list[tuple[Any, Any]]:
    """(value, rows) for each value of a column, in the order in which they first appear.

    Raises:
        StatisticsError: a row has no value.
    """
    if by is None:
        return [(EVERYTHING, frame)]
    without = int(frame[by].isna().sum())
    if without:
        raise StatisticsError(f"{without} rows have no {by}")
    return [(value, frame[frame[by] == value]) for value in pd.unique(frame[by])]


def seeds_of(rows: Any) -> npt.NDArray[np.int64]:
    """The seeds of rows.

    Raises:
        StatisticsError: a seed is no whole number.
    """
    seeds = pd.to_numeric(rows[SEED], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(seeds) | (seeds != np.floor(seeds))
    if wrong.any():
        shown = rows[SEED].iloc[int(np.argmax(wrong))]
        raise StatisticsError(f"column {SEED}: expected whole numbers, not {shown}")
    # Large seeds lose digits as floats, so they are converted from the column itself.
    return np.asarray(rows[SEED].astype("int64"))


def numbers(rows: Any, column: str) -> Numbers:
    """A column as floats, NaN where it has no value.

    Raises:
        StatisticsError: it holds something else, or infinite numbers.
    """
    try:
        values = np.asarray(rows[column].to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise StatisticsError(f"column {column}: expected numbers, not {rows[column].dtype}") from None
    if np.isinf(values).any():
        where = rows[SEED].iloc[int(np.argmax(np.isinf(values)))]
        raise StatisticsError(f"column {column}: expected finite numbers; seed {where} has an infinite one")
    return values


def require_columns(frame: Any, columns: tuple[str, ...]) -> None:
    """Refuse a frame that lacks a column.

    Raises:
        StatisticsError: with the name of the column, and those that are there.
    """
    if not isinstance(frame, pd.DataFrame):
        raise StatisticsError(f"expected a pandas frame, not {type(frame).__name__}")
    there = [str(column) for column in frame.columns]
    for column in columns:
        if column not in there:
            raise StatisticsError(nearest("column", column, there))


def require_rows(frame: Any) -> None:
    """Refuse a frame without rows."""
    if not len(frame):
        raise StatisticsError("the frame has no rows")


def with_durations(intervals: Any) -> Any:
    """The intervals with a column `duration_s`, in seconds.

    Args:
        intervals: a frame with columns `start_ns` and `end_ns`.

    Raises:
        StatisticsError: a column is missing, or an interval has no end or ends before it begins.
    """
    require_columns(intervals, ("start_ns", "end_ns"))
    open_ended = int((intervals["start_ns"].isna() | intervals["end_ns"].isna()).sum())
    if open_ended:
        raise StatisticsError(
            f"{open_ended} intervals lack start_ns or end_ns; expected the end of the run, marked as censored"
        )
    lasting_ns = intervals["end_ns"] - intervals["start_ns"]
    if (lasting_ns < 0).any():
        raise StatisticsError(f"{int((lasting_ns < 0).sum())} intervals end before they begin")
    return intervals.assign(duration_s=(lasting_ns / NS_PER_S).astype(np.float64))


def per_run(intervals: Any, runs: Any, name: str, by: str | None = "variant") -> Any:
    """Sum up intervals per run, the runs without any included.

    Args:
        intervals: one row per interval, with columns `seed`, `start_ns`, `end_ns` and `by`.
        runs: one row per run, with columns `seed` and `by`: a run without intervals has no row in `intervals`.
        name: begins the names of the new columns.
        by: column that, with the seed, says to which run an interval belongs; None: the seed alone.

    Returns:
        The frame `runs` with columns `<name>_count`, `<name>_s` (sum) and `<name>_longest_s`, 0 where there is none.

    Raises:
        StatisticsError: a column is missing, a run stands twice, or intervals belong to a run that is not in `runs`.
    """
    keys = [SEED] if by is None else [by, SEED]
    require_columns(intervals, (*keys, "start_ns", "end_ns"))
    require_columns(runs, tuple(keys))
    known = runs.set_index(keys).index
    if known.has_duplicates:
        raise StatisticsError(f"{_run(known[known.duplicated()][0])} stands twice among the runs")
    sums = with_durations(intervals).groupby(keys)["duration_s"].agg(["count", "sum", "max"])
    strange = [_run(key) for key in sums.index if key not in known]
    if strange:
        raise StatisticsError(
            f"intervals of {len(strange)} runs that are not among the runs: {listed(strange[:_SHOWN_MAX])}"
        )
    found = sums.reindex(known, fill_value=0).to_numpy(dtype=np.float64)
    count, total, longest = found.T
    return runs.assign(
        **{f"{name}_count": count.astype(np.int64), f"{name}_s": total, f"{name}_longest_s": longest},
    )


def _run(key: Any) -> str:
    return f"{key[0]} seed {key[1]}" if isinstance(key, tuple) else f"seed {key}"


def _first_repeated(seeds: npt.NDArray[np.int64]) -> int | None:
    values, counts = np.unique(seeds, return_counts=True)
    return int(values[np.argmax(counts > 1)]) if (counts > 1).any() else None


def _plain(seeds: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(seed) for seed in seeds)
