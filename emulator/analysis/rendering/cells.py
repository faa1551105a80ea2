"""Heads and cells of the tables in a report."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Group, RenderableType

from emulator.base.rich_texts import Text, TextTable

Row = TypeVar("Row")

ROWS_MAX = 12
"""Rows of a table; further rows are only counted."""


def queue_ranges(queue_ids: Iterable[int]) -> str:
    """Queue ids as ranges: `0-3, 7`."""
    ranges: list[list[int]] = []
    for queue_id in sorted(queue_ids):
        if ranges and queue_id == ranges[-1][1] + 1:
            ranges[-1][1] = queue_id
        else:
            ranges.append([queue_id, queue_id])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def headed(title: str, *columns: str, right: Sequence[str] = ()) -> TextTable:
    """An empty table; `right` are the columns of numbers."""
    table = TextTable(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def first_rows(rows: Sequence[Row], rows_max: int, *, whole: bool) -> Sequence[Row]:
    """The rows that a table shows: all, or the first ones."""
    return rows if whole else rows[:rows_max]


def cut(table: TextTable, left_out: int) -> RenderableType:
    """A table, and how many rows it leaves out."""
    if left_out <= 0:
        return Group("", table)
    return Group("", table, Text(f"… and {left_out} more, all shorter", style="dim"))
