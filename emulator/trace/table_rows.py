"""The rows of a run directory, one by one; Spark is for those who ask more of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from emulator.trace.schema import Table


def table_rows(
    run: Path, table: Table, columns: tuple[str, ...], *filters: tuple[str, str, object]
) -> Iterator[dict[str, Any]]:
    """The rows of a table in order: column -> value; `filters` in Arrow's notation."""
    for segment in sorted((run / "trace" / table.name).glob("seg-*.parquet")):
        yield from pq.read_table(segment, columns=list(columns), filters=list(filters) or None).to_pylist()
