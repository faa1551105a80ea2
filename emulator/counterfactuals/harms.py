"""The harms of a run that can be looked at again: its symptoms, and the invariants that it broke."""

from collections.abc import Iterator

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.oracles.catalogue import broken_invariants
from emulator.analysis.report import Report, most_severe

Harm = tuple[str, str]
"""What is counted, and of whom: kind and subject of an impact, or an invariant and an empty text."""
VIOLATIONS = "violations"
"""Unit of invariants that were broken."""


@attrs.frozen
class NamedHarm:
    """A harm of a run, and the causes that its trace names."""

    harm: Harm
    title: str
    """For people: `messages consumed again, order-processors`."""
    amount: float
    """In the run."""
    unit: str
    causes: tuple[CauseShare, ...]


def harms_of(report: Report) -> tuple[NamedHarm, ...]:
    """The most severe symptom of each kind, then each invariant that was broken, with the causes that are named."""
    return (*_of_symptoms(report), *_of_invariants(report))


def _of_symptoms(report: Report) -> Iterator[NamedHarm]:
    for symptom in most_severe(report):
        title = f"{symptom.kind}, {symptom.subject}" if symptom.subject else str(symptom.kind)
        harm = (str(symptom.kind), symptom.subject)
        yield NamedHarm(harm, title, symptom.amount, symptom.unit, symptom.causes)


def _of_invariants(report: Report) -> Iterator[NamedHarm]:
    for broken in broken_invariants(report):
        title, amount = f"{broken.oracle.id}, {broken.oracle.title}", float(len(broken.violations))
        yield NamedHarm((broken.oracle.id, ""), title, amount, VIOLATIONS, broken.causes)
