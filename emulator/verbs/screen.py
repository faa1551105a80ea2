"""The views of a cluster for a terminal: the matrix in colour."""

import io
import shutil

from rich.console import Console
from rich.table import Table
from rich.text import Text

from emulator.verbs.desk import Desk
from emulator.verbs.looking import seen
from emulator.verbs.matrix import Matrix, Subject

_CAMPS = ("green", "red", "yellow", "magenta", "cyan", "blue")
"""The first is that of the largest camp."""


def views_in_colour(desk: Desk, wanted: str | None) -> str:
    """The matrix with escape sequences, as wide as this terminal.

    Raises:
        VerbError: nobody knows of such a subject.
    """
    shown = seen(desk, wanted)
    if not shown.subjects:
        return "nodes of one role agree about everything they share; `views all` shows all of it, agreed or not\n"
    into = io.StringIO()
    console = Console(file=into, force_terminal=True, width=shutil.get_terminal_size().columns, highlight=False)
    console.print(_table(shown))
    for subject in shown.subjects:
        if subject.differs or wanted is not None:
            _print_values(console, desk, subject)
    return into.getvalue()


def _table(shown: Matrix) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("who believes what", no_wrap=True)
    for node in shown.nodes:
        table.add_column(node, justify="center", overflow="ellipsis", no_wrap=True)
    for subject in shown.subjects:
        cells = [Text(subject.cell(node), _style(subject, subject.cell(node))) for node in shown.nodes]
        table.add_row(Text(f"{subject.kind} {subject.subject}", "bold" if subject.differs else "dim"), *cells)
    return table


def _print_values(console: Console, desk: Desk, subject: Subject) -> None:
    for letter, value in subject.values.items():
        held = desk.lines.value(subject.kind, value)
        line = Text.assemble(f"{subject.kind} {subject.subject} ", (letter, _style(subject, letter)), f": {held}")
        console.print(line, overflow="ellipsis", no_wrap=True)


def _style(subject: Subject, letter: str) -> str:
    if letter not in subject.values:
        return "dim"
    if not subject.differs:
        return "dim green"
    return f"bold {_CAMPS[list(subject.values).index(letter) % len(_CAMPS)]}"
