"""How a dataset lies on disk: folders, tables and how Parquet stores them; what its snapshot says of files and runs.

    DATASET/
        dataset.json                    the snapshot: which files the dataset has
        runs/part-<landing>-*.parquet   a row per run: all that judging needs, apart from the rows of the trace
        trace/<table>/part-<landing>-*.parquet

A table has the columns of `emulator.trace.schema` behind a first column `run`, and its files are sorted by run, then
by seq. Many small runs share a file; a large run has several files.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
import pyarrow as pa

from emulator.trace.schema import BELIEFS, TABLES, ColumnType, TraceTable
from nodes.fields import quoted, shown

FORMAT_VERSION = 2
"""Version of the folders, of the columns of `runs` and of the snapshot."""
RUNS, TRACE = "runs", "trace"
RUN = "run"
PART = "part-"
"""Begin of the name of each file."""
ROWS_PER_GROUP = 500_000
ROWS_PER_FILE = 4_000_000
_DELTA = "DELTA_BINARY_PACKED"
_VALUE = BELIEFS.columns[BELIEFS.index("value")].name
_RISING = ("seq", "t_ns", "cause", "sent_ns", "offset", "stored_ms", "began_ns", "opaque", "until_seq")
"""Numbers that differ from row to row by little; all other columns have few different values."""
_ARROW = {ColumnType.INT: pa.int64(), ColumnType.TEXT: pa.string()}
_TEXTS, _NUMBERS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int64())
_NUMBER_MAX = 1 << 63
_Entry = TypeVar("_Entry", "FileEntry", "RunEntry")

RUNS_SCHEMA = pa.schema(
    [
        (RUN, pa.string()),
        ("campaign", pa.string()),
        ("scenario", pa.string()),
        ("variant", pa.string()),
        ("condition", pa.string()),
        ("seed", pa.int64()),
        ("mode", pa.string()),
        ("level", pa.string()),
        ("digest", pa.string()),
        ("release", pa.string()),
        ("schema", pa.int64()),
        ("ended", pa.string()),
        ("end_ns", pa.int64()),
        ("rows", pa.int64()),
        ("acting", pa.bool_()),
        ("elected", pa.bool_()),
        ("ordered", pa.list_(pa.string())),
        ("exclusive", pa.list_(pa.string())),
        ("broker_names", _TEXTS),
        ("consume_ms", _NUMBERS),
        ("bounds", _NUMBERS),
        ("limits", _NUMBERS),
        ("names", _TEXTS),
        ("roles", _TEXTS),
        ("broken_off", pa.list_(pa.string())),
        ("unreliable", pa.list_(pa.string())),
        ("rows_of", _NUMBERS),
    ]
)
"""Columns of `runs`; `emulator.lake.run_rows` describes them."""


@attrs.frozen
class Stored:
    """How a table is stored."""

    name: str
    folder: str
    """In the dataset."""
    schema: pa.Schema

    def options(self) -> dict[str, Any]:
        """Options of `pyarrow.parquet.ParquetWriter`."""
        common: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "store_schema": False}
        if self.name == RUNS:
            return common
        names = self.schema.names
        rising = [item.name for item in self.schema if item.name in _RISING and pa.types.is_int64(item.type)]
        return {
            **common,
            "use_dictionary": [name for name in names if name not in rising],
            "column_encoding": dict.fromkeys(rising, _DELTA),
            # A value may have 25,000 characters, and statistics would hold two of them.
            "write_statistics": [name for name in names if name != _VALUE],
        }


def table_schema(table: TraceTable) -> pa.Schema:
    """The columns of a table of the trace in a dataset."""
    columns = [pa.field(column.name, _ARROW[column.type], nullable=False) for column in table.columns]
    return pa.schema([pa.field(RUN, pa.string(), nullable=False), *columns])


STORED = {
    **{table.name: Stored(table.name, f"{TRACE}/{table.name}", table_schema(table)) for table in TABLES},
    RUNS: Stored(RUNS, RUNS, RUNS_SCHEMA),
}
"""Mapping name -> how the table is stored: those of the trace in their order, then `runs`."""


@attrs.frozen
class FileEntry:
    """A file of a dataset."""

    table: str
    file: str
    """Its path in the dataset."""
    rows: int
    bytes: int
    checksum: str
    """See `emulator.trace.seals.checksum`."""
    first_run: str
    last_run: str


@attrs.frozen
class RunEntry:
    """A run of a dataset."""

    run: str
    rows: int
    content: str
    """See `emulator.lake.run_rows.content_of`."""
    digest: str
    """Of the rows; empty: the run has no manifest."""
    release: str
    campaign: str = ""
    """Digest of the campaign that executed it; empty: it belongs to none, or an older release landed it."""
    scenario: str = ""
    """See `emulator.lake.run_rows.scenario_digest`; empty: an older release landed it."""


def entry_of(kind: type[_Entry], plain: Mapping[str, Any], tables: Mapping[str, Stored] = STORED) -> _Entry:
    """An entry that was written as JSON.

    Args:
        kind: of the entry.
        plain: its fields.
        tables: mapping name -> table, of which a file may be.

    Raises:
        KeyError: it lacks a field.
        TypeError: it is none.
        ValueError: a value cannot be of a dataset.
    """
    entry = kind(**plain)
    for field in attrs.fields(kind):
        value = getattr(entry, field.name)
        is_number = isinstance(value, int) and 0 <= value < _NUMBER_MAX
        if not (is_number if field.type is int else isinstance(value, str)):
            raise ValueError(f"{field.name} {shown(repr(value))} of {kind.__name__}")
    table = getattr(entry, "table", None)
    if table is not None and table not in tables:
        raise ValueError(f"there is no table {quoted(table)}")
    return entry
