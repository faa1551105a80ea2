"""A report in a notebook: its verdict, its picture, and its tables folded away."""

from html import escape
from io import StringIO
from typing import Any

import attrs
from rich.console import Console

from emulator.analysis.findings import Report
from emulator.analysis.picture import page
from emulator.analysis.tables import render

_COLUMNS = 120
_LINE_PX, _AROUND_PX = 20, 230


@attrs.frozen
class ShownReport(Report):
    """A report that a notebook shows."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        return {"text/plain": as_text(self), "text/html": as_html(self)}


def as_text(report: Report) -> str:
    """The tables as plain text."""
    console = Console(file=StringIO(), width=_COLUMNS, color_system=None, force_jupyter=False, force_terminal=False)
    with console.capture() as capture:
        console.print(render(report))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def as_html(report: Report) -> str:
    """The picture in a frame of its own, so that neither its style nor the notebook's reaches the other."""
    queues = {hold.queue: None for hold in report.holds}
    sections = {(queue.group, queue.topic): None for queue in queues}
    lines = len(queues) + len(report.reasons) + 2 * len(sections) + len(report.faults)
    height_px = _AROUND_PX + _LINE_PX * lines
    picture = (
        f'<iframe srcdoc="{escape(page(report))}" title="who owned which queue" '
        f'style="width:100%;height:{height_px}px;border:0"></iframe>'
    )
    tables = f'<pre style="background:transparent;color:inherit;white-space:pre">{escape(as_text(report))}</pre>'
    return f"{picture}<details><summary>All tables of the report</summary>{tables}</details>"
