"""The report of a campaign: how each measure is distributed over the seeds of each variant, and the worst runs."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from emulator.analysis.oracles.catalogue import TITLES
from emulator.analysis.rendering.canvas import element, titled
from emulator.analysis.report import RulesVerdict, Service
from emulator.analysis.run_measures import MEASURES, Measure
from emulator.base.amounts import Amounts
from emulator.base.commit import UNKNOWN
from emulator.base.errors import UserError
from emulator.base.extra import require_extra
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.execution import service_tally, tally
from emulator.campaign.measured import (
    by_variant,
    common_symptoms,
    measures_of_run,
    severe_symptom,
    times_broken,
    worst_first,
)
from emulator.campaign.results import WORDS, CaseResult
from emulator.report.document import CALM, document, made_by, section, table
from emulator.trace.run_directory import RELEASE

_WORST = 10
_BOTH_VERDICTS = (
    "Numbers of runs. Rules: valid and invalid, whether RocketMQ kept its invariants apart from what faults explain. "
    "Service: calm, degraded and paging, whether somebody would have been paged."
)
_WIDTH, _ROW_PX, _DOT_PX = 620, 22, 3.2
_LEFT, _RIGHT = 8, 8


def campaign_page(dataset: CampaignResults) -> str:
    """The report as one HTML document; traces that were retained are linked, relative to the campaign's directory."""
    every = dataset.case_results()
    runs = by_variant(every)
    body = "".join(
        (
            f"<h1>{escape(dataset.directory.name)}</h1><p>{len(every):,} runs, {len(runs):,} variants</p>",
            _headline(dataset),
            _symptoms(every),
            section("Verdicts", _verdicts(every)),
            section("Measures, a dot for each run", *_distributions(runs)),
            section("Worst runs", _worst(dataset, every)),
            made_by(f"Run with {RELEASE} {dataset.directory.versions.get(RELEASE, UNKNOWN)}"),
        )
    )
    return document(f"{dataset.directory.name}: a campaign", body)


def _headline(dataset: CampaignResults) -> str:
    """What each variant changes against the first; empty where there is nothing to compare, or not yet."""
    if len(dataset.directory.variants) < 2:
        return ""
    try:
        require_extra("the headline of this page")
        from emulator.campaign.crossed import headlines  # noqa: PLC0415 - statistics are of the extra

        lines = headlines(dataset)
    except UserError as error:
        lines = error.lines
    return "".join(f"<p><b>{escape(line)}</b></p>" for line in lines)


def _symptoms(every: Sequence[CaseResult]) -> str:
    common = common_symptoms(every)
    lines = "".join(
        f"<li><b>{escape(item.kind)}</b> in {item.runs:,} of {len(every):,} runs; the most severe is "
        f"{escape(item.most_severe.variant)}, seed {item.most_severe.seed}: {escape(item.text)}</li>"
        for item in common
    )
    return f'<ol class="severe">{lines}</ol>' if common else f"<p>{CALM}</p>"


def _verdicts(every: Sequence[CaseResult]) -> str:
    counts, services = tally(every), service_tally(every)
    words = [word for word in WORDS if any(count[word] for count in counts.values())]
    broken = {variant: times_broken(mine) for variant, mine in by_variant(every).items()}
    names = [name for name in TITLES if any(times[name] for times in broken.values())]
    rows = (
        (
            escape(variant),
            *(f"{count[word]:,}" for word in words),
            *(f"{services[variant][item]:,}" for item in Service),
            *(f"{broken[variant][name]:,}" for name in names),
        )
        for variant, count in counts.items()
    )
    texts = "".join(f"<p>{name}: {escape(TITLES[name])}</p>" for name in names)
    numbers = (*words, *Service, *names)
    return table(("variant", *numbers), rows, numbers=numbers) + f"<p>{_BOTH_VERDICTS}</p>" + texts


def _distributions(runs: Mapping[str, Sequence[CaseResult]]) -> Iterator[str]:
    for measure in MEASURES:
        values = {variant: _values(mine, measure) for variant, mine in runs.items()}
        if any(value for of in values.values() for value, _ in of):
            rows = ((escape(variant), _dots(of, values), _quantiles(measure, of)) for variant, of in values.items())
            yield f"<h3>{escape(measure.heading)}</h3><p>{escape(measure.doc)}</p>"
            yield table(("variant", "0 to the largest", "median, p90, largest"), rows)


def _values(mine: Sequence[CaseResult], measure: Measure) -> list[tuple[float, int]]:
    """(value, seed) of each run that came to its end."""
    found = (
        (measures_of_run(case_result)[measure.name], case_result.case.seed) for case_result in mine if case_result.ended
    )
    return sorted((value, seed) for value, seed in found if not math.isnan(value))


def _dots(of: Sequence[tuple[float, int]], values: Mapping[str, Sequence[tuple[float, int]]]) -> str:
    maximum = max((value for item in values.values() for value, _ in item), default=0.0) or 1.0
    line = element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_ROW_PX / 2, y2=_ROW_PX / 2, class_="grid")
    dots = "".join(
        titled(
            element(
                "circle",
                cx=round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * value / maximum, 1),
                cy=_ROW_PX / 2,
                r=_DOT_PX,
                class_="load",
                **{"fill-opacity": 0.8},
            ),
            f"seed {seed}: {value:g}",
        )
        for value, seed in of
    )
    return element("svg", line + dots, viewBox=f"0 0 {_WIDTH} {_ROW_PX}", width=_WIDTH, height=_ROW_PX)


def _quantiles(measure: Measure, of: Sequence[tuple[float, int]]) -> str:
    if not of:
        return ""
    ordered = [value for value, _ in of]
    picked = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.9, 1.0)]
    amounts = Amounts(measure.name, picked)
    return escape(", ".join(amounts.full(value) for value in picked))


def _worst(dataset: CampaignResults, every: Sequence[CaseResult]) -> str:
    rows = (
        (
            escape(item.case.variant),
            str(item.case.seed),
            escape(item.word),
            item.service or "",
            _reason(item),
            _link(dataset, item),
        )
        for item in worst_first(every)[:_WORST]
    )
    return table(("variant", "seed", "rules", "service", "why", "see it"), rows, numbers=("seed",))


def _reason(case_result: CaseResult) -> str:
    if case_result.reasons:
        return escape(case_result.reasons[0])
    return escape(severe_symptom(case_result) if case_result.verdict is RulesVerdict.VALID else case_result.word)


def _link(dataset: CampaignResults, case_result: CaseResult) -> str:
    again = f"<code>{escape(dataset.directory.command(case_result.case))}</code>"
    if not case_result.trace:
        return again
    report = f"<code>{escape(f'rmqemu report {shlex.quote(str(dataset.directory.path / case_result.trace))}')}</code>"
    return f'<a href="{escape(case_result.trace)}">{escape(case_result.trace)}</a><br>{report}<br>{again}'
