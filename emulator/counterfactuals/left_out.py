"""Causes confirmed by leaving them out: a harm with all disturbances, without each cause, with it alone, with none."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.cause_words import named
from emulator.counterfactuals.harms import NamedHarm
from emulator.counterfactuals.repetition import Repetition
from emulator.counterfactuals.run_variants import RunVariant, VariantResult, execute_variants
from emulator.trace.schema import TraceLevel

_GONE_FROM = 0.95
_LESS_FROM = 0.05
"""A change by a smaller part of the harm says nothing; causes with a smaller share are not named either."""


class LeftOutOutcome(StrEnum):
    """What becomes of a harm without a cause."""

    GONE = "gone"
    LESS = "less"
    REMAINS = "remains"
    MORE = "more"
    NOT_TRIED = "not tried"


@attrs.frozen
class LeftOut:
    """A cause that was left out."""

    cause: CauseShare
    outcome: LeftOutOutcome
    without: float
    """The harm without it."""
    alone: float
    """The harm with it alone."""
    problem: str = ""
    """Why it could not be left out; empty: it was."""


@attrs.frozen
class ConfirmedHarm:
    """A harm, with what became of it without each of its causes."""

    named: NamedHarm
    repeated: float
    """With all disturbances, in the repetition."""
    undisturbed: float
    """Without any disturbance."""
    left_out: tuple[LeftOut, ...]


@attrs.frozen
class Confirmation:
    """All harms of a run that were looked at."""

    repetition: Repetition
    is_same: bool
    """Whether the repetition has the same trace, row for row."""
    harms: tuple[ConfirmedHarm, ...]
    repetitions: int
    """How many times the run was repeated."""
    problem: str = ""
    """Why the run itself could not be repeated; empty: it was."""


def confirm(
    repetition: Repetition,
    harms: Sequence[NamedHarm],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Repeat a run as it was, without each named cause, with each alone, and without any disturbance.

    Args:
        repetition: of the run.
        harms: to look at.
        jobs: repetitions at the same time; None: as many as there are cores.
        progress: called with how many repetitions have ended, and how many there are.
    """
    every = repetition.disturbances()
    ids = list(dict.fromkeys(cause.id for item in harms for cause in named(item.causes) if cause.id in every))
    sets = [every, (), *(_without(every, name) for name in ids), *((name,) for name in ids)]
    retained = list(dict.fromkeys(sets))
    variants = [
        # The whole run has the level of the run, so that the traces can be compared.
        RunVariant(repetition.with_only(names), repetition.level if names == every else TraceLevel.FINDINGS)
        for names in retained
    ]
    results = dict(zip(retained, execute_variants(repetition, variants, jobs=jobs, progress=progress), strict=True))
    whole = results[every]
    return Confirmation(
        repetition,
        bool(repetition.digest) and whole.digest == repetition.digest,
        () if whole.problem else tuple(_confirmed(item, every, results) for item in harms),
        len(variants),
        whole.problem,
    )


_Ids = tuple[str, ...]


def _without(every: _Ids, name: str) -> _Ids:
    return tuple(other for other in every if other != name)


def _confirmed(item: NamedHarm, every: _Ids, results: Mapping[_Ids, VariantResult]) -> ConfirmedHarm:
    def amount(retained: _Ids) -> float:
        return results[retained].amounts.get(item.harm, 0.0)

    whole, undisturbed = amount(every), amount(())

    def left_out(cause: CauseShare) -> LeftOut:
        if cause.id not in every:
            return LeftOut(cause, LeftOutOutcome.NOT_TRIED, 0.0, 0.0, "it is no fault and no act that can be left out")
        without, alone = _without(every, cause.id), (cause.id,)
        if problem := results[without].problem or results[alone].problem:
            return LeftOut(cause, LeftOutOutcome.NOT_TRIED, 0.0, 0.0, problem)
        outcome = outcome_of(whole, amount(without), undisturbed)
        return LeftOut(cause, outcome, amount(without), amount(alone))

    return ConfirmedHarm(item, whole, undisturbed, tuple(map(left_out, named(item.causes))))


def outcome_of(whole: float, without: float, undisturbed: float) -> LeftOutOutcome:
    """What becomes of a harm without a cause.

    Args:
        whole: the harm with all disturbances.
        without: without the cause.
        undisturbed: without any disturbance.
    """
    above = whole - undisturbed
    if above <= 0:
        return LeftOutOutcome.REMAINS if without >= whole * (1 - _LESS_FROM) else LeftOutOutcome.LESS
    share = (whole - without) / above
    if share >= _GONE_FROM:
        return LeftOutOutcome.GONE
    if share >= _LESS_FROM:
        return LeftOutOutcome.LESS
    return LeftOutOutcome.REMAINS if share > -_LESS_FROM else LeftOutOutcome.MORE
