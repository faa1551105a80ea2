"""The first screen about a run: at most forty lines with what matters most, and where the rest is."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from rich.console import Group, RenderableType

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.findings.words import seconds
from emulator.analysis.measures.phases import AGREEMENT, PHASES, RunPhase
from emulator.analysis.rendering.head import (
    fault_lines,
    kind_lines,
    pointer_line,
    reason_lines,
    unseen_lines,
    verdict_line,
)
from emulator.analysis.rendering.story import phase_title, without_stages
from emulator.analysis.report import Report, most_severe
from emulator.base.rich_texts import Console, Text, TextTable
from emulator.base.text import shortened

LINES_MAX = 40
"""Lines of the first screen, with the two that name the picture."""
_PICTURE_LINES = 2
_ENTRIES_MAX = 12
"""Reasons, symptoms and phases: so many of each where they fit."""
_MEASURES = ("views differ", "two owners", "no owner", "again", "agreed after")
_OTHER_COLUMNS = len("1000.0 s") + sum(len(measure) + 2 for measure in _MEASURES) + 4
"""Characters of the columns that are not the phase, and between them."""
_TITLE_CHARACTERS_MIN = 12
Causes = Mapping[SymptomKind, str]
"""Mapping symptom -> its causes, on one line."""


@attrs.frozen
class FirstScreen:
    """What the first screen shows."""

    report: Report
    run: Path
    """The directory of the run."""
    causes: Causes
    has_phases: bool = True
    """Whether it has the phases of the run; the demonstration explains them in sentences."""


def print_first_screen(screen: FirstScreen, console: Console) -> None:
    """Print the first screen, with as many reasons, symptoms and phases as fit into its lines."""
    for entries_max in range(_ENTRIES_MAX, 0, -1):
        rendered = Group(*_parts(screen, entries_max, console.width))
        if len(console.render_lines(rendered, pad=False)) <= LINES_MAX - _PICTURE_LINES:
            break
    console.print(rendered)


def _parts(screen: FirstScreen, entries_max: int, width: int) -> Iterator[RenderableType]:
    report = screen.report
    yield verdict_line(report)
    yield from _first(tuple(reason_lines(report)), entries_max, "reason")
    symptoms = tuple(_symptoms(report, screen.causes))
    yield from ("", *_first(symptoms, entries_max, "symptom")) if symptoms else ()
    faults = tuple(fault_lines(report, whole=False))
    yield from ("", *faults) if faults else ()
    unseen = tuple(unseen_lines(report))
    yield from ("", *unseen) if unseen else ()
    phases = [phase for phase in report.of(PHASES) if phase.end_ns > phase.start_ns]
    if screen.has_phases and phases:
        yield from ("", *_phases(report, phases, entries_max, width))
    yield ""
    why = pointer_line(report, screen.run)
    yield from () if why is None else (why,)
    yield Text.assemble("  all tables: ", (f"rmqemu analyze --all {screen.run}", "bold"))
    yield Text.assemble("  one table: ", (f"rmqemu analyze --table overlaps {screen.run}", "bold"))


def _first(entries: Sequence[RenderableType], entries_max: int, noun: str) -> Iterator[RenderableType]:
    yield from entries[:entries_max]
    if (left_out := len(entries) - entries_max) > 0:
        yield Text(f"  … and {left_out} more {noun}{'' if left_out == 1 else 's'}", style="dim")


def _symptoms(report: Report, causes: Causes) -> Iterator[RenderableType]:
    """Each kind of symptom with the causes of its worst one, as far as they are known."""
    for symptom, line in zip(most_severe(report), kind_lines(report), strict=True):
        cause = causes.get(symptom.kind)
        yield line if cause is None else Group(line, Text(f"  cause: {cause}", style="dim"))


def _phases(report: Report, phases: Sequence[RunPhase], entries_max: int, width: int) -> Iterator[RenderableType]:
    """The story of the run: a line for each phase, of many those in which most differed."""
    worst = sorted(phases, key=lambda phase: phase.view_ns + phase.overlap_ns + phase.orphan_ns, reverse=True)
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("from", justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    for measure in _MEASURES:
        table.add_column(measure, justify="right", no_wrap=True)
    # In a narrow terminal only the phase is shortened.
    title_max = max(_TITLE_CHARACTERS_MIN, width - _OTHER_COLUMNS)
    for phase in sorted(worst[:entries_max], key=lambda phase: phase.start_ns):
        lasted_ns = (phase.view_ns, phase.overlap_ns, phase.orphan_ns)
        amounts = (seconds(one_ns) if one_ns else "-" for one_ns in lasted_ns)
        title = shortened(phase_title(without_stages(phase.what, report), phase.active), title_max)
        again = f"{phase.again:,}" if phase.again else "-"
        table.add_row(seconds(phase.start_ns), title, *amounts, again, _agreed(report, phase))
    yield table
    if (left_out := len(phases) - entries_max) > 0:
        yield Text(f"  … and {left_out} more phase{'' if left_out == 1 else 's'}, in which less differed", style="dim")


def _agreed(report: Report, phase: RunPhase) -> str:
    """How long it took until all views and owners agreed."""
    rows = [row for row in report.of(AGREEMENT) if row.t_ns == phase.start_ns]
    if not any(row.took_ns for row in rows):
        return "-"
    return seconds(max(row.took_ns for row in rows), censored=any(row.censored for row in rows))
