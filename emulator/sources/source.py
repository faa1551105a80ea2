"""A source of disagreement: what it is, how long it may last, and how it is produced."""

from collections.abc import Callable
from enum import StrEnum

import attrs

TOLERANCE_S = 0.6
"""Round trips, the second between two passes of a consumer, and what a measured instant may be late."""


class Family(StrEnum):
    """What nodes disagree about."""

    QUEUES = "queues of a topic"
    MEMBERS = "members of a group"
    SHARES = "shares"
    LOCKS = "order locks"
    OFFSETS = "offsets"


class Verdict(StrEnum):
    """What a measured duration says of its bound."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    NOT_PRODUCED = "not produced"


@attrs.frozen
class Measured:
    """What a scenario showed."""

    seconds: float
    """How long it lasted; 0: it did not happen."""
    lasts: bool = False
    """It had no end within the run."""
    seen: str = ""
    """What else the trace tells, in a few words."""


@attrs.frozen(kw_only=True)
class Source:
    """One of them."""

    id: str
    """a1 and so on: the family, and a number in it."""
    family: Family
    title: str
    bound: str
    """From the timers, for people."""
    bound_s: float | None
    """None: it may last for ever."""
    scenario: Callable[[], Measured] | None = None
    absent: str = ""
    """Why there is no scenario."""


@attrs.frozen
class Row:
    """A source beside what was measured; ready for JSON."""

    id: str
    family: str
    title: str
    bound: str
    bound_s: float | None
    measured_s: float | None
    lasts: bool
    verdict: str
    remark: str


def judge(source: Source) -> Row:
    """Play a source and compare what it lasted with its bound."""
    if source.scenario is None:
        verdict, measured, remark = Verdict.NOT_PRODUCED, None, source.absent
    else:
        measured = source.scenario()
        verdict, remark = _verdict(source, measured), measured.seen
    return Row(
        source.id,
        source.family.value,
        source.title,
        source.bound,
        source.bound_s,
        None if measured is None else round(measured.seconds, 3),
        measured is not None and measured.lasts,
        verdict.value,
        remark,
    )


def _verdict(source: Source, measured: Measured) -> Verdict:
    if measured.seconds <= 0:
        return Verdict.NOT_PRODUCED
    if source.bound_s is None:
        return Verdict.INSIDE
    return (
        Verdict.INSIDE if not measured.lasts and measured.seconds <= source.bound_s + TOLERANCE_S else Verdict.OUTSIDE
    )
