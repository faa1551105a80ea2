"""What the footer of a file says, compared with what the snapshot and the schema of its table say of it.

A dataset may come from somebody else. Spark reads files whose columns are missing as null, and rows that nobody counted
as rows: the result would be another one, and no error.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.base.files import require_regular
from emulator.lake.layout import RUN, RUNS, STORED, FileEntry, Stored


def footer_problem(path: Path, entry: FileEntry, tables: Mapping[str, Stored] = STORED) -> str:
    """In what a file is none that a landing has written as its entry says; empty if in nothing.

    Args:
        path: of the file.
        entry: of the snapshot.
        tables: mapping name -> table.
    """
    try:
        require_regular(path)
        with pq.ParquetFile(path) as file:
            footer, schema = file.metadata, file.schema_arrow
    except (OSError, pa.ArrowException):
        return "it is no Parquet file"
    if footer.num_rows != entry.rows:
        return f"it has {footer.num_rows} rows in place of {entry.rows}"
    if problem := _problem_of_columns(tables[entry.table], schema):
        return problem
    if _runs(footer) != (entry.first_run, entry.last_run):
        return f"its runs are not {entry.first_run} to {entry.last_run}"
    return ""


def _problem_of_columns(table: Stored, schema: pa.Schema) -> str:
    """In what the columns of a file differ from those of its table; an older release has written fewer of `runs`."""
    expected = table.schema
    names = [name for name in schema.names if table.name != RUNS or name in expected.names]
    if table.name != RUNS and names != expected.names:
        return f"its columns are not those of {table.name}"
    for name in names:
        there, ours = schema.field(name), expected.field(name)
        if there.type != ours.type or (there.nullable and not ours.nullable):
            return f"its column {name} may have {_words(there)}, expected {_words(ours)}"
    return ""


def _words(field: pa.Field) -> str:
    return f"{field.type}{' or null' if field.nullable else ''}"


def _runs(footer: Any) -> tuple[str, str]:
    """The first and the last run of a file by its statistics; empty texts if it has none."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    found = [column.statistics for column in columns if column.path_in_schema == RUN]
    if not found or any(item is None or not item.has_min_max for item in found):
        return "", ""
    return min(item.min for item in found), max(item.max for item in found)
