"""Intervals against intervals: who held a queue that somebody else held, and which phase an interval lies in."""

from itertools import pairwise
from typing import Any

import pandas as pd

OF_THE_WHOLE = ("active_ns", "excess_ns", "holders_ns", "duplicates", "messages", "backlog")
"""Amounts of whole intervals: a sum over pieces would count them once per piece."""
_QUEUE = ["run", "group", "topic", "broker_name", "queue_id"]


def shared(holds: pd.DataFrame) -> pd.DataFrame:
    """When each process held a queue that another one held, too.

    Args:
        holds: frame of holds.

    Returns:
        The columns of `holds`; one row per process, queue and maximal interval.
    """
    found = []
    for _, of_queue in holds.groupby(_QUEUE, sort=False):
        if len(of_queue) > 1:
            found += _shared_of_queue(of_queue.to_dict("records"))
    return pd.DataFrame(found, columns=list(holds.columns)).astype(holds.dtypes)


def _shared_of_queue(holds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    spans = _shared_spans([(hold["start_ns"], hold["end_ns"]) for hold in holds])
    for hold in holds:
        for at, until in spans:
            start, end = max(at, hold["start_ns"]), min(until, hold["end_ns"])
            if start < end:
                censored = hold["censored"] and end == hold["end_ns"]
                found.append({**hold, "start_ns": start, "end_ns": end, "censored": censored})
    return found


def _shared_spans(holds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Maximal intervals with two holds or more."""
    steps: dict[int, int] = {}
    for start, end in holds:
        steps[start] = steps.get(start, 0) + 1
        steps[end] = steps.get(end, 0) - 1
    owners, spans = 0, list[tuple[int, int]]()
    for at, until in pairwise(sorted(steps)):
        owners += steps[at]
        if owners > 1 and spans and spans[-1][1] == at:
            spans[-1] = spans[-1][0], until
        elif owners > 1:
            spans.append((at, until))
    return spans


def per_phase(intervals: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """Intervals cut at the begins of phases.

    Args:
        intervals: run, start_ns, end_ns and further columns.
        phases: run, phase, start_ns, end_ns, what.

    Returns:
        The columns of `intervals` without `OF_THE_WHOLE`, and phase and what; a piece is censored if it is the last
        one of an interval that is. Intervals of no length are left out.
    """
    whole = intervals.drop(columns=[*OF_THE_WHOLE, "phase", "what"], errors="ignore")
    bounds = phases[["run", "phase", "start_ns", "end_ns", "what"]].rename(
        columns={"start_ns": "phase_start_ns", "end_ns": "phase_end_ns"}
    )
    pieces = whole.merge(bounds, on="run")
    if "censored" in pieces:
        pieces["censored"] &= pieces["end_ns"] <= pieces["phase_end_ns"]
    pieces["start_ns"] = pieces[["start_ns", "phase_start_ns"]].max(axis=1)
    pieces["end_ns"] = pieces[["end_ns", "phase_end_ns"]].min(axis=1)
    pieces = pieces[pieces["start_ns"] < pieces["end_ns"]]
    return pieces.drop(columns=["phase_start_ns", "phase_end_ns"]).reset_index(drop=True)
