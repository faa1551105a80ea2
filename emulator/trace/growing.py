"""The trace of a run that may be under way, as often as somebody looks: what is new costs what is new.

Between two looks only the journal grows; when segments close there is a new journal, and the trace is opened again.
"""

from pathlib import Path

from emulator.trace.journal import JOURNAL, JournalFile
from emulator.trace.run_directory import MANIFEST, DamagedRunError, open_trace
from emulator.trace.schema import TraceTable
from emulator.trace.segments import FOLDER
from emulator.trace.stored import StoredTrace


class GrowingTrace:
    """The trace of one run.

    Args:
        run: the run directory.

    Raises:
        NotARunError: there is no run, or it has another schema version; `look` may raise all of them.
        DamagedRunError: index or journal are missing or were changed.
        OSError: they cannot be read.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self._journal: JournalFile | None = None
        self.trace: StoredTrace
        """What was on disk at the last look."""
        self.ended = False
        """Whether nothing more will come: the run has its manifest."""
        self._open()

    def look(self) -> None:
        """Read what is new."""
        if self.ended:
            return
        journal = self._journal
        if journal is None or not journal.is_there or journal.is_replaced() or (self.run / MANIFEST).exists():
            self._open()
        else:
            self._read_journal(journal)

    def rows(self, table: TraceTable) -> int:
        """Number of rows of a table."""
        return sum(entry.rows for entry in self.trace.segments[table.name]) + len(self.trace.waiting[table.name])

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None

    def _open(self) -> None:
        self.close()
        # Asked first: after its manifest, a run has no further row.
        self.ended = (self.run / MANIFEST).exists()
        if not self.ended:
            # Opened before the trace is read, so it also has what comes meanwhile.
            self._journal = JournalFile(self.run / FOLDER / JOURNAL)
        self.trace = open_trace(self.run)

    def _read_journal(self, journal: JournalFile) -> None:
        found = journal.read()
        if found.damage:
            raise DamagedRunError((f"{self.run / FOLDER / JOURNAL} is damaged: {found.damage}",))
        for table, waiting in self.trace.waiting.items():
            segments = self.trace.segments[table]
            last = int(waiting[-1][0]) if waiting else segments[-1].last_seq if segments else 0
            waiting += [row for row in found.rows[table] if int(row[0]) > last]
