"""The ledger of fidelity for people."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from emulator.fidelity import LedgerRow, Status

_STYLE = {Status.REPRODUCED: "green", Status.SIMPLIFIED: "yellow", Status.ABSENT: "dim"}


def render(rows: Sequence[LedgerRow]) -> RenderableType:
    """The ledger as a table, and how many traps there are of each status."""
    table = Table(box=None, pad_edge=False)
    for column in ("trap", "status", "tests"):
        table.add_column(column, no_wrap=True, justify="right" if column == "tests" else "left")
    table.add_column("what the real system does, and how or why not here", overflow="fold")
    for row in rows:
        what = Text(row.title)
        if row.note:
            what.append(f"\n{row.note}", style="dim")
        table.add_row(row.trap, Text(row.status, style=_STYLE[row.status]), str(len(row.tests) or ""), what)
    return Group(table, "", summary(rows))


def summary(rows: Sequence[LedgerRow]) -> str:
    """`60 reproduced, 3 simplified, 59 absent`."""
    return ", ".join(f"{sum(row.status is status for row in rows)} {status}" for status in Status)
