"""Remedies: candidates of each mechanism, tried on the run itself. What helps is shown with its price."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from emulator.analysis.findings.cause_words import named
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.impacts.amounts import UNITS
from emulator.counterfactuals.harms import VIOLATIONS, Harm, NamedHarm
from emulator.counterfactuals.repetition import Repetition, Tables
from emulator.counterfactuals.run_variants import RunVariant, VariantResult, execute_variants
from emulator.spec import SpecError, to_dict
from emulator.why.candidates import Candidate, RunTerms, candidates, reachable

_HELPS_FROM = 0.2
_COSTS_FROM = 0.1
"""A harm that gets worse by a smaller part is no price: another order of the same frames makes as much."""
_PRICES_MAX = 2
_ACT_ID = "remedy"
_UNITS: Mapping[str, str] = {kind.value: unit.value for kind, unit in UNITS.items()}


@attrs.frozen
class Price:
    """Another harm that a remedy makes worse."""

    harm: Harm
    amount: float
    """With the remedy."""
    before: float
    """Without it."""
    unit: str


@attrs.frozen
class Tried:
    """A candidate that was tried."""

    candidate: Candidate
    amount: float
    """The harm with it."""
    prices: tuple[Price, ...]
    """What gets worse, the most first."""
    problem: str = ""
    """Why it could not be tried; empty: it was."""


@attrs.frozen
class HarmRemedies:
    """What was tried against a harm."""

    named: NamedHarm
    before: float
    """The harm in the repetition without any remedy."""
    helping: tuple[Tried, ...]
    """What makes it less by a fifth or more, what helps most first."""
    useless: tuple[Tried, ...]
    """What does not."""


@attrs.frozen
class Remedies:
    """What was tried against the harms of a run."""

    harms: tuple[HarmRemedies, ...]
    repetitions: int
    problem: str = ""
    """Why the run itself could not be repeated; empty: it was."""


def try_remedies(
    repetition: Repetition,
    harms: Sequence[NamedHarm],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Remedies:
    """Repeat a run with each candidate against its harms.

    A candidate that the scenario cannot have, or has already, is not tried.

    Args:
        repetition: of the run.
        harms: of the run.
        jobs: repetitions at the same time; None: as many as there are cores.
        progress: called with how many repetitions have ended, and how many there are.
    """
    wanted = {item.harm: candidates(item.harm[0], _terms(repetition, item)) for item in harms}
    changed = _distinct(repetition, dict.fromkeys(candidate for of_harm in wanted.values() for candidate in of_harm))
    variants = [RunVariant(repetition.tables), *map(RunVariant, changed.values())]
    whole, *ended = execute_variants(repetition, variants, jobs=jobs, progress=progress)
    if whole.problem:
        return Remedies((), len(variants), whole.problem)
    results = dict(zip(changed, ended, strict=True))
    found = []
    for item in harms:
        known = [candidate for candidate in wanted[item.harm] if candidate in results]
        attempts = [tried(candidate, item.harm, results[candidate], whole) for candidate in known]
        found.append(_of_harm(item, whole, attempts))
    return Remedies(tuple(found), len(variants))


def _terms(repetition: Repetition, item: NamedHarm) -> RunTerms:
    causes = dict.fromkeys(cause.id for cause in named(item.causes))
    faults = [table for table in repetition.tables.get("fault", ()) if table["id"] in causes]
    acts = [table for table in repetition.tables.get("admin", ()) if table["id"] in causes]
    run_for_ms = int(repetition.tables["scenario"]["run_for_ms"])
    longest_ms = max((min(table.get("for_ms", run_for_ms), run_for_ms - table["at_ms"]) for table in faults), default=0)
    pools = (item.harm[1].rpartition(" ")[2],) if item.harm[0] == SymptomKind.BUSY else ()
    return RunTerms(longest_ms, pools, tuple(acts), reachable(item.causes, repetition.tables))


def _distinct(repetition: Repetition, wanted: Mapping[Candidate, None]) -> dict[Candidate, Tables]:
    """The candidates that change the scenario, and the tables that they make of it."""
    known = {_canonical(repetition, repetition.tables)}
    found: dict[Candidate, Tables] = {}
    for candidate in wanted:
        tables = with_candidate(repetition.tables, candidate)
        try:
            text = _canonical(repetition, tables)
        except SpecError:
            continue
        if text not in known:
            known.add(text)
            found[candidate] = tables
    return found


def _canonical(repetition: Repetition, tables: Tables) -> str:
    return json.dumps(to_dict(repetition.scenario(tables)), sort_keys=True)


def with_candidate(tables: Tables, candidate: Candidate) -> Tables:
    """The tables of a scenario with the options, or the act, of a candidate."""
    changed = copy.deepcopy(tables)
    for setting in candidate.changes:
        for table in changed.get(setting.role, ()):
            table["options"] = {**table.get("options", {}), setting.option: setting.value}
    if candidate.act:
        act = {"id": _ACT_ID, "at_ms": candidate.at_ms, "do": candidate.act}
        changed["admin"] = [*changed.get("admin", ()), act]
    return changed


def tried(candidate: Candidate, harm: Harm, changed: VariantResult, whole: VariantResult) -> Tried:
    """What a candidate has done to a harm, and what it costs: rules that are broken only then, then what grows most.

    Args:
        candidate: that was tried.
        harm: against which.
        changed: the run with the candidate.
        whole: the run as it was.
    """
    prices = sorted(_prices(harm, changed, whole), key=_severity)
    return Tried(candidate, changed.amounts.get(harm, 0.0), tuple(prices[:_PRICES_MAX]), changed.problem)


def _severity(price: Price) -> tuple[bool, float, Harm]:
    breaks_a_rule = price.unit == VIOLATIONS and not price.before
    return not breaks_a_rule, price.before - price.amount, price.harm


def _prices(harm: Harm, changed: VariantResult, whole: VariantResult) -> Iterator[Price]:
    for other, amount in changed.amounts.items():
        before = whole.amounts.get(other, 0.0)
        if other != harm and amount > before * (1 + _COSTS_FROM) and amount - before >= 1:
            yield Price(other, amount, before, _UNITS.get(other[0], VIOLATIONS))


def _of_harm(item: NamedHarm, whole: VariantResult, attempts: Sequence[Tried]) -> HarmRemedies:
    before = whole.amounts.get(item.harm, 0.0)
    helping = [attempt for attempt in attempts if not attempt.problem and attempt.amount <= before * (1 - _HELPS_FROM)]
    helping.sort(key=lambda attempt: attempt.amount)
    return HarmRemedies(item, before, tuple(helping), tuple(attempt for attempt in attempts if attempt not in helping))
