"""What every screen about a run begins with: symptoms, both verdicts with their reasons, faults, and how to ask why."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from rich.console import RenderableType

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.findings.words import seconds
from emulator.analysis.inputs.disturbances import FaultSpan
from emulator.analysis.measures.not_measured import NOT_MEASURED
from emulator.analysis.measures.phases import FAULTS
from emulator.analysis.report import Report, RulesVerdict, Service, symptoms, symptoms_by_kind
from emulator.base.rich_texts import Text

FAULTS_MAX = 4
"""Faults that are named."""
_VERDICT_STYLE = {
    RulesVerdict.VALID: "bold green",
    RulesVerdict.INVALID: "bold red",
    RulesVerdict.UNKNOWN: "bold yellow",
}
_SERVICE_STYLE = {Service.CALM: "green", Service.DEGRADED: "yellow", Service.PAGING: "bold red"}


class RenderTable(Protocol):
    """Renders one table of a report."""

    def __call__(self, report: Report, *, whole: bool) -> RenderableType | None:
        """The table; None: it has no row.

        Args:
            report: of the run.
            whole: whether it has all its rows, or the first ones and how many are left out.
        """


def kind_lines(report: Report) -> Iterator[RenderableType]:
    """A line for each kind of symptom, the most severe first: its worst one, and how many others it hits."""
    for number, of_kind in enumerate(symptoms_by_kind(report)):
        yield _symptom_line(number, of_kind.worst.kind, of_kind.text)


def symptom_lines(report: Report) -> Iterator[RenderableType]:
    """A line for each symptom, the most severe first."""
    for number, symptom in enumerate(symptoms(report)):
        yield _symptom_line(number, symptom.kind, symptom.text)


def _symptom_line(number: int, kind: SymptomKind, text: str) -> Text:
    line = Text()
    line.append(f"{kind}: ", style="bold" if number else "bold red")
    line.append(text)
    return line


def verdict_line(report: Report) -> Text:
    """Both verdicts, and the run."""
    line = Text()
    line.append(f"rules {report.verdict}", style=_VERDICT_STYLE[report.verdict])
    line.append(f"  service {report.service}", style=_SERVICE_STYLE[report.service])
    line.append(f"  {report.run_id}", style="bold")
    line.append(f"  {report.scenario}, seed {report.seed}, {report.mode}, {seconds(report.end_ns)} emulated")
    return line


def reason_lines(report: Report) -> Iterator[Text]:
    """Why the run is not valid."""
    for reason in report.reasons:
        yield Text(f"  {reason}")


def fault_lines(report: Report, *, whole: bool) -> Iterator[RenderableType]:
    """What was injected, and whether it did anything.

    Args:
        report: of the run.
        whole: whether all faults without a hit are named.
    """
    spans = report.of(FAULTS)
    if spans:
        yield Text(f"  faults: {_listed([_with_length(span) for span in spans], FAULTS_MAX)}")
    without_hits = [_with_begin(span) for span in spans if span.hits == 0]
    if without_hits:
        yield Text(
            f"  without a single hit: {_listed(without_hits, len(spans) if whole else FAULTS_MAX)}", style="yellow"
        )


def unseen_lines(report: Report) -> Iterator[RenderableType]:
    """What is not measured, so that no zero stands for it: a line for each way in which guests consume."""
    groups: dict[str, dict[str, None]] = {}
    for row in report.of(NOT_MEASURED):
        groups.setdefault(f"{row.symptoms}, {row.rules}", {})[f"{row.group} ({row.node})"] = None
    for measures, of in groups.items():
        named = _listed(list(of), FAULTS_MAX)
        yield Text(f"  not measured of {named}, whose listeners are not seen: {measures}", style="yellow")


def _listed(named: Sequence[str], named_max: int) -> str:
    more = [f"{len(named) - named_max} more"] if len(named) > named_max else []
    return "; ".join([*named[:named_max], *more])


def _with_begin(span: FaultSpan) -> str:
    return f"{span.kind} {span.subject} at {seconds(span.start_ns)}"


def _with_length(span: FaultSpan) -> str:
    if span.end_ns == span.start_ns:
        return _with_begin(span)
    return f"{_with_begin(span)} for {seconds(span.end_ns - span.start_ns, censored=span.censored)}"


def pointer_line(report: Report, run: Path | None) -> RenderableType | None:
    """How to ask for the causes, if there is anything to explain."""
    if run is None or (report.verdict is RulesVerdict.VALID and report.service is Service.CALM):
        return None
    more = ("; --verify leaves each cause out, --remedies tries what may end it", "dim")
    return Text.assemble("  why: ", (f"rmqemu why {run}", "bold"), more)
