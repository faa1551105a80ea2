"""Writes the rows of a run: closed segments in Parquet, and a journal of the rows that wait for one.

A closed segment never changes. Before one closes, all rows recorded so far are in
the journal, and the journal shrinks only after the index names the segment. So at
every instant the files hold all rows up to some seq, whatever ends the emulator.

Arrow arrays are made from buffers: `pyarrow.array` would import pandas to check whether a tuple is a series. That
import takes seconds, during which a live cluster stands still, and more memory than the cluster itself.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from emulator.trace.batches import Column, Packed, RowBatch, columns_of, numbered, packed_columns
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.index import IndexWriter, SegmentEntry
from emulator.trace.journal import JOURNAL, frame
from emulator.trace.schema import BELIEFS, TABLES, ColumnType, TraceTable
from emulator.trace.seals import checksum

SEGMENT_ROWS = 40_000
SEGMENT_CHARS = 16 * 1024 * 1024
"""A segment of beliefs ends sooner where their values are so long in all: a list of 1,000 members has 25,000
characters, and each broker believes one again with each member that comes."""
_FRAME_BYTES = 2 * 1024 * 1024
FOLDER = "trace"
"""Folder of the trace in a run directory."""
_ZSTD_ROWS_MIN = 4_000
"""zstd packs a fifth better than LZ4, but to begin takes it longer than to pack a small column."""
_DELTA = "DELTA_BINARY_PACKED"
_VALUE = BELIEFS.index("value")
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_Arrays: TypeAlias = Mapping[ColumnType, Callable[[Any, Any], Any]]


def int_array(pa: Any, values: Sequence[int]) -> Any:
    """An Arrow array of 64-bit integers without nulls."""
    numbers = values if isinstance(values, array) else array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(numbers)])


def text_array(pa: Any, values: Sequence[str]) -> Any:
    """An Arrow array of UTF-8 strings without nulls."""
    content = "".join(values).encode()
    ends = array("i", accumulate(map(len, values), initial=0))
    if ends[-1] != len(content):  # a character takes several bytes
        ends = array("i", accumulate((len(value.encode()) for value in values), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(content)])


def dictionary_array(pa: Any, values: Sequence[str]) -> Any:
    """An Arrow array of texts, each different one stored once: few texts of a trace come only once."""
    texts, numbers = numbered(values)
    coded = pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(numbers)])
    return pa.DictionaryArray.from_arrays(coded, text_array(pa, texts))


_PLAIN: _Arrays = {ColumnType.INT: int_array, ColumnType.TEXT: text_array}
_CODED: _Arrays = {ColumnType.INT: int_array, ColumnType.TEXT: dictionary_array}


def arrow_table(table: TraceTable, columns: Sequence[Column]) -> Any:
    """The columns of a table as an Arrow table."""
    return _arrow_table(table, columns, _PLAIN)


def _arrow_table(table: TraceTable, columns: Sequence[Column], arrays: _Arrays) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - it would take a third of the memory and of the start of a small cluster

    made = [arrays[of.type](pa, values) for of, values in zip(table.columns, columns, strict=True)]
    fields = [pa.field(of.name, column.type, nullable=False) for of, column in zip(table.columns, made, strict=True)]
    return pa.Table.from_arrays(made, schema=pa.schema(fields))


class _WaitingRows:
    """Rows of one table that wait for a segment.

    Where a segment ends depends on the rows alone, though batches end by the wall clock: a repetition has the same
    segments.
    """

    def __init__(self, table: TraceTable) -> None:
        self.table = table
        self._chars = array("q")
        """Characters in the values of beliefs, up to each row."""
        self._chars_before = 0
        """In the segments that have been closed."""
        self.segments = 0
        """Number of closed segments of the table."""
        self.columns = columns_of(table, ())
        self._packed: list[Packed] | None = []
        """The rows as the journal holds them; None: they are packed again when somebody asks."""

    def full(self) -> int:
        """How many rows the next segment has; 0: they do not fill one."""
        rows = SEGMENT_ROWS
        if self.table is BELIEFS:
            rows = min(rows, 1 + bisect_left(self._chars, self._chars_before + SEGMENT_CHARS))
        return rows if rows <= self.rows else 0

    def take(self, rows: int) -> tuple[Column, ...]:
        """Remove the first rows and return them by column, without a copy: it would take 4 MB."""
        if self.table is BELIEFS:
            self._chars_before = self._chars[rows - 1]
            del self._chars[:rows]
        taken, self.columns = self.columns, tuple(column[rows:] for column in self.columns)
        for column in taken:
            del column[rows:]
        self._packed = None
        return taken

    def add(self, batch: RowBatch) -> None:
        """Add rows."""
        for column, values in zip(self.columns, batch.columns, strict=True):
            column.extend(values)  # type: ignore[arg-type]
        if self.table is BELIEFS:
            last = self._chars[-1] if self._chars else self._chars_before
            self._chars.extend(islice(accumulate(map(len, batch.columns[_VALUE]), initial=last), 1, None))  # type: ignore[arg-type]
        if self._packed is not None:
            self._packed.append(batch.packed)

    def packed(self) -> list[Packed]:
        """The rows as the journal holds them, in parts."""
        if self._packed is None:
            self._packed = [packed_columns(self.table, self.columns)] if self.rows else []
        return self._packed

    @property
    def rows(self) -> int:
        """Number of the rows."""
        return len(self.columns[0])


class SegmentWriter:
    """Writes the trace of one run.

    After an error nothing more is written, so no gap can follow what is there.

    Args:
        run: the run directory.
        head: what was run, for the index.
        files: to write with.
        names: mapping address, or client id of a guest -> node; what is new in it goes to the index.
        on_error: called if something cannot be written while rows come in; None: the error is raised there.

    Raises:
        OSError: the disk is full, or cannot be written for another reason; nothing has been recorded yet.
    """

    def __init__(
        self,
        run: Path,
        head: Mapping[str, Any] | None = None,
        files: RunFiles | None = None,
        *,
        names: Mapping[str, str] = _NO_NAMES,
        on_error: Callable[[OSError], None] | None = None,
    ) -> None:
        self._files = files or RunFiles()
        self._directory = run / FOLDER
        self._waiting = {table.name: _WaitingRows(table) for table in TABLES}
        self._unwritten: list[tuple[str, Packed]] = []
        self._unwritten_bytes = 0
        self._error: OSError | None = None
        self._names = names
        self._names_written: dict[str, str] = dict((head or {}).get("addresses", {}))
        self._on_error = on_error
        self._files.make_directory(self._directory)
        for table in TABLES:
            self._files.make_directory(self._directory / table.name)
        self._journal = self._directory / JOURNAL
        self._files.create(self._journal, b"")
        self._files.append(self._journal, frame(()))
        self._index = IndexWriter(self._directory, head or {}, self._files)

    def write(self, batch: RowBatch) -> bool:
        """Add rows; returns whether `save` should be called, with no row left elsewhere.

        It should if the rows fill a segment, or if many wait for the journal, whose frame needs their memory once more.
        """
        if self._error is not None:
            return False
        waiting = self._waiting[batch.table.name]
        waiting.add(batch)
        self._unwritten.append((batch.table.name, batch.packed))
        self._unwritten_bytes += sum(map(len, batch.packed))
        return bool(waiting.full()) or self._unwritten_bytes >= _FRAME_BYTES

    def save(self) -> None:
        """Append the rows that came in since the last time to the journal, and close the segments that are full.

        Raises:
            OSError: they cannot be written, and there is no `on_error`.
        """
        if self._error is not None:
            return
        try:
            self._save(whole=False)
        except OSError as error:
            self._error = error
            if self._on_error is None:
                raise
            self._on_error(error)

    def close_segments(self) -> None:
        """Write all waiting rows as segments.

        Raises:
            OSError: they cannot be written, now or before.
        """
        if self._error is not None:
            raise self._error
        try:
            self._save(whole=True)
        except OSError as error:
            self._error = error
            raise

    def remove_journal(self) -> None:
        """Remove the journal of a run that has ended; an empty one that cannot be removed does no harm."""
        with suppress(OSError):
            self._files.remove(self._journal)

    def _save(self, *, whole: bool) -> None:
        if self._unwritten:
            self._files.append(self._journal, frame(self._unwritten))
            self._unwritten.clear()
            self._unwritten_bytes = 0
        new = {name: node for name, node in self._names.items() if self._names_written.get(name) != node}
        if new:
            self._index.on_addresses(new)
            self._names_written |= new
        closed = False
        for waiting in self._waiting.values():
            while rows := waiting.full() or (waiting.rows if whole else 0):
                self._close_segment(waiting, rows)
                closed = True
        if closed:
            _give_memory_back()
            rest = [(name, packed) for name, waiting in self._waiting.items() for packed in waiting.packed()]
            put_in_place(self._files, self._journal, frame(rest))

    def _close_segment(self, waiting: _WaitingRows, rows: int) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        table, columns = waiting.table, waiting.take(rows)
        texts = [c.name for c in table.columns if c.type is ColumnType.TEXT]
        sink = pa.BufferOutputStream()
        pq.write_table(
            _arrow_table(table, columns, _CODED),
            sink,
            compression="zstd" if rows >= _ZSTD_ROWS_MIN else "lz4",
            use_dictionary=texts,
            write_statistics=["seq", "t_ns"],
            store_schema=False,  # readers get plain texts
            column_encoding={c.name: _DELTA for c in table.columns if c.type is ColumnType.INT},
        )
        content = sink.getvalue().to_pybytes()
        file = f"{table.name}/seg-{waiting.segments:06d}.parquet"
        put_in_place(self._files, self._directory / file, content)
        seqs, times_ns = columns[table.index("seq")], columns[table.index("t_ns")]
        first, last, t_ns = (int(number) for number in (seqs[0], seqs[-1], times_ns[-1]))
        self._index.on_segment(
            SegmentEntry(table.name, file, len(seqs), first, last, t_ns, len(content), checksum(content))
        )
        waiting.segments += 1


def _give_memory_back() -> None:
    """Give back what Arrow has freed: it keeps it, a little more with each segment of a long run."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    pa.default_memory_pool().release_unused()
