"""Causes of findings, each with its share in what was found."""

from collections.abc import Iterable, Sequence

import attrs

RULE = "rule"
"""Kind of a cause that is a rule of RocketMQ, where no disturbance is on the chain."""


@attrs.frozen
class CauseShare:
    """A disturbance, and its share in what was found."""

    id: str
    """Of the fault or the act, as the scenario has it; of a process, its node and what happened; of a rule empty."""
    kind: str
    """`fault`, `act`, `process` or `rule`."""
    what: str
    """For people: `cut consumer-2 -> broker-b`."""
    start_ns: int
    """When it began; of a rule -1."""
    share: float
    """Of the amount, from 0 to 1: for so much of it the disturbance is needed, maybe with others."""
    suffices: float
    """For so much of it the disturbance would have been enough, and so would others: each of them suffices."""

    @property
    def total(self) -> float:
        """The share for which it is on the chain."""
        return min(1.0, self.share + self.suffices)


def share_of(part: float, whole: float) -> float:
    """A part of an amount, from 0 to 1, with three digits."""
    return round(part / whole, 3)


def in_order(causes: Iterable[CauseShare]) -> tuple[CauseShare, ...]:
    """Disturbances, the greatest share first, then rules."""
    every = list(causes)
    named = [item for item in every if item.kind != RULE]
    named.sort(key=lambda item: (-item.total, -item.share, item.start_ns, item.id))
    return (*named, *sorted((item for item in every if item.kind == RULE), key=lambda item: (-item.share, item.what)))


def merged_causes(weighted: Iterable[tuple[Sequence[CauseShare], float]]) -> tuple[CauseShare, ...]:
    """The causes of a sum of amounts, each with causes of its own.

    Args:
        weighted: (causes, amount).
    """
    found: dict[tuple[str, str, str, int], list[float]] = {}
    total = 0.0
    for causes, weight in weighted:
        if weight <= 0:
            continue
        total += weight
        for item in causes:
            sums = found.setdefault((item.id, item.kind, item.what, item.start_ns), [0.0, 0.0])
            sums[0] += item.share * weight
            sums[1] += item.suffices * weight
    if not total:
        return ()
    return in_order(CauseShare(*key, *(share_of(item, total) for item in sums)) for key, sums in found.items())
