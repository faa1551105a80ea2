"""The end of `rmqemu campaign`: a row per variant, the invariants that were broken, and the worst seeds."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType

from emulator.analysis.oracles.catalogue import TITLES
from emulator.analysis.report import RulesVerdict, Service
from emulator.analysis.run_measures import MEASURES, Measure
from emulator.base.amounts import Amounts, heading_with_unit, unit_of
from emulator.base.rich_texts import Text, TextTable
from emulator.campaign.dataset import OUTCOMES, CampaignResults
from emulator.campaign.directory import TABLES
from emulator.campaign.execution import service_tally, tally
from emulator.campaign.junit import JUNIT_FILE
from emulator.campaign.measured import (
    by_variant,
    means,
    measures_of_run,
    severe_symptom,
    severity,
    times_broken,
    worst_first,
)
from emulator.campaign.results import WORDS, CaseResult
from emulator.campaign.shrunk import failure_of
from emulator.cli.terminal import NAME

_COLUMNS = ("active_overlap_s", "orphan_s", "stalled_s", "duplicates", "lost", "pause_longest_s")
"""The measures that most people decide by; those that are 0 in all runs are left out."""
_SHOWN_FAILURES = 3
_STYLES = {"valid": "green", "invalid": "red", "crashed": "magenta", "hung": "magenta"}
_SERVICE_STYLES = {Service.CALM: "green", Service.DEGRADED: "yellow", Service.PAGING: "bold red"}


def summary(every: Sequence[CaseResult]) -> RenderableType:
    """The table of variants: both verdicts and means of measures; below it the invariants that were broken, if any."""
    parts: list[RenderableType] = [_variants(every)]
    if times_broken(every):
        parts += ["", Text("Runs that broke an invariant", "bold"), _broken(every)]
    return Group(*parts)


def next_steps(dataset: CampaignResults, every: Sequence[CaseResult]) -> list[str]:
    """The worst seeds of both verdicts with the commands that show them, and where to read more."""
    directory = dataset.directory
    failures = worst_first(case_result for case_result in every if case_result.verdict is not RulesVerdict.VALID)
    lines = [""]
    for case_result in failures[:_SHOWN_FAILURES]:
        reason = re.sub(r"\s+", " ", case_result.reasons[0]) if case_result.reasons else ""
        lines.append(f"{case_result.case.variant}, seed {case_result.case.seed}: {case_result.word}: {reason}")
        if case_result.trace and case_result.ended:
            lines.append(f"  its tables      {NAME} analyze {shlex.quote(str(directory.path / case_result.trace))}")
        lines.append(f"  run it again    {directory.command(case_result.case)}")
    clear = [case_result.case for case_result in failures if failure_of(case_result) is not None]
    if clear:
        case = shlex.quote(f"{clear[0].variant}:{clear[0].seed}")
        lines.append(f"  make it small   {NAME} shrink {shlex.quote(str(directory.path))} {case}")
    if len(failures) > _SHOWN_FAILURES:
        lines.append(f"and {len(failures) - _SHOWN_FAILURES:,} more: {directory.path / JUNIT_FILE} has all of them")
    if not failures:
        lines += _worst_of_the_valid(dataset, every)
    lines += [line for line in _paging(dataset, every) if line not in lines]  # a command stands there once
    if len(directory.variants) > 1:
        lines.append(f"what the variants change   {NAME} compare {shlex.quote(str(directory.path))}")
    lines.append(f"one row per run, for other programs   {directory.path / TABLES / OUTCOMES}.parquet")
    lines.append(f'from Python   emulator.traces("{directory.path}").runs()')
    return lines


def _amount(measure: Measure, value: float) -> str:
    """The value of one run, for people: `12.3 s`, `7`."""
    return Amounts(measure.name, (value,)).full(value) if unit_of(measure.name) else f"{value:,.0f}"


def _variants(every: Sequence[CaseResult]) -> TextTable:
    counts, services, runs = tally(every), service_tally(every), by_variant(every)
    judged = tuple(Service) if any(count.total() for count in services.values()) else ()
    found = {variant: means(mine) for variant, mine in runs.items()}
    words = [word for word in WORDS if any(count[word] for count in counts.values())]
    known = {measure.name: measure for measure in MEASURES}
    measures = [known[name] for name in _COLUMNS if any(mean[name] > 0 for mean in found.values())]
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("variant", overflow="fold")
    for heading in (
        "runs",
        *words,
        *judged,
        *(heading_with_unit(item.heading, item.name) for item in measures),
        "CPU s",
    ):
        table.add_column(heading, justify="right")
    for variant, mine in runs.items():
        count = counts[variant]
        numbers = [Text(f"{count[word]:,}", _STYLES.get(word, "default")) for word in words]
        numbers += [Text(f"{services[variant][item]:,}", _SERVICE_STYLES[item]) for item in judged]
        amounts = [_shown(item, variant, found) for item in measures]
        cpu_s = sum(case_result.cpu_s for case_result in mine)
        table.add_row(variant, f"{len(mine):,}", *numbers, *amounts, f"{cpu_s:,.1f}")
    return table


def _shown(measure: Measure, variant: str, found: Mapping[str, Mapping[str, float]]) -> str:
    """The mean of a measure in a variant, with as many decimals as those of the other variants."""
    value = found[variant][measure.name]
    of_all = [means_of[measure.name] for means_of in found.values()]
    return "" if math.isnan(value) else Amounts(measure.name, of_all).plain(value)


def _broken(every: Sequence[CaseResult]) -> RenderableType:
    of_variant = {variant: times_broken(mine) for variant, mine in by_variant(every).items()}
    names = [name for name in TITLES if any(times[name] for times in of_variant.values())]
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("variant", overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    for variant, times in of_variant.items():
        table.add_row(variant, *(f"{times[name]:,}" for name in names))
    return Group(table, *(Text(f"{name} {TITLES[name]}", "dim") for name in names))


def _paging(dataset: CampaignResults, every: Sequence[CaseResult]) -> Iterator[str]:
    """Of each variant how many valid runs page, and the most severe symptom of them."""
    for variant, mine in by_variant(every).items():
        paging = [item for item in mine if item.service is Service.PAGING and item.verdict is RulesVerdict.VALID]
        if not paging:
            continue
        worst = max(paging, key=severity)
        counts = f"{len(paging):,} of {len(mine):,} runs are valid and would page somebody"
        yield f"{variant}: {counts}; the most severe symptom, seed {worst.case.seed}: {severe_symptom(worst)}"
        yield f"  run it again    {dataset.directory.command(worst.case)}"


def _worst_of_the_valid(dataset: CampaignResults, every: Sequence[CaseResult]) -> Iterator[str]:
    for variant, mine in by_variant(every).items():
        worst = worst_first(mine)[0]
        found = measures_of_run(worst)
        known = [item for item in MEASURES if item.name in _COLUMNS and found[item.name] > 0]
        text = ", ".join(f"{item.heading} {_amount(item, found[item.name])}" for item in known)
        if text:
            yield f"{variant}, worst seed {worst.case.seed}: {text}"
            yield f"  run it again    {dataset.directory.command(worst.case)}"
