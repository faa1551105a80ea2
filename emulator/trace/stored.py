"""What of a trace is on disk: closed segments, the rows of the journal, and what is damaged."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.base.files import DATA_BYTES_MAX, LISTING_BYTES_MAX, read_bytes, require_regular
from emulator.trace.batches import Row, columns_of
from emulator.trace.index import INDEX, Index, SegmentEntry, read_index
from emulator.trace.journal import JOURNAL, Journal, read_journal
from emulator.trace.schema import COUNTS, TABLES, TraceLevel, TraceTable
from emulator.trace.seals import checksum
from emulator.trace.segments import FOLDER, arrow_table

_ATTEMPTS = 100
_NO_ROWS = Journal({table.name: [] for table in TABLES}, "", 0)


class DamagedSegmentError(UserError):
    """A closed segment is missing or was changed; the text names it."""


@attrs.frozen
class StoredTrace:
    """The files of a trace at one instant; later ones of a run under way are not seen."""

    folder: Path
    head: Mapping[str, Any]
    """What was run, as the index says."""
    segments: Mapping[str, tuple[SegmentEntry, ...]]
    """Mapping table -> closed segments in order."""
    waiting: Mapping[str, list[Row]]
    """Mapping table -> rows in order that are in no closed segment."""
    has_journal: bool
    damages: tuple[str, ...]
    """What is damaged in index and journal, one line per file."""

    @property
    def level(self) -> TraceLevel:
        """Which rows the trace has."""
        return TraceLevel(self.head.get("trace", TraceLevel.FULL))

    def paths(self, table: TraceTable) -> list[Path]:
        """The files of the closed segments of a table, in order.

        Raises:
            OSError: one is missing, or no regular file.
        """
        return [self.path(entry) for entry in self.segments[table.name]]

    def path(self, entry: SegmentEntry) -> Path:
        """The file of a closed segment, for a library that opens it by its path.

        Raises:
            OSError: it is missing, or no regular file.
        """
        path = self.folder / entry.file
        require_regular(path)
        return path

    def counts(self) -> dict[str, int]:
        """Mapping table -> number of rows."""
        return {
            name: sum(entry.rows for entry in entries) + len(self.waiting[name])
            for name, entries in self.segments.items()
        }

    @property
    def end_ns(self) -> int:
        """Emulated time of the last row; 0 without rows."""
        ends = [entries[-1].t_ns for entries in self.segments.values() if entries]
        return max([*ends, *(int(rows[-1][1]) for rows in self.waiting.values() if rows)], default=0)

    @property
    def last_seq(self) -> int:
        """Seq of the last row; 0 without rows."""
        ends = [entries[-1].last_seq for entries in self.segments.values() if entries]
        return max([*ends, *(int(rows[-1][0]) for rows in self.waiting.values() if rows)], default=0)

    def tables(self, table: TraceTable, **options: Any) -> Iterator[Any]:
        """The rows of a table as Arrow tables, in order.

        Args:
            table: of the schema.
            options: of `pyarrow.parquet.read_table`; `columns` and `filters` are applied to waiting rows, too.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 - opening a run must not wait for Arrow

        for path in self.paths(table):
            yield pq.read_table(path, **options)
        if self.waiting[table.name]:
            found = self.waiting_table(table)
            if options.get("filters"):
                found = found.filter(pq.filters_to_expression(options["filters"]))
            yield found if options.get("columns") is None else found.select(options["columns"])

    def waiting_table(self, table: TraceTable) -> Any:
        """The waiting rows of a table as an Arrow table."""
        return arrow_table(table, columns_of(table, self.waiting[table.name]))

    def missing_rows(self) -> str:
        """Which rows are missing before the newest one, for people; empty: none. It reports only of whole files."""
        until_seq = self.last_seq
        have = sum(self.counts().values())
        if self.level is not TraceLevel.FULL:
            counted = [part for part in self.tables(COUNTS, columns=["until_seq", "rows"]) if len(part)]
            until_seq = counted[-1]["until_seq"][-1].as_py() if counted else 0
            written = [self._rows_until(table, until_seq) for table in self.level.tables if table is not COUNTS]
            have = sum(written) + sum(sum(part["rows"].to_pylist()) for part in counted)
        lacks = until_seq - have
        return f"{lacks} rows before seq {until_seq} are missing" if lacks else ""

    def _rows_until(self, table: TraceTable, seq: int) -> int:
        return sum(len(part) for part in self.tables(table, columns=["seq"], filters=[("seq", "<=", seq)]))

    def check(self) -> tuple[str, ...]:
        """What is damaged, one line per file: reads every segment."""
        found = list(self.damages)
        for entries in self.segments.values():
            found += [problem for entry in entries if (problem := self._problem(entry))]
        return tuple(found)

    def _problem(self, entry: SegmentEntry) -> str:
        try:
            self.content(entry)
        except DamagedSegmentError as error:
            return str(error)
        return ""

    def content(self, entry: SegmentEntry) -> bytes:
        """The file of a closed segment, which is as it was written.

        Raises:
            DamagedSegmentError: it is missing or was changed.
        """
        path = self.folder / entry.file
        try:
            content = read_bytes(path, DATA_BYTES_MAX)
        except FileNotFoundError:
            raise DamagedSegmentError(f"{path} is missing") from None
        except OSError as error:
            raise DamagedSegmentError(f"{path} cannot be read: {error.strerror}") from None
        if len(content) != entry.bytes:
            raise DamagedSegmentError(f"{path} is damaged: it has {len(content)} bytes in place of {entry.bytes}")
        if checksum(content) != entry.checksum:
            raise DamagedSegmentError(f"{path} is damaged: its content was changed")
        return content


def integers(column: Any) -> Sequence[int]:
    """The numbers of a column of an Arrow table, which has no nulls, without a copy where it is one piece."""
    whole = column.combine_chunks()
    numbers = whole.buffers()[1]
    if numbers is None:  # no rows
        return ()
    return memoryview(numbers).cast("q")[whole.offset : whole.offset + len(whole)]


def stored_trace(run: Path) -> StoredTrace:
    """Read what is on disk of the trace of a run, finished, under way or killed.

    Args:
        run: the run directory.

    Raises:
        OSError: there is no index, or it cannot be read.
    """
    folder = run / FOLDER
    path = folder / INDEX
    content = read_bytes(path, LISTING_BYTES_MAX)
    for _ in range(_ATTEMPTS):
        journal = _journal(folder / JOURNAL)
        before, content = content, read_bytes(path, LISTING_BYTES_MAX)
        if content == before:  # no segment has closed meanwhile, so the journal has every row that none has
            break
    return _stored(folder, read_index(content), journal)


def closed_trace(run: Path) -> StoredTrace:
    """Read which segments of a run have been closed; rows that wait for a segment are left out.

    Args:
        run: the run directory.

    Raises:
        OSError: there is no index, or it cannot be read.
    """
    folder = run / FOLDER
    return _stored(folder, read_index(read_bytes(folder / INDEX, LISTING_BYTES_MAX)), None)


def _stored(folder: Path, index: Index, journal: Journal | None) -> StoredTrace:
    damages = [f"{folder / INDEX} is damaged: {damage}" for damage in index.damages[:1]]
    if journal is not None and journal.damage:
        damages.append(f"{folder / JOURNAL} is damaged: {journal.damage}")
    rows = (journal or _NO_ROWS).rows
    closed = {table: entries[-1].last_seq if entries else 0 for table, entries in index.segments.items()}
    waiting = {table: [row for row in rows[table] if int(row[0]) > closed[table]] for table in rows}
    return StoredTrace(folder, index.head, index.segments, waiting, journal is not None, tuple(damages))


def _journal(path: Path) -> Journal | None:
    try:
        return read_journal(read_bytes(path, DATA_BYTES_MAX))
    except FileNotFoundError:
        return None
