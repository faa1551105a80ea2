"""The columns that the source has for each table, and rows in the form that Spark takes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, LongType, MapType, StringType, StructField, StructType

from emulator.base.text import nearest
from emulator.dataset.source.run_paths import SourceError
from emulator.trace.schema import COUNTS, TABLES, ColumnType, TraceLevel, TraceTable

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from emulator.trace.stored import StoredTrace

TABLE = "table"
"""The option that names a table."""
RUNS, ROWS = "runs", "rows"
"""Tables besides those of the trace: one row per run; and the rows of all tables of the trace in one stream."""
NAMES = (*(table.name for table in TABLES), RUNS, ROWS)
_TEXT, _INT = StringType(), LongType()
_TYPES: Mapping[ColumnType, DataType] = {ColumnType.INT: _INT, ColumnType.TEXT: _TEXT}
_RUNS_COLUMNS: Mapping[str, DataType] = {
    **dict.fromkeys(("run", "scenario"), _TEXT),
    "seed": _INT,
    **dict.fromkeys(("mode", "level", "digest", "release"), _TEXT),
    "schema": _INT,
    "ended": _TEXT,
    **dict.fromkeys(("end_ns", "rows"), _INT),
    "rows_of": MapType(_TEXT, _INT),
}
_ROWS_COLUMNS: Mapping[str, DataType] = {
    "run": _TEXT,
    "number": _INT,
    "table": _TEXT,
    **dict.fromkeys(("seq", "t_ns"), _INT),
    "row": _TEXT,
}


def table_name(options: Mapping[str, str]) -> str:
    """The table that a query names.

    Raises:
        SourceError: it names none, or an unknown one.
    """
    name = options.get(TABLE)
    if name is None:
        raise SourceError(f"the option {TABLE} is missing: expected one of {', '.join(NAMES)}")
    if name not in NAMES:
        raise SourceError(nearest("table", name, NAMES))
    return name


def columns_of(name: str) -> StructType:
    """The columns of a table; `run` is the first."""
    if name in (RUNS, ROWS):
        columns = _RUNS_COLUMNS if name == RUNS else _ROWS_COLUMNS
    else:
        columns = {"run": _TEXT, **{item.name: _TYPES[item.type] for item in trace_table(name).columns}}
    return StructType([StructField(column, kind) for column, kind in columns.items()])


def trace_table(name: str) -> TraceTable:
    """The table of the trace with this name."""
    return next(table for table in TABLES if table.name == name)


def require_table(run: "Path", trace: "StoredTrace", table: TraceTable) -> None:
    """Check that the trace of a run may have rows of a table.

    Raises:
        SourceError: its level leaves all of them out.
    """
    if table not in (*trace.level.tables, COUNTS):
        fitting = " or ".join(level for level in TraceLevel if table in level.tables)
        raise SourceError(f"{run} has a trace of level {trace.level}, without {table.name}: expected {fitting}")


def arrow_schema(schema: StructType, name: str) -> "pa.Schema":
    """The columns that a query reads as Arrow has them; all, unless it names its own.

    Raises:
        SourceError: the table lacks one of them.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    found = to_arrow_schema(schema, timezone="UTC")
    known = columns_of(name).names
    for column in found.names:
        if column not in known:
            raise SourceError(nearest(f"column of {name}", column, known))
    return found


def spark_batches(run: str, rows: "pa.TraceTable", schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
    """Rows of a table of a run as Spark takes them.

    Args:
        run: name of the run.
        rows: columns of the table in the trace.
        schema: from `arrow_schema`.
    """
    import pyarrow as pa

    def column(field: Any) -> Any:
        if field.name != "run":
            return rows[field.name].cast(field.type)
        return pa.repeat(pa.scalar(run, field.type), len(rows))

    if len(rows):
        yield from pa.Table.from_arrays([column(field) for field in schema], schema=schema).to_batches()
