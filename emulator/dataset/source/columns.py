"""The columns that the source has for each table, and rows in the form that Spark takes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from emulator.base.text import nearest
from emulator.dataset.source.run_paths import SourceError
from emulator.trace.schema import COUNTS, TABLES, ColumnType, Table, TraceLevel

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from emulator.trace.stored import StoredTrace

TABLE = "table"
"""The option that names a table."""
RUNS, ROWS = "runs", "rows"
"""Tables besides those of the trace: one row per run; and the rows of all tables of the trace in one stream."""
NAMES = (*(table.name for table in TABLES), RUNS, ROWS)
_SQL_TYPE = {ColumnType.INT: "BIGINT", ColumnType.TEXT: "STRING"}
_RUNS_COLUMNS = (
    "run STRING, scenario STRING, seed BIGINT, mode STRING, level STRING, digest STRING, release STRING, "
    "schema BIGINT, ended STRING, end_ns BIGINT, rows BIGINT, rows_of MAP<STRING, BIGINT>"
)
_ROWS_COLUMNS = "run STRING, number BIGINT, table STRING, seq BIGINT, t_ns BIGINT, row STRING"


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


def columns_of(name: str) -> str:
    """The columns of a table in Spark's DDL; `run` is the first."""
    if name == RUNS:
        return _RUNS_COLUMNS
    if name == ROWS:
        return _ROWS_COLUMNS
    return ", ".join(("`run` STRING", *(f"`{one.name}` {_SQL_TYPE[one.type]}" for one in trace_table(name).columns)))


def trace_table(name: str) -> Table:
    """The table of the trace with this name."""
    return next(table for table in TABLES if table.name == name)


def require_table(run: "Path", trace: "StoredTrace", table: Table) -> None:
    """Check that the trace of a run may have rows of a table.

    Raises:
        SourceError: its level leaves all of them out.
    """
    if table not in (*trace.level.tables, COUNTS):
        fitting = " or ".join(level for level in TraceLevel if table in level.tables)
        raise SourceError(f"{run} has a trace of level {trace.level}, without {table.name}: expected {fitting}")


def arrow_schema(schema: "StructType", name: str) -> "pa.Schema":
    """The columns that a query reads as Arrow has them; all, unless it names its own.

    Raises:
        SourceError: the table lacks one of them.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    found = to_arrow_schema(schema, timezone="UTC")
    known = [part.split()[0].strip("`") for part in columns_of(name).split(", ") if not part.endswith(">")]
    known += ["rows_of"] if name == RUNS else []
    for column in found.names:
        if column not in known:
            raise SourceError(nearest(f"column of {name}", column, known))
    return found


def spark_batches(run: str, rows: "pa.Table", schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
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
