"""Variants in several conditions: what each variant changes in each condition, and in all of them together."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from emulator.analysis.run_measures import MEASURES
from emulator.base.text import nearest
from emulator.campaign.campaign import BETWEEN
from emulator.campaign.compared import compare_variants
from emulator.campaign.directory import CampaignError
from emulator.campaign.headline import counts_of, headline_of, pairs_of
from emulator.campaign.measured import frame_of
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.variant_runs import VariantRuns
from emulator.statistics import Comparison, Figure, compare, estimate

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""The condition that stands for the mean over all conditions of a seed."""


@attrs.frozen
class CrossedCell:
    """One variant in one condition."""

    variant: str
    condition: str
    mean: Figure
    """Per run."""
    against: Comparison | None
    """With the first variant in the same condition, paired by seed; None: it is the first variant."""


@attrs.frozen
class CrossedMeasure:
    """One measure of all variants in all conditions."""

    measure: str
    cells: Mapping[tuple[str, str], CrossedCell]
    """By variant and condition; a variant that was not run in a condition is missing."""


@attrs.frozen
class Crossed:
    """All variants in all conditions."""

    variants: tuple[str, ...]
    """The first one is what the others are compared with."""
    conditions: tuple[str, ...]
    """The last one is `ALL`."""
    seeds: int
    measures: tuple[CrossedMeasure, ...]
    """Of those that are not 0 in all runs."""
    headline: tuple[str, ...]
    """For each variant but the first what it changes that matters most, over all conditions."""

    def frame(self, measure: str) -> "pd.DataFrame":
        """One measure as a pandas frame: a row for each variant in each condition.

        Raises:
            CampaignError: there is no such measure, or it is 0 in all runs.
        """
        import pandas as pd  # noqa: PLC0415 - takes long to import, and the command needs none

        found = {item.measure: item for item in self.measures}
        if measure not in found:
            raise CampaignError(nearest("measure", measure, list(found)))
        rows = [
            {
                "condition": cell.condition,
                "variant": cell.variant,
                **cell.mean.columns("mean"),
                **(Figure(0.0) if cell.against is None else cell.against.difference).columns("difference"),
                "verdict": "" if cell.against is None else cell.against.verdict.value,
            }
            for cell in found[measure].cells.values()
        ]
        return pd.DataFrame(rows)

    def plain(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "variants": list(self.variants),
            "conditions": list(self.conditions),
            "seeds": self.seeds,
            "headline": list(self.headline),
            "measures": {
                measure.measure: [_plain(cell) for cell in measure.cells.values()] for measure in self.measures
            },
        }


def crossed(variant_runs: VariantRuns, measures: Sequence[str] = ()) -> Crossed:
    """Compare the variants of a campaign or a dataset with conditions.

    Args:
        variant_runs: those of a campaign, also of one that is under way, or of a dataset.
        measures: names; empty: all that are not 0 in all runs.

    Raises:
        CampaignError: there are no conditions, or nothing has been run yet.
    """
    conditions_of = variant_runs.conditions
    if not conditions_of:
        raise CampaignError(f"{variant_runs.place} has no conditions: its variants are compared as they are")
    # In the order of the variants: the first is what the others are compared with.
    pairs = {
        name: (_option(name, conditions_of[name]), conditions_of[name])
        for name in variant_runs.variants
        if name in conditions_of
    }
    every = variant_runs.case_results()
    case_result = [item for item in every if item.outcome is not Outcome.MISSING and item.case.variant in pairs]
    if not case_result:
        raise CampaignError(f"{variant_runs.place}: no case has been run yet")
    frame = frame_of(case_result)
    frame["condition"] = [pairs[name][1] for name in frame["variant"]]
    frame["variant"] = [pairs[name][0] for name in frame["variant"]]
    names = [item.name for item in MEASURES if item.name in measures or not measures]
    wanted = [name for name in names if measures or not (frame[name].fillna(0) == 0).all()]
    variants = tuple(dict.fromkeys(option for option, _ in pairs.values()))
    conditions = tuple(dict.fromkeys(condition for _, condition in pairs.values()))
    found = tuple(CrossedMeasure(name, _cells(frame, name, variants, conditions)) for name in wanted)
    headline = tuple(
        _headline(variant_runs, found, (variants[0], variant), pairs, case_result) for variant in variants[1:]
    )
    return Crossed(variants, (*conditions, ALL), int(frame["seed"].nunique()), found, headline)


def headlines(variant_runs: VariantRuns) -> tuple[str, ...]:
    """What each variant changes against the first one that matters most, a line each; of any campaign.

    Raises:
        CampaignError: there is one variant only, or nothing has been run yet.
    """
    if variant_runs.conditions:
        return crossed(variant_runs).headline
    return tuple(compare_variant.headline for compare_variant in compare_variants(variant_runs))


def _headline(
    variant_runs: VariantRuns,
    found: Sequence[CrossedMeasure],
    names: tuple[str, str],
    pairs: Mapping[str, tuple[str, str]],
    every: Sequence[CaseResult],
) -> str:
    """What one variant changes over all conditions.

    Args:
        variant_runs: of all variants.
        found: the measures of all variants.
        names: of the first variant, and of this one.
        pairs: mapping name of a case's variant -> variant and condition.
        every: what became of all cases.
    """
    cells = [item.cells[names[1], ALL].against for item in found if (names[1], ALL) in item.cells]
    of_each: list[dict[tuple[int, str], CaseResult]] = [{}, {}]
    for case_result in every:
        option, condition = pairs[case_result.case.variant]
        if option in names:
            of_each[names.index(option)][case_result.case.seed, condition] = case_result
    counts = counts_of(pairs_of(*of_each))
    return headline_of(names, [cell for cell in cells if cell is not None], counts, variant_runs)


def _option(name: str, condition: str) -> str:
    """The variant without its condition."""
    return name.removesuffix(f"{BETWEEN}{condition}")


def _cells(
    frame: Any, measure: str, variants: tuple[str, ...], conditions: tuple[str, ...]
) -> dict[tuple[str, str], CrossedCell]:
    parts = {condition: frame[frame["condition"] == condition] for condition in conditions}
    # A seed counts only where it has come to its end in every condition.
    whole = frame[["variant", "seed", measure]].groupby(["variant", "seed"], sort=False)[measure]
    of_all = whole.mean()[whole.count() == len(conditions)].reset_index()
    parts[ALL] = of_all
    cells = {}
    for condition, part in parts.items():
        means = {item.variant: item for item in estimate(part, measure)} if len(part) else {}
        for variant in variants:
            if variant not in means:
                continue
            first = variants[0]
            has_pair = variant != first and first in means
            against = compare(part, measure, first, variant) if has_pair else None
            cells[variant, condition] = CrossedCell(variant, condition, means[variant].mean, against)
    return cells


def _plain(cell: CrossedCell) -> dict[str, Any]:
    reported: dict[str, Any] = {"variant": cell.variant, "condition": cell.condition, "mean": attrs.asdict(cell.mean)}
    if cell.against is not None:
        reported |= {"difference": attrs.asdict(cell.against.difference), "verdict": cell.against.verdict.value}
    return reported
