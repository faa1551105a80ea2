"""Tables of a report by their names: those that a report prints, and any other table of findings as it is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import Group, RenderableType

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import seconds
from emulator.analysis.rendering.tables import TABLES
from emulator.analysis.report import TABLES_OF_REPORT, Report
from emulator.base.errors import UserError
from emulator.base.rich_texts import Text, TextTable
from emulator.base.text import alike, shortened
from emulator.history.rows.queues import GroupQueue
from emulator.state.event_lines import with_names

_CELL_CHARACTERS_MAX = 60
_OTHERS: Mapping[str, FindingTable[Any]] = {table.name: table for table in TABLES_OF_REPORT if table.name not in TABLES}
TABLE_NAMES = (*TABLES, *_OTHERS)
"""Names of all tables of a report."""


class TableNameError(UserError):
    """There is no table of that name."""


def require_table_names(names: Sequence[str]) -> None:
    """Refuse names of tables that there are not.

    Raises:
        TableNameError: a name is none of a table; the text lists the right ones.
    """
    for name in names:
        if name not in TABLE_NAMES:
            near = alike(name, TABLE_NAMES, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise TableNameError(f"--table {shortened(name, 40)}: {hint}expected one of {', '.join(TABLE_NAMES)}")


def named_table(report: Report, name: str) -> RenderableType:
    """One table of a report, with all its rows."""
    if name in TABLES:
        rendered = TABLES[name](report, whole=True)
        return f"{name}: no row" if rendered is None else rendered
    table = _OTHERS[name]
    rows = report.of(table)
    return _as_it_is(table, rows, report.names) if rows else f"{name}: no row"


def _as_it_is(table: FindingTable[Any], rows: Sequence[Any], names: Mapping[str, str]) -> RenderableType:
    """A table of findings, column by column; times are seconds."""
    columns = [column.name.removesuffix("_ns") for column in table.columns()]
    rendered = TextTable(box=None, pad_edge=False)
    for column in columns:
        rendered.add_column(column, overflow="fold")
    for row in rows:
        rendered.add_row(*_cells(table, row, names))
    return Group("", Text(f"{table.name}: {table.doc}", "bold"), rendered)


def _cells(table: FindingTable[Any], row: Any, names: Mapping[str, str]) -> Iterator[str]:
    for column in table.columns():
        value = getattr(row, column.name)
        if isinstance(value, GroupQueue):
            text = f"{value.group} {value.name}"
        elif column.name.endswith("_ns") and isinstance(value, int):
            text = "-" if value < 0 else seconds(value)
        elif isinstance(value, tuple):
            text = json.dumps([attrs.asdict(item) if attrs.has(type(item)) else item for item in value])
        else:
            text = str(value)
        yield shortened(with_names(text, names), _CELL_CHARACTERS_MAX)
