"""Instants of a time at which it is explained: on a grid that all findings share, so that answers are shared, too."""

from collections.abc import Iterator
from itertools import pairwise

from emulator.history.rows.row_classes import Span
from nodes.units import NS_PER_S

_SAMPLES_MAX = 32
_STEPS_NS = tuple(round(seconds * NS_PER_S) for seconds in (0.02, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 300, 1_800))
"""Distances between two instants of the grid."""


def samples(span: Span) -> Iterator[tuple[int, int]]:
    """Instants in a time, each with how much of the time it stands for, in ns.

    Args:
        span: from when to when; of no length, one instant that stands for one ns.
    """
    start_ns, end_ns = span
    if end_ns <= start_ns:
        yield start_ns, 1
        return
    lasted_ns = end_ns - start_ns
    step_ns = next((step for step in _STEPS_NS if lasted_ns <= step * _SAMPLES_MAX), _STEPS_NS[-1])
    bounds = [start_ns, *range(-(-(start_ns + 1) // step_ns) * step_ns, end_ns, step_ns), end_ns]
    for low, high in pairwise(bounds):
        # The middle of a whole cell of the grid is the same for all findings.
        yield (low + high) // 2, high - low
