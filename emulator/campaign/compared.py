"""What one variant changes against another, measure by measure, over the seeds that both have."""

import math
from collections.abc import Sequence
from typing import Any

import attrs

from emulator.analysis.run_measures import MEASURES, Measure
from emulator.base.text import nearest
from emulator.campaign.directory import CampaignError
from emulator.campaign.headline import Counts, counts_of, headline_of, pairs_of
from emulator.campaign.measured import by_variant, frame_of
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.variant_runs import VariantRuns
from emulator.spec.reading.differences import ScenarioDifference
from emulator.statistics import Comparison, PairVerdict, compare

_ORDER = (PairVerdict.BETTER, PairVerdict.WORSE, PairVerdict.UNKNOWN, PairVerdict.SAME)
HEADINGS = {measure.name: measure.heading for measure in MEASURES}


@attrs.frozen
class VariantComparison:
    """What variant b changes against variant a."""

    a: str
    b: str
    changes: tuple[ScenarioDifference, ...]
    """Of the scenario."""
    measures: tuple[Comparison, ...]
    """Of those that are not 0 in all runs; what matters most comes first."""
    zero: tuple[str, ...]
    """Names of the measures that are 0 in all runs of both."""
    counts: Counts
    headline: str
    """What matters most of all this, in one line."""

    def sentence(self) -> str:
        """What b changes, for people."""
        claimed = [measure for measure in self.measures if measure.verdict in (PairVerdict.BETTER, PairVerdict.WORSE)]
        if not claimed:
            return self._without_claim()
        first = claimed[0]
        rest = [
            f"{verdict}, too: {names}" if verdict is first.verdict else f"{verdict}: {names}"
            for verdict in (PairVerdict.BETTER, PairVerdict.WORSE)
            if (names := ", ".join(HEADINGS[item.measure] for item in claimed[1:] if item.verdict is verdict))
        ]
        return ". ".join((first.sentence(), *(text[0].upper() + text[1:] for text in rest)))

    def _without_claim(self) -> str:
        unknown = [measure for measure in self.measures if measure.verdict is PairVerdict.UNKNOWN]
        if unknown:
            return unknown[0].sentence()
        if not self.counts.invalid.seeds:
            return f"Cannot decide: no seed came to its end with both {self.b} and {self.a}"
        return f"{self.b} changes no measure in any of {self.counts.invalid.seeds:,} seeds"

    def plain(self) -> dict[str, Any]:
        """The comparison as plain values for JSON; what cannot be known is None."""
        rows = [{name: _reported(value) for name, value in measure.row().items()} for measure in self.measures]
        return {
            "a": self.a,
            "b": self.b,
            "headline": self.headline,
            "changes": [change.words(self.a, self.b) for change in self.changes],
            "measures": rows,
            "zero": list(self.zero),
            "invalid": attrs.asdict(self.counts.invalid),
            "paging": attrs.asdict(self.counts.paging),
            "storms": attrs.asdict(self.counts.storms),
            "sentence": self.sentence(),
        }


def compare_variants(variant_runs: VariantRuns, names: Sequence[str] = ()) -> tuple[VariantComparison, ...]:
    """Compare variants of a campaign, or of a dataset.

    Args:
        variant_runs: those of a campaign, also of one that is under way, or of a dataset.
        names: two variants, a and b; empty: the first one, which is the baseline, with each other one.

    Raises:
        CampaignError: there are no such variants, or no runs of them.
    """
    pairs = variant_pairs(variant_runs, names)
    runs = by_variant(variant_runs.case_results())
    return tuple(_compared(variant_runs, a, b, runs[a], runs[b]) for a, b in pairs)


def variant_pairs(variant_runs: VariantRuns, names: Sequence[str]) -> list[tuple[str, str]]:
    """The variants that are compared: those of two names; without them the first one with each other one.

    Raises:
        CampaignError: there are no such variants, or there is one alone.
    """
    known, place = list(variant_runs.variants), variant_runs.place
    for name in names:
        if name not in known:
            raise CampaignError(f"{place}: {nearest('variant', name, known)}")
    if names and (len(names) != 2 or names[0] == names[1]):
        raise CampaignError(f"expected two variants of {place}, not {' '.join(names)}")
    if len(known) < 2:
        raise CampaignError(
            f"{place} has one variant, {known[0]}: expected two to compare, so add a [[variant]] to the "
            "campaign file and give the campaign another name"
        )
    return [(names[0], names[1])] if names else [(known[0], other) for other in known[1:]]


def _compared(
    variant_runs: VariantRuns, a: str, b: str, of_a: list[CaseResult], of_b: list[CaseResult]
) -> VariantComparison:
    there = [item for item in (*of_a, *of_b) if item.outcome is not Outcome.MISSING]
    for name in (a, b):
        if not any(item.case.variant == name for item in there):
            raise CampaignError(f"{variant_runs.place}: no run of {name} has been run yet")
    frame = frame_of(there)
    zero = [item.name for item in MEASURES if (frame[item.name].fillna(0) == 0).all()]
    found = [_measured(frame, item, a, b) for item in MEASURES if item.name not in zero]
    counts = counts_of(pairs_of({item.case.seed: item for item in of_a}, {item.case.seed: item for item in of_b}))
    headline = headline_of((a, b), found, counts, variant_runs)
    return VariantComparison(a, b, variant_runs.changes(a, b), tuple(_in_order(found)), tuple(zero), counts, headline)


def _measured(frame: Any, measure: Measure, a: str, b: str) -> Comparison:
    return compare(frame, measure.name, a, b, phrase=measure.phrase)


def _in_order(found: Sequence[Comparison]) -> list[Comparison]:
    """Claims first, those that hold for most seeds before others; of equal ones as `MEASURES` has them."""
    return sorted(found, key=lambda item: (_ORDER.index(item.verdict), -abs(item.effect_size) if item.pairs else 0.0))


def _reported(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
