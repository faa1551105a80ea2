"""The first agreement of a run: from then on, only disturbances explain differences."""

from collections.abc import Iterable

import attrs


@attrs.frozen
class Interval:
    """A time of disagreement."""

    start_ns: int
    end_ns: int
    censored: bool


def first_agreement(begun_ns: int | None, divergent: Iterable[Interval]) -> int | None:
    """The first instant at which there are views and owners, and all agree.

    Args:
        begun_ns: first instant with a view and an owner; None: there is none.
        divergent: intervals of all layers.

    Returns:
        None for a run that never agreed.
    """
    if begun_ns is None:
        return None
    reached_ns = begun_ns
    for interval in sorted(divergent, key=lambda item: (item.start_ns, item.end_ns)):
        if interval.end_ns <= begun_ns:
            continue
        if interval.start_ns > reached_ns:
            break
        if interval.censored:
            return None
        reached_ns = max(reached_ns, interval.end_ns)
    return reached_ns
