"""The report of one run as people see it: text for terminals, a picture with tables for notebooks."""

from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import attrs

from emulator.analysis.judge import judge_run
from emulator.analysis.measures.lag import LAG_SERIES
from emulator.analysis.measures.measured import HOLDS
from emulator.analysis.measures.phases import FAULTS
from emulator.analysis.measures.traffic import REQUEST_SERIES
from emulator.analysis.rendering.picture import page
from emulator.analysis.rendering.tables import render
from emulator.analysis.report import Report
from emulator.base.rich_texts import Console
from emulator.trace.run_directory import RunDirectory, open_run

_COLUMNS = 120
_LINE_PX, _AROUND_PX = 20, 230


@attrs.frozen
class ShownReport(Report):
    """A report that notebooks show as a picture with tables."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        return {"text/plain": as_text(self), "text/html": as_html(self)}


def analyze(run_dir: Path | str) -> ShownReport:
    """Analyze and judge one run.

    Args:
        run_dir: the run directory, `runs/<run-id>`.

    Raises:
        NotARunError: the directory is not a run that this version can read, or its files are damaged.
    """
    return shown(open_run(run_dir))


def shown(run: RunDirectory) -> ShownReport:
    """As `analyze`, for a run that has been opened already, or is still under way."""
    report = judge_run(run)
    return ShownReport(**{field.name: getattr(report, field.name) for field in attrs.fields(Report)})


def as_text(report: Report) -> str:
    """The tables as plain text."""
    console = Console(file=StringIO(), width=_COLUMNS, color_system=None, force_jupyter=False, force_terminal=False)
    with console.capture() as capture:
        console.print(render(report))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def as_html(report: Report) -> str:
    """The picture in an iframe, so that its style and the notebook's do not mix, and the tables."""
    queues = {hold.queue: None for hold in report.of(HOLDS)}
    sections = {(queue.group, queue.topic): None for queue in queues}
    strips = len(report.of(REQUEST_SERIES)) + len(report.of(LAG_SERIES))
    lines = len(queues) + len(report.reasons) + 2 * (len(sections) + strips) + len(report.of(FAULTS))
    height_px = _AROUND_PX + _LINE_PX * lines
    picture = (
        f'<iframe srcdoc="{escape(page(report))}" title="who owned which queue" '
        f'style="width:100%;height:{height_px}px;border:0"></iframe>'
    )
    tables = f'<pre style="background:transparent;color:inherit;white-space:pre">{escape(as_text(report))}</pre>'
    return f"{picture}<details><summary>All tables of the report</summary>{tables}</details>"
