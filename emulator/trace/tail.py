"""Following a trace while it is written: its rows in the order in which they were recorded, each once.

At every instant the files hold all rows up to some row, so a place between two rows says what has been read, and
what follows it can be read again from any place, whoever read it before. Between two looks only the journal grows;
when segments close there is a new journal, and the trace is opened again.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import attrs

from emulator.trace.batches import Row
from emulator.trace.index import SegmentEntry
from emulator.trace.journal import JOURNAL, JournalFile
from emulator.trace.run_directory import DamagedRunError
from emulator.trace.schema import COUNTS, TABLES, TraceLevel, TraceTable
from emulator.trace.segments import FOLDER
from emulator.trace.stored import StoredTrace, stored_trace

_UNTIL_SEQ = COUNTS.index("until_seq")


@attrs.frozen
class TracePlace:
    """A place between two rows of a trace."""

    rows: int = 0
    """How many rows lie before it."""
    seq: int = 0
    """Seq of the last row before it that is not one of `counts`."""
    counted: int = 0
    """Seq of the last row of `counts` before it."""

    def after(self, table: str, seq: int) -> "TracePlace":
        """The place behind the next row.

        Args:
            table: name of its table.
            seq: of the row.
        """
        if table == COUNTS.name:
            return TracePlace(self.rows + 1, self.seq, seq)
        return TracePlace(self.rows + 1, seq, self.counted)

    def is_before(self, table: str, seq: int) -> bool:
        """Whether a row lies behind the place."""
        return seq > (self.counted if table == COUNTS.name else self.seq)


class TracedRow(NamedTuple):
    """A row of any table."""

    order: tuple[int, int]
    """Orders the rows of all tables as they were recorded; a row of `counts` follows the rows that it is about."""
    table: TraceTable
    row: Row


class TraceTail:
    """Reads the trace of a run that may be under way.

    Args:
        run: the run directory.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._place: TracePlace | None = None
        """Where `_rest` begins; None: nothing has been opened."""
        self._is_whole = False
        """Whether seqs have no gaps: no row is left out."""
        self._rest: Iterator[TracedRow] = iter(())
        self._journal: JournalFile | None = None

    def read(self, after: TracePlace, rows_max: int) -> tuple[list[TracedRow], TracePlace]:
        """Read the rows behind a place that are on disk.

        Args:
            after: where to begin; it costs least where the last call ended.
            rows_max: most rows to read.

        Returns:
            The rows in order, none if there is nothing new, and the place behind them.

        Raises:
            DamagedRunError: the journal was damaged, or rows are missing.
            OSError: the trace cannot be read.
        """
        if after != self._place:
            self._open(after)
        found = list(islice(self._rest, rows_max))
        if not found:
            self._look()
            found = list(islice(self._rest, rows_max))
        place = after
        for _, table, row in found:
            following = place.after(table.name, int(row[0]))
            if self._is_whole and following.seq != place.seq + 1:
                self._damaged(f"{following.seq - place.seq - 1} rows before seq {following.seq} are missing")
            place = following
        self._place = place
        return found, place

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()
        self._journal, self._place = None, None

    def _open(self, after: TracePlace) -> None:
        """Read all that is on disk; the journal is opened before, so it also has what comes meanwhile."""
        self.close()
        self._journal = JournalFile(self._run / FOLDER / JOURNAL)
        trace = stored_trace(self._run)
        if trace.damages:
            raise DamagedRunError(trace.damages)
        self._place, self._is_whole = after, trace.level is TraceLevel.FULL
        self._rest = merge(*(_rows_of(trace, table, after) for table in TABLES), key=attrgetter("order"))

    def _look(self) -> None:
        """Read what came since the last time."""
        place = self._place
        if self._journal is None or place is None:
            return
        if self._journal.is_replaced():
            self._open(place)
            return
        found = self._journal.read()
        if found.damage:
            self._damaged(found.damage)
        new = (_traced(table, found.rows[table.name], place) for table in TABLES)
        self._rest = merge(*new, key=attrgetter("order"))

    def _damaged(self, damage: str) -> None:
        raise DamagedRunError((f"{self._run / FOLDER / JOURNAL} is damaged: {damage}",))


def _rows_of(trace: StoredTrace, table: TraceTable, after: TracePlace) -> Iterator[TracedRow]:
    for entry in trace.segments[table.name]:
        if after.is_before(table.name, entry.last_seq):
            yield from _traced(table, _segment_rows(trace, entry), after)
    yield from _traced(table, trace.waiting[table.name], after)


def _segment_rows(trace: StoredTrace, entry: SegmentEntry) -> Iterator[Row]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - opening a run must not wait for Arrow

    for batch in pq.read_table(trace.path(entry)).to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _traced(table: TraceTable, rows: Iterable[Row], after: TracePlace) -> Iterator[TracedRow]:
    for row in rows:
        seq = int(row[0])
        if after.is_before(table.name, seq):
            yield TracedRow((int(row[_UNTIL_SEQ]), seq) if table is COUNTS else (seq, 0), table, row)
