"""Rolling Parquet segments: written under a hidden name, then renamed, so readers see whole segments or none.

Arrow arrays are made from buffers: `pyarrow.array` would import pandas to check whether a tuple is a series. That
import takes seconds, during which a live cluster stands still, and more memory than the cluster itself.
"""

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from emulator.trace.schema import TABLES, ColumnType, Table

SEGMENT_ROWS = 40_000
_FOLDER = "trace"
_DELTA = "DELTA_BINARY_PACKED"


def int_array(pa: Any, values: Sequence[int]) -> Any:
    """An Arrow array of 64-bit integers without nulls."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def text_array(pa: Any, values: Sequence[str]) -> Any:
    """An Arrow array of UTF-8 strings without nulls."""
    content = "".join(values).encode()
    encoded = values if len(content) == sum(map(len, values)) else [value.encode() for value in values]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(content)])


_ARRAYS: dict[ColumnType, Callable[[Any, Any], Any]] = {ColumnType.INT: int_array, ColumnType.TEXT: text_array}


def segment_paths(run: Path, table: Table) -> list[Path]:
    """The closed segments of a table in a run directory, in the order of their rows."""
    return sorted((run / _FOLDER / table.name).glob("seg-*.parquet"))


class SegmentWriter:
    """Writes the segments of one run directory.

    Rows wait as Arrow batches until they fill a segment of `SEGMENT_ROWS`, or
    until `close_segments`.
    """

    def __init__(self, run: Path) -> None:
        self._directory = run / _FOLDER
        self._batches: dict[str, list[Any]] = {t.name: [] for t in TABLES}
        self._waiting: dict[str, int] = {t.name: 0 for t in TABLES}
        self._segments: dict[str, int] = {t.name: 0 for t in TABLES}
        self.on_error: Callable[[OSError], None] | None = None
        """Called if a segment cannot be written while rows come in; None: the error is raised there."""
        for table in TABLES:
            (self._directory / table.name).mkdir(parents=True, exist_ok=True)

    def write(self, table: Table, rows: list[tuple[int | str, ...]]) -> None:
        """Add rows; writes a segment when `SEGMENT_ROWS` are waiting."""
        import pyarrow as pa  # noqa: PLC0415 - it would take a third of the memory and of the start of a small cluster

        arrays = [_ARRAYS[column.type](pa, v) for column, v in zip(table.columns, zip(*rows, strict=True), strict=True)]
        self._batches[table.name].append(pa.record_batch(arrays, schema=_arrow_schema(pa, table)))
        self._waiting[table.name] += len(rows)
        if self._waiting[table.name] >= SEGMENT_ROWS:
            try:
                self._close_segment(table)
            except OSError as error:
                if self.on_error is None:
                    raise
                self.on_error(error)

    def close_segments(self) -> None:
        """Write all waiting rows.

        Raises:
            OSError: a segment cannot be written; its rows keep waiting.
        """
        for table in TABLES:
            if self._batches[table.name]:
                self._close_segment(table)

    def _close_segment(self, table: Table) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        folder = self._directory / table.name
        number = self._segments[table.name]
        hidden = folder / f".seg-{number:06d}.tmp"
        texts = [c.name for c in table.columns if c.type is ColumnType.TEXT]
        content: Any = pa.Table.from_batches(self._batches[table.name])
        try:
            pq.write_table(
                content,
                hidden,
                compression="zstd",
                use_dictionary=texts,
                column_encoding={c.name: _DELTA for c in table.columns if c.type is ColumnType.INT},
            )
            hidden.replace(folder / f"seg-{number:06d}.parquet")
        except OSError:
            hidden.unlink(missing_ok=True)
            raise
        self._segments[table.name] = number + 1
        self._batches[table.name].clear()
        self._waiting[table.name] = 0


def _arrow_schema(pa: Any, table: Table) -> Any:
    types = {ColumnType.INT: pa.int64(), ColumnType.TEXT: pa.string()}
    return pa.schema([pa.field(c.name, types[c.type], nullable=False) for c in table.columns])
