"""`rmqemu compare` of a campaign or a dataset: a table of what each variant changes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.base.amounts import Amounts, heading_with_unit
from emulator.base.printing import print_json, print_line
from emulator.base.rich_texts import Console, Text, TextTable
from emulator.campaign.compared import HEADINGS, VariantComparison, compare_variants, variant_pairs
from emulator.campaign.crossed import crossed
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError, without_digest
from emulator.campaign.variant_runs import LandedVariants, VariantRuns
from emulator.cli.compare_crossed import draw_crossed, print_crossed
from emulator.cli.judging import Judging
from emulator.cli.terminal import complain, tables_console
from emulator.lake.filesystems import located
from emulator.lake.gold import gold_of
from emulator.lake.snapshot import Snapshot, open_dataset, read_snapshot
from emulator.statistics import Comparison, PairVerdict

_STYLES = {PairVerdict.BETTER: "green", PairVerdict.WORSE: "red"}
_RIGHT = ("difference", "95 %", "effect", "better", "equal", "worse")
_CHANGES_MAX = 5
PICTURE = "conditions.html"
"""Name of the picture of a campaign with conditions, in its directory."""


def compare_campaign(path: str, names: Sequence[str], judging: Judging, *, as_json: bool) -> None:
    """Print what the variants of a campaign change; runs that have not been judged are judged first.

    Args:
        path: directory of the campaign.
        names: two variants, or none: the first one with each other one.
        judging: where runs are judged.
        as_json: as JSON.

    Raises:
        UserError: the campaign cannot be read, or has no such variants.
    """
    dataset = CampaignResults(path)
    dataset.require_own()
    if not dataset.directory.digest:
        complain(without_digest(dataset.directory))
    for damage in dataset.damages:
        complain(damage)
    if dataset.unjudged():
        dataset = _judged(dataset, judging)
    _compare(dataset, names, as_json=as_json, picture=dataset.directory.path / PICTURE)


def _judged(dataset: CampaignResults, judging: Judging) -> CampaignResults:
    """The campaign when the runs that it has left have been judged, if they have landed and none is being executed."""
    directory, left = dataset.directory, dataset.unjudged()
    uri = directory.dataset_uri
    landed = {} if uri is None else (read_snapshot(located(uri)) or Snapshot()).runs
    waiting = [item for item in left if item.case.name in landed]
    if not waiting:
        complain(f"{len(left):,} runs have not been judged: the command that executed them judges them")
        return dataset
    try:
        with directory.being_executed():
            complain(f"{len(waiting):,} runs have not been judged: they are judged first")
            judging.write_gold(str(uri))
    except CampaignError as error:
        complain(f"{len(left):,} runs have not been judged: {error}")
    return CampaignResults(directory.path)


def compare_dataset(uri: str, names: Sequence[str], judging: Judging, *, as_json: bool) -> None:
    """Print what the variants of a dataset change; runs that have not been judged are judged first, into its gold.

    Args:
        uri: of the dataset.
        names: two variants, or none: the first one with each other one.
        judging: where runs are judged.
        as_json: as JSON.

    Raises:
        UserError: the dataset cannot be read or judged, or has no such variants.
    """
    dataset = open_dataset(uri)
    gold = gold_of(dataset.location)
    variants = LandedVariants(dataset, gold, names)
    variant_pairs(variants, names)  # what cannot be compared is not judged
    lacking = gold.lacks(dataset.snapshot.runs)
    if lacking:
        complain(f"{len(lacking):,} of {len(dataset.runs):,} runs have not been judged: they are judged first")
        judging.write_gold(uri)
        variants = LandedVariants(dataset, gold_of(dataset.location), names)
    if variants.others:
        complain(f"{variants.others:,} runs without a variant are left out")
    _compare(variants, names, as_json=as_json)


def _compare(runs: VariantRuns, names: Sequence[str], *, as_json: bool, picture: Path | None = None) -> None:
    if runs.conditions and not names:
        _compare_crossed(runs, as_json=as_json, picture=picture)
        return
    found = compare_variants(runs, names)
    if as_json:
        print_json(json_text([element.plain() for element in found]))
        return
    console = tables_console()
    for item in found:
        console.print(item.headline, soft_wrap=True, highlight=False)
    for item in found:
        console.print()
        print_variants(item, console)


def json_text(value: Any) -> str:
    """JSON, in which what is not known is null: other programs cannot read NaN."""
    return json.dumps(_with_nulls(value), indent=1, allow_nan=False)


def _with_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_nulls(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compare_crossed(runs: VariantRuns, *, as_json: bool, picture: Path | None) -> None:
    found = crossed(runs)
    if as_json:
        print_json(json_text(found.plain()))
        return
    console = tables_console()
    for line in found.headline:
        console.print(line, soft_wrap=True, highlight=False)
    console.print()
    print_crossed(found, console)
    if picture is not None:
        print_line()
        print_line(f"picture: {draw_crossed(found, picture, picture.parent.name)}")


def print_variants(found: VariantComparison, console: Console) -> None:
    """Print what a variant changes: of the scenario, in each measure, in both verdicts, and in one sentence."""

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, soft_wrap=True, highlight=False)

    say(f"{found.b} against {found.a}", "bold")
    for change in found.changes[:_CHANGES_MAX]:
        say(f"  {change.words(found.a, found.b)}")
    if len(found.changes) > _CHANGES_MAX:
        say(f"  and {len(found.changes) - _CHANGES_MAX} more changes of the scenario")
    say("")
    if found.measures:
        console.print(_table(found))
    if found.zero:
        say(f"{len(found.zero)} measures are 0 in all runs: {', '.join(HEADINGS[name] for name in found.zero)}", "dim")
    for word, counts in (("invalid", found.counts.invalid), ("paging", found.counts.paging)):
        say(
            f"{word}: with {found.a} {counts.with_a} of {counts.seeds} seeds, with {found.b} {counts.with_b}, "
            f"with both {counts.with_both}"
        )
    say(found.sentence())


def _table(found: VariantComparison) -> TextTable:
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("per run", found.a, found.b, *_RIGHT, ""):
        table.add_column(column, justify="right" if column in (found.a, found.b, *_RIGHT) else "left", overflow="fold")
    for measure in found.measures:
        table.add_row(*_cells(measure))
    return table


def _cells(comparison: Comparison) -> tuple[str | Text, ...]:
    difference = comparison.difference
    amounts = Amounts(comparison.measure, (comparison.mean_a, comparison.mean_b))
    apart = Amounts(comparison.measure, (difference.value, difference.low, difference.high))
    between = f"{apart.plain(difference.low)} to {apart.plain(difference.high)}" if difference.is_known else "unknown"
    seeds = (comparison.better_in, comparison.equal_in, comparison.worse_in)
    style = _STYLES.get(comparison.verdict, "dim")
    return (
        heading_with_unit(HEADINGS[comparison.measure], comparison.measure),
        amounts.plain(comparison.mean_a),
        amounts.plain(comparison.mean_b),
        apart.plain(difference.value),
        between,
        f"{comparison.effect_size:+.2f}",
        *(f"{count:,}" for count in seeds),
        Text(comparison.verdict, style),
    )
