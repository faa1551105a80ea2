"""A run that grows step by step: the rows of a run that was run, written again by the emulator's own writer."""

from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.batches import batch_of
from emulator.trace.run_directory import being_written, open_run, write_manifest
from emulator.trace.schema import TraceLevel
from emulator.trace.segments import SegmentWriter
from emulator.trace.tail import TracePlace, TraceTail
from support.rmqemu_process import write_small


def executed(folder, level=TraceLevel.FULL, **changes):
    """A finished run of the small scenario: a member is killed after a loss of frames."""
    folder.mkdir(exist_ok=True)
    return open_run(run_scenario(load(write_small(folder, **changes)), level=level, runs=folder).path)


def rows_of(path):
    """All rows of a run, in order."""
    return TraceTail(path).read(TracePlace(), 1_000_000)[0]


class GrowingRun:
    """A run under way that has the rows of another one, up to where the test has let it grow.

    Args:
        path: the run directory.
        source: run whose rows it gets.
        head: of the index, instead of what it would say.
    """

    def __init__(self, path: Path, source, **head):
        path.mkdir(parents=True)
        self.path = path
        self.rows = rows_of(source.path)
        self.written = 0
        self._source = source
        retained = ("run_id", "schema_version", "seed", "mode", "trace", "addresses", "versions", "scenario")
        self._writer = SegmentWriter(path, {key: source.manifest[key] for key in retained} | head)

    def grow(self, rows):
        """Write so many more rows, as the emulator does once a second."""
        new = self.rows[self.written : self.written + rows]
        self.written += len(new)
        for table, of_table in groupby(sorted(new, key=lambda item: item.table.name), key=attrgetter("table")):
            self._writer.write(batch_of(table, [item.row for item in of_table]))
        self._writer.save()

    def end(self):
        """Write the rest, and the manifest."""
        self.grow(len(self.rows))
        self._writer.close_segments()
        write_manifest(self.path, {key: value for key, value in self._source.manifest.items() if key != "seal"})
        self._writer.remove_journal()


@contextmanager
def growing(path, source, **head):
    """A run that another process would call under way, inside the `with` block."""
    run = GrowingRun(path, source, **head)
    with being_written(path):
        yield run
