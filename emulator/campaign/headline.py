"""The headline of a campaign: what each variant changes that matters most, how sure that is, and request storms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.report import RulesVerdict, Service
from emulator.analysis.run_measures import IMPACT_ORDER, MEASURES, is_felt, is_notable
from emulator.base.amounts import counted
from emulator.campaign.measured import runs_with
from emulator.campaign.results import CaseResult
from emulator.campaign.variant_runs import VariantRuns
from emulator.statistics import SEEDS_MIN, Comparison, PairVerdict, chance_of_sign

_PHRASES = {measure.name: measure.phrase for measure in MEASURES}
_HEADINGS = {measure.name: measure.heading for measure in MEASURES}
_MEASURES_MAX = 3
_CHANCE_MAX = 0.05
_Key = TypeVar("_Key")
_CLAIMS = (PairVerdict.BETTER, PairVerdict.WORSE)


@attrs.frozen
class PairCounts:
    """In how many pairs of runs with one seed something is true of the run of each variant."""

    seeds: int
    """Seeds with which both came to their end; with conditions, seeds times conditions."""
    with_a: int
    with_b: int
    with_both: int


@attrs.frozen
class Counts:
    """What the runs of two variants have that is no measure."""

    invalid: PairCounts
    paging: PairCounts
    storms: PairCounts
    """Request storms."""
    stormy: CaseResult | None
    """A run with a storm, if possible one whose trace is stored; None: there is no storm."""


Paired = Sequence[tuple[CaseResult, CaseResult]]
"""Runs of a and b with one seed, in one condition, which both came to their end."""


def counts_of(pairs: Paired) -> Counts:
    """Count over pairs of runs."""
    stormy = [item for pair in pairs for item in pair if _is_stormy(item)]
    return Counts(
        _counted(pairs, [(_is_invalid(a), _is_invalid(b)) for a, b in pairs]),
        _counted(pairs, [(_is_paging(a), _is_paging(b)) for a, b in pairs]),
        _counted(pairs, [(_is_stormy(a), _is_stormy(b)) for a, b in pairs]),
        max(stormy, key=lambda item: bool(item.trace), default=None),
    )


def _counted(pairs: Paired, found: Sequence[tuple[bool, bool]]) -> PairCounts:
    return PairCounts(len(pairs), sum(a for a, _ in found), sum(b for _, b in found), sum(a and b for a, b in found))


def _is_invalid(case_result: CaseResult) -> bool:
    return case_result.verdict is RulesVerdict.INVALID


def _is_paging(case_result: CaseResult) -> bool:
    return case_result.service is Service.PAGING


def _is_stormy(case_result: CaseResult) -> bool:
    return bool(runs_with([case_result], SymptomKind.STORM))


def headline_of(names: tuple[str, str], measures: Sequence[Comparison], counts: Counts, runs: VariantRuns) -> str:
    """What variant b changes against variant a, in one line.

    Args:
        names: of a and b.
        measures: comparisons of them, in any order.
        counts: over the same runs.
        runs: of all variants.
    """
    by_name = {measure.measure: measure for measure in measures}
    in_order = [by_name[name] for name in IMPACT_ORDER if name in by_name]
    # What hardly differs comes last, however much it would matter.
    in_order.sort(key=lambda item: not is_notable(item.measure, item.mean_a, item.mean_b))
    sentences = (
        _measured(names, in_order, counts.invalid),
        *_verdicts(names, counts),
        *_storms(names, counts, runs),
    )
    return " ".join(f"{sentence}." for sentence in sentences)


def _measured(names: tuple[str, str], measures: Sequence[Comparison], invalid: PairCounts) -> str:
    """What b changes: better or worse, a trade of both, or what can be said so far."""
    a, b = names
    better, worse = ([item for item in measures if item.verdict is verdict] for verdict in _CLAIMS)
    losses = [*_breaks_more(names, invalid), *_claims([item for item in worse if _is_felt(item)])]
    if better and losses:
        return f"{b} is a trade against {a}. Better: {'; '.join(_claims(better))}. Worse: {'; '.join(losses)}"
    if claims := better or worse:
        claim = f"{b} is {claims[0].verdict} than {a}: {_claim(claims[0])}"
        return ". ".join((claim, *_others(claims[0], claims[1:])))
    if losses:
        return f"{b} is worse than {a}: {losses[0]}"
    return _undecided(names, measures, invalid.seeds)


def _undecided(names: tuple[str, str], measures: Sequence[Comparison], seeds: int) -> str:
    """What can be said while no measure differs beyond chance."""
    a, b = names
    if not seeds:
        return f"{b} against {a}: cannot decide, no seed came to its end with both"
    unknown = [
        measure
        for measure in measures
        if measure.verdict is PairVerdict.UNKNOWN and measure.better_in + measure.worse_in
    ]
    if not unknown:
        return f"{b} against {a}: no measure that matters differs in any of {counted(seeds, 'run')}"
    first = unknown[0]
    if first.pairs >= SEEDS_MIN:
        text = first.sentence()
        return f"{b} against {a}: {text[0].lower()}{text[1:]}"
    so_far = f"so far {_PHRASES[first.measure]} {first.by_how_much()}, better in {first.better_in} of {first.pairs}"
    lead = f"{b} against {a}: cannot decide with {counted(first.pairs, 'seed')}, {SEEDS_MIN} are needed; {so_far}"
    return ". ".join((lead, *_others(first, unknown[1:])))


def _claim(item: Comparison) -> str:
    """`queues had no owner 147 s less per run (95 %: 139 to 154), in 20 of 20 seeds`."""
    in_seeds = item.better_in if item.verdict is PairVerdict.BETTER else item.worse_in
    return f"{_PHRASES[item.measure]} {item.by_how_much()}, in {in_seeds} of {counted(item.pairs, 'seed')}"


def _is_felt(item: Comparison) -> bool:
    return is_felt(item.mean_a, item.mean_b)


def _claims(measures: Sequence[Comparison]) -> list[str]:
    """The first of them in words, and how many more there are."""
    more = len(measures) - _MEASURES_MAX
    return [*map(_claim, measures[:_MEASURES_MAX]), *([counted(more, "more measure")] if more > 0 else [])]


def _breaks_more(names: tuple[str, str], invalid: PairCounts) -> Iterator[str]:
    """That b breaks rules in more seeds than a beyond chance, if it does."""
    only_a, only_b = invalid.with_a - invalid.with_both, invalid.with_b - invalid.with_both
    if only_b > only_a and chance_of_sign(only_b, only_a + only_b) <= _CHANCE_MAX:
        yield f"it breaks rules in {only_b} of {counted(invalid.seeds, 'seed')} in which {names[0]} does not"


def _direction(comparison: Comparison) -> PairVerdict:
    """Which way most seeds go, where nothing is claimed yet."""
    if comparison.verdict in _CLAIMS:
        return comparison.verdict
    return PairVerdict.BETTER if comparison.better_in > comparison.worse_in else PairVerdict.WORSE


def _others(first: Comparison, measures: Sequence[Comparison]) -> Iterator[str]:
    """`Better, too: no owner, late p99`, `Worse: again`."""
    for verdict in _CLAIMS:
        of_it = [_HEADINGS[measure.measure] for measure in measures if _direction(measure) is verdict]
        more = len(of_it) - _MEASURES_MAX
        listed = ", ".join([*of_it[:_MEASURES_MAX], *([f"{more} more"] if more > 0 else [])])
        if listed:
            yield f"{verdict.capitalize()}{', too' if verdict is _direction(first) else ''}: {listed}"


def _verdicts(names: tuple[str, str], counts: Counts) -> Iterator[str]:
    """How many runs are invalid, and how many page: where that differs, or where all of them page."""
    for word, found in (("invalid", counts.invalid), ("paging", counts.paging)):
        text = _compared(names, found)
        if text and (found.with_a != found.with_b or found.with_a == found.seeds):
            yield f"{word.capitalize()} {text}"


def _compared(names: tuple[str, str], found: PairCounts) -> str:
    """`in 20 of 20 runs with both`; `in 3 of 20 runs with b, in 0 with a`; empty where it is in none."""
    a, b = names
    if not found.with_a and not found.with_b:
        return ""
    if found.with_a == found.with_b == found.with_both:
        return f"in {found.with_a:,} of {counted(found.seeds, 'run')} with both"
    return f"in {found.with_b:,} of {counted(found.seeds, 'run')} with {b}, in {found.with_a:,} with {a}"


def _storms(names: tuple[str, str], counts: Counts, runs: VariantRuns) -> Iterator[str]:
    text = _compared(names, counts.storms)
    if text and counts.stormy is not None:
        command = runs.storm_command(counts.stormy)
        yield f"A request storm {text}{f' ({command})' if command else ''}"


def pairs_of(of_a: Mapping[_Key, CaseResult], of_b: Mapping[_Key, CaseResult]) -> Paired:
    """The runs of two variants that belong together, came to their end and were judged.

    Args:
        of_a: mapping seed, or seed and condition -> run.
        of_b: as above.
    """
    return [(a, of_b[key]) for key, a in of_a.items() if key in of_b and a.is_judged and of_b[key].is_judged]
