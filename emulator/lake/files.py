"""Writes the files of one part of a landing: a file per table until it is full, in row groups of bounded memory."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.lake.filesystems import Location
from emulator.lake.layout import ROWS_PER_FILE, ROWS_PER_GROUP, RUN, STORED, FileEntry, Stored
from emulator.trace.schema import TraceTable
from emulator.trace.seals import running_checksum
from emulator.trace.stored import StoredTrace

_BYTES_PER_GROUP = 64 * 1024 * 1024
"""Of Arrow memory: a row group of long beliefs ends sooner than one of short rows."""
_BYTES_WAITING = 256 * 1024 * 1024
"""The same of all tables of a part together."""


class _Sink:
    """A file that counts and digests what is written to it, in the form that pyarrow takes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._running = running_checksum()
        self.bytes = 0
        self.closed = False

    def write(self, content: Any) -> int:
        self._stream.write(content)
        self._running.update(content)
        self.bytes += len(content)
        return len(content)

    def flush(self) -> None:
        self._stream.flush()

    def tell(self) -> int:
        return self.bytes

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.close()

    @property
    def checksum(self) -> str:
        return self._running.hexdigest()


class _TableFiles:
    """The files of one table of a part.

    Args:
        location: of the dataset.
        stored: the table.
        name: of its files, without what numbers them.
    """

    def __init__(self, location: Location, stored: Stored, name: str) -> None:
        self._location = location
        self._stored = stored
        self._name = name
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0
        self._rows = 0
        """Of the open file."""
        self._runs: list[str] = []
        """First and last run of the open file; empty: no file is open."""
        self._file = ""
        self._sink: _Sink | None = None
        self._writer: Any = None
        self.entries: list[FileEntry] = []

    def begin_run(self, rows: int) -> None:
        """Begin a new file if a run does not fit into the open one."""
        if self._runs and self._rows + self._waiting_rows + rows > ROWS_PER_FILE:
            self.close()

    def add(self, run: str, rows: pa.Table) -> None:
        """Append rows of a run, behind those of runs with smaller names."""
        if rows.num_rows and self._rows + self._waiting_rows >= ROWS_PER_FILE:
            self.close()
        if rows.num_rows:
            self._runs = [self._runs[0] if self._runs else run, run]
            self._waiting.append(rows)
            self._waiting_rows += rows.num_rows
            self.waiting_bytes += rows.nbytes
        if self._waiting_rows >= ROWS_PER_GROUP or self.waiting_bytes >= _BYTES_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits as a row group."""
        if not self._waiting:
            return
        if self._writer is None:
            self._open()
        self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=ROWS_PER_GROUP)
        self._rows += self._waiting_rows
        self._waiting.clear()
        self._waiting_rows = self.waiting_bytes = 0

    def close(self) -> None:
        """Write what waits, and end the open file."""
        self.flush()
        if self._sink is None:
            return
        sink = self._sink
        self._writer.close()
        sink.close()
        self._location.sync(self._file)
        first, last = self._runs
        self.entries.append(
            FileEntry(self._stored.name, self._file, self._rows, sink.bytes, sink.checksum, first, last)
        )
        self._sink = self._writer = None
        self._runs, self._rows = [], 0

    def _open(self) -> None:
        self._file = f"{self._stored.folder}/{self._name}-{len(self.entries):05d}.parquet"
        self._sink = _Sink(self._location.create(self._file))
        self._writer = pq.ParquetWriter(self._sink, self._stored.schema, **self._stored.options())


class PartFiles:
    """The files of one part, for all tables.

    Args:
        location: of the dataset.
        name: of the part, which no other has.
        tables: mapping name -> table.

    Raises:
        OSError: a file cannot be written; all methods may raise it.
    """

    def __init__(self, location: Location, name: str, tables: Mapping[str, Stored] = STORED) -> None:
        self._tables = {table: _TableFiles(location, stored, name) for table, stored in tables.items()}

    def begin_run(self, rows_of: dict[str, int]) -> None:
        """Begin new files for the tables in which a run does not fit into the open one.

        Args:
            rows_of: mapping table -> rows of the run.
        """
        for table, rows in rows_of.items():
            self._tables[table].begin_run(rows)

    def add(self, table: str, run: str, rows: pa.Table) -> None:
        """Append rows of a run; those of smaller names, and of smaller seqs, come before."""
        self._tables[table].add(run, rows)
        while sum(files.waiting_bytes for files in self._tables.values()) > _BYTES_WAITING:
            max(self._tables.values(), key=lambda files: files.waiting_bytes).flush()

    def close(self) -> tuple[FileEntry, ...]:
        """End all files.

        Returns:
            The entry of each.
        """
        for files in self._tables.values():
            files.close()
        return tuple(entry for files in self._tables.values() for entry in files.entries)


def rows_with_run(trace: StoredTrace, table: TraceTable, run: str) -> Iterator[pa.Table]:
    """The rows of a table of a run directory as they are stored in a dataset, segment by segment.

    Args:
        trace: of the run.
        table: of the schema.
        run: name of the run.
    """
    schema = STORED[table.name].schema
    for rows in _segments(trace, table):
        names = pa.array([run], pa.string())
        column = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows), names)
        yield rows.add_column(0, pa.field(RUN, column.type, nullable=False), column).cast(schema)


def _segments(trace: StoredTrace, table: TraceTable) -> Iterator[pa.Table]:
    for path in trace.paths(table):
        # A segment is small: `read_table` would take longer to begin than to read.
        with pq.ParquetFile(path) as file:
            yield file.read(use_threads=False)
    if trace.waiting[table.name]:
        yield trace.waiting_table(table)
