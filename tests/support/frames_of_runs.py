"""Frames of runs, made by hand."""

import pandas as pd


def runs(measure="overlap_s", **variants):
    """One row per run: the values of each variant are those of the seeds 1, 2, ..., or a mapping seed -> value."""
    rows = [
        (variant, seed, value)
        for variant, values in variants.items()
        for seed, value in (values.items() if isinstance(values, dict) else enumerate(values, start=1))
    ]
    return pd.DataFrame(rows, columns=["variant", "seed", measure])


def intervals(durations, seeds=None, variant="x"):
    """One row per interval; a duration followed by `+` is censored, as textbooks write it; words, or a list."""
    rows = [
        (variant, number if seeds is None else seeds[number], float(str(text).rstrip("+")), str(text).endswith("+"))
        for number, text in enumerate(durations.split() if isinstance(durations, str) else durations)
    ]
    return pd.DataFrame(rows, columns=["variant", "seed", "pause_s", "censored"])
