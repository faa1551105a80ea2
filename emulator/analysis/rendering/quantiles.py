"""Quantiles of durations of which some had not ended (Kaplan-Meier).

What had not ended lasted at least that long, so it counts among those that go on
up to then, and among none after. For curves and confidence bands of many runs
see `emulator.statistics.survival`, which loads what a single report need not
wait for.
"""

from collections.abc import Iterable

Duration = tuple[int, bool]
"""How long in ns, and whether it had not ended yet."""


def quantile_ns(durations: Iterable[Duration], share: float) -> int | None:
    """The time within which a share of all durations ends.

    Args:
        durations: of the same kind.
        share: above 0 and below 1.

    Returns:
        None: not yet, as far as can be seen.
    """
    ordered = sorted(durations)
    going_on, at_risk, place = 1.0, len(ordered), 0
    while place < len(ordered):
        lasted_ns = ordered[place][0]
        same = [censored for ns, censored in ordered[place:] if ns == lasted_ns]
        going_on *= 1 - same.count(False) / at_risk
        if going_on <= 1 - share + 1e-12:
            return lasted_ns
        at_risk -= len(same)
        place += len(same)
    return None


def half_and_p90(durations: Iterable[Duration]) -> str:
    """Median and 90th percentile, for people: `half within 0.6 s, 90 % not yet`."""
    every = list(durations)
    return ", ".join(f"{name} {_within(quantile_ns(every, share))}" for name, share in (("half", 0.5), ("90 %", 0.9)))


def _within(lasted_ns: int | None) -> str:
    return "not yet" if lasted_ns is None else f"within {lasted_ns / 1e9:.1f} s"
