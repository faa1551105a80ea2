"""Variants in several conditions: what each variant changes in each condition, and in all of them together."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from emulator.analysis.run_measures import MEASURES
from emulator.base.text import nearest
from emulator.campaign.campaign import BETWEEN
from emulator.campaign.dataset import Dataset
from emulator.campaign.directory import CampaignDirectory, CampaignError
from emulator.campaign.measured import frame_of
from emulator.campaign.played import Outcome
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
    beside: Comparison | None
    """With the first variant in the same condition, paired by seed; None: it is the first variant."""


@attrs.frozen
class CrossedMeasure:
    """One measure of all variants in all conditions."""

    measure: str
    cells: Mapping[tuple[str, str], CrossedCell]
    """By variant and condition; a variant that was not played in a condition is missing."""


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

    def frame(self, measure: str) -> "pd.DataFrame":
        """One measure as a pandas frame: a row for each variant in each condition.

        Raises:
            CampaignError: there is no such measure, or it is 0 in all runs.
        """
        import pandas as pd  # noqa: PLC0415 - takes long to import, and the command needs none

        found = {one.measure: one for one in self.measures}
        if measure not in found:
            raise CampaignError(nearest("measure", measure, list(found)))
        rows = [
            {
                "condition": cell.condition,
                "variant": cell.variant,
                **cell.mean.columns("mean"),
                **(Figure(0.0) if cell.beside is None else cell.beside.difference).columns("difference"),
                "verdict": "" if cell.beside is None else cell.beside.verdict.value,
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
            "measures": {one.measure: [_plain(cell) for cell in one.cells.values()] for one in self.measures},
        }


def crossed(dataset: Dataset, measures: Sequence[str] = ()) -> Crossed:
    """Compare the variants of a campaign with conditions.

    Args:
        dataset: of the campaign, also of one that is under way.
        measures: names; empty: all that are not 0 in all runs.

    Raises:
        CampaignError: the campaign has no conditions, or nothing has been played yet.
    """
    directory = dataset.directory
    pairs = {name: (_option(directory, name), condition) for name, condition in directory.conditions.items()}
    if not pairs:
        raise CampaignError(f"{directory.path} has no conditions: its variants are compared as they are")
    played = [one for one in dataset.played() if one.outcome is not Outcome.MISSING]
    if not played:
        raise CampaignError(f"{directory.path}: no run has been played yet")
    frame = frame_of(played)
    frame["condition"] = [pairs[name][1] for name in frame["variant"]]
    frame["variant"] = [pairs[name][0] for name in frame["variant"]]
    names = [one.name for one in MEASURES if one.name in measures or not measures]
    wanted = [name for name in names if measures or not (frame[name].fillna(0) == 0).all()]
    variants = tuple(dict.fromkeys(option for option, _ in pairs.values()))
    conditions = tuple(dict.fromkeys(condition for _, condition in pairs.values()))
    found = tuple(CrossedMeasure(name, _cells(frame, name, variants, conditions)) for name in wanted)
    return Crossed(variants, (*conditions, ALL), int(frame["seed"].nunique()), found)


def _option(directory: CampaignDirectory, name: str) -> str:
    """The variant without its condition."""
    return name.removesuffix(f"{BETWEEN}{directory.conditions[name]}")


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
        means = {one.variant: one for one in estimate(part, measure)} if len(part) else {}
        for variant in variants:
            if variant not in means:
                continue
            first = variants[0]
            has_pair = variant != first and first in means
            beside = compare(part, measure, first, variant) if has_pair else None
            cells[variant, condition] = CrossedCell(variant, condition, means[variant].mean, beside)
    return cells


def _plain(cell: CrossedCell) -> dict[str, Any]:
    told: dict[str, Any] = {"variant": cell.variant, "condition": cell.condition, "mean": attrs.asdict(cell.mean)}
    if cell.beside is not None:
        told |= {"difference": attrs.asdict(cell.beside.difference), "verdict": cell.beside.verdict.value}
    return told
