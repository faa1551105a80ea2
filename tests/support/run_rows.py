"""The rows of a run in its directory, as mappings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emulator.trace.run_directory import stored_trace
from emulator.trace.schema import TraceTable


def table_rows(
    run: Path, table: TraceTable, columns: tuple[str, ...] | None = None, *filters: tuple[str, str, object]
) -> Iterator[dict[str, Any]]:
    """The rows of a table in order, each a mapping column -> value.

    Args:
        run: the run directory.
        table: of the schema.
        columns: to read; None: all.
        filters: (column, operator, value), as pyarrow takes them.
    """
    wanted = None if columns is None else list(columns)
    for found in stored_trace(run).tables(table, columns=wanted, filters=list(filters) or None):
        yield from found.to_pylist()
