"""Landing: run directories become files of a dataset, and a snapshot that lists them.

A landing has parts. The files of a part are written first, under names that no other landing uses, and then one
snapshot lists them all; so a landing that is killed leaves the snapshot before, and files that the next one removes.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import attrs
import pyarrow as pa

from emulator.base.errors import UserError
from emulator.lake.errors import DatasetError
from emulator.lake.exclusive import Claim, dead_claims, held
from emulator.lake.files import PartFiles, rows_with_run
from emulator.lake.filesystems import Location, located
from emulator.lake.layout import PART, RUNS, RUNS_SCHEMA, STORED, TRACE, FileEntry, RunEntry
from emulator.lake.run_rows import content_of, names_of, run_row
from emulator.lake.snapshot import Snapshot, files_there, read_snapshot
from emulator.lake.sources import SNAPSHOT, RunSource, parts_of, sources_of
from emulator.trace.run_directory import RunDirectory, RunEnd, open_run
from emulator.trace.schema import TABLES

_ABANDONED_S = 24 * 3600.0
"""Where there are no locks, a file of no snapshot is removed after this time: its landing may be under way."""

_PART_NAME = re.compile(rf"{PART}[0-9a-f]{{32}}-[0-9a-f]{{8}}-\d{{5,}}\.parquet")
_FOLDERS = tuple(stored.folder for stored in STORED.values())

OnRun = Callable[[RunSource], None]


@attrs.frozen
class RefusedSource:
    """A run directory that was not landed."""

    source: RunSource
    problem: str
    """One line."""


@attrs.frozen
class Landed:
    """What became of the runs of a part, or of a whole landing."""

    files: tuple[FileEntry, ...] = ()
    runs: tuple[RunEntry, ...] = ()
    """Those that are in `files`."""
    sources: tuple[RunSource, ...] = ()
    """The same."""
    skipped: tuple[str, ...] = ()
    """Names of runs that were in the dataset, with the same content."""
    refused: tuple[RefusedSource, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the trace."""
        return sum(entry.rows for entry in self.runs)

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(entry.bytes for entry in self.files)

    def and_then(self, other: "Landed") -> "Landed":
        """This and a later part."""
        return Landed(
            *(getattr(self, field.name) + getattr(other, field.name) for field in attrs.fields(Landed)),
        )


def land(
    paths: Iterable[Path | str | RunSource],
    uri: str | Path,
    *,
    on_run: OnRun | None = None,
    on_part: Callable[[Landed], None] | None = None,
) -> Landed:
    """Land run directories; the dataset is made if it does not exist.

    Args:
        paths: run directories, and folders of run directories.
        uri: of the dataset.
        on_run: called with each run whose rows have been written, or that was skipped or refused.
        on_part: called with each part when a snapshot lists it.

    Returns:
        What became of each run. Runs that cannot be read are refused, the others are landed.

    Raises:
        DatasetError: the dataset cannot be read or written; the parts before stay.
    """
    whole = Landed()
    with ParquetLanding(uri, on_run) as landing:
        for part in parts_of(sources_of(paths)):
            landed = landing.append(part)
            whole = whole.and_then(landed)
            if on_part is not None:
                on_part(landed)
    return whole


class ParquetLanding:
    """A landing: it appends parts until its `with` block ends.

    Args:
        uri: of the dataset.
        on_run: called with each run whose rows have been written, or that was skipped or refused.

    Raises:
        DatasetError: the dataset cannot be read or written; all methods may raise it.
    """

    def __init__(self, uri: str | Path, on_run: OnRun | None = None) -> None:
        self._on_run = on_run
        self._location = located(uri)
        there = read_snapshot(self._location)
        if there is None:
            _require_room(self._location)
        self._snapshot = there or Snapshot()
        self._claim = Claim(self._location)

    def __enter__(self) -> Self:
        with self._location.explained():
            self._claim.take()
            _remove_leftovers(self._location, self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error of the body matters more than files that no snapshot lists.
        with suppress(OSError, DatasetError):
            _remove_leftovers(self._location, self.name)
            self._claim.drop()

    @property
    def name(self) -> str:
        """Name of the landing, for `land_part`."""
        return self._claim.name

    def append(self, runs: Sequence[RunSource]) -> Landed:
        """Land runs as one part."""
        landed = Landed()
        waiting = tuple(runs)
        while waiting:
            part = land_part(
                waiting, self._location.uri, landing=self.name, snapshot=self._snapshot, on_run=self._on_run
            )
            lost: tuple[Landed, ...] = ()
            if part.runs:
                self._snapshot, lost = commit(self._location.uri, [part])
            # Runs that another landing has added meanwhile are skipped or refused the next time.
            waiting = tuple(source for other in lost for source in other.sources)
            landed = landed.and_then(attrs.evolve(part, files=(), runs=(), sources=()) if lost else part)
        return landed


def land_part(
    runs: Sequence[RunSource],
    uri: str | Path,
    *,
    landing: str = "",
    snapshot: Snapshot | None = None,
    on_run: OnRun | None = None,
) -> Landed:
    """Write the files of some runs, which no snapshot lists yet; a task can do it.

    Args:
        runs: to land.
        uri: of the dataset.
        landing: name of the `ParquetLanding` that will commit the part; without one, its files are removed after a day.
        snapshot: of the dataset; None: it is read.
        on_run: called with each run whose rows have been written, or that was skipped or refused.

    Returns:
        What `commit` takes.

    Raises:
        DatasetError: the files cannot be written.
    """
    location = located(uri)
    there = (read_snapshot(location) or Snapshot()) if snapshot is None else snapshot
    part = _LandedPart(location, there, f"{PART}{landing or uuid4().hex}-{uuid4().hex[:8]}")
    with location.explained():
        for source in sorted(runs, key=lambda run: run.run):
            part.add(source)
            if on_run is not None:
                on_run(source)
        return part.close()


class _LandedPart:
    """What becomes of the runs of a part."""

    def __init__(self, location: Location, snapshot: Snapshot, name: str) -> None:
        self._uri = location.uri
        self._files = PartFiles(location, name)
        self._known = dict(snapshot.runs)
        self._landed: dict[str, RunSource] = {}
        self._skipped: list[str] = []
        self._refused: list[RefusedSource] = []

    def add(self, source: RunSource) -> None:
        """Write the rows of a run, unless it is there or cannot be read."""
        run = _opened(source)
        if isinstance(run, RefusedSource):
            self._refused.append(run)
            return
        rows, digest = sum(run.trace.counts().values()), str(run.manifest["digest"])
        entry = RunEntry(source.run, rows, content_of(run), digest, *names_of(run))
        known = self._known.get(source.run)
        if known is None:
            self._write(run, source, entry)
        elif known.content == entry.content:
            self._skipped.append(source.run)
        else:
            self._refused.append(RefusedSource(source, f"{source.path}: {another_run(source.run, self._uri)}"))

    def _write(self, run: RunDirectory, source: RunSource, entry: RunEntry) -> None:
        try:
            row = pa.Table.from_pylist([run_row(run, source)], schema=RUNS_SCHEMA)
        except UserError as error:  # its scenario cannot be read by this release
            self._refused.append(RefusedSource(source, f"{source.path}: {error}"))
            return
        self._files.begin_run(run.trace.counts())
        for table in TABLES:
            for rows in rows_with_run(run.trace, table, source.run):
                self._files.add(table.name, source.run, rows)
        self._files.add(RUNS, source.run, row)
        self._known[source.run] = entry
        self._landed[source.run] = source

    def close(self) -> Landed:
        """End the files."""
        files = self._files.close()
        runs = tuple(self._known[name] for name in self._landed)
        return Landed(files, runs, tuple(self._landed.values()), tuple(self._skipped), tuple(self._refused))


def commit(uri: str | Path, parts: Sequence[Landed]) -> tuple[Snapshot, tuple[Landed, ...]]:
    """List parts in the snapshot of a dataset.

    Args:
        uri: of the dataset.
        parts: that `land_part` has written there.

    Returns:
        The new snapshot, and the parts that it does not list since another landing has added a run of theirs: their
        files are removed, and their runs can be landed again.

    Raises:
        DatasetError: the snapshot cannot be read or written.
    """
    location = located(uri)
    with location.explained(), held(location):
        before = read_snapshot(location) or Snapshot()
        after, lost = _with_parts(before, parts)
        if after != before:
            location.put(SNAPSHOT, after.content())
        _remove(location, [entry.file for part in lost for entry in part.files])
    return after, lost


def _with_parts(before: Snapshot, parts: Sequence[Landed]) -> tuple[Snapshot, tuple[Landed, ...]]:
    """The snapshot with the parts that have no run of it, and the other parts."""
    listed = {entry.file for entry in before.files}
    after, lost = before, []
    for part in parts:
        if part.files and all(entry.file in listed for entry in part.files):
            continue  # the driver of the tasks commits it again
        if any(entry.run in after.runs for entry in part.runs):
            lost.append(part)
        else:
            after = after.with_part(part.files, part.runs)
    return after, tuple(lost)


def _opened(source: RunSource) -> RunDirectory | RefusedSource:
    try:
        run = open_run(source.path)
    except UserError as error:
        return RefusedSource(source, "; ".join(error.lines))
    if run.ended is RunEnd.UNDER_WAY:
        return RefusedSource(source, f"{source.path} is still under way: land it when it has ended")
    return run


def another_run(run: str, uri: str) -> str:
    """Why a run is refused whose name another one has."""
    return f"{uri} has another run called {run}, and a landing replaces nothing: land it in another dataset"


def _require_room(location: Location) -> None:
    """Refuse to make a dataset in a directory that holds something else."""
    with location.explained():
        infos = location.listing()
    names = [info.base_name for info in infos if info.base_name not in (TRACE, RUNS)]
    # A landing that was killed before its first snapshot has left parts.
    names += [file for file in files_there(location) if not _is_part(file)]
    other = sorted(name for name in names if not name.startswith("."))
    if other:
        raise DatasetError(
            f"{location.uri} is no dataset, it holds {other[0]}: expected a dataset, or a directory that is empty"
        )


def _remove_leftovers(location: Location, name: str) -> None:
    """Remove the files of no snapshot: of a landing, of those that were killed, and what is old.

    Args:
        location: of the dataset.
        name: of the landing.
    """
    there = files_there(location)  # before the snapshot, which may list a file as soon as it is there
    listed = {entry.file for entry in (read_snapshot(location) or Snapshot()).files}
    dead = [[item] for item in (name, *dead_claims(location))]
    old_s = time.time() - _ABANDONED_S

    def is_left(file: str) -> bool:
        if not _is_part(file):
            return False
        return Path(file).name.split("-")[1:2] in dead or there[file].mtime.timestamp() < old_s

    _remove(location, [file for file in there if file not in listed and is_left(file)])


def _is_part(file: str) -> bool:
    """Whether a landing has named a file so; all others are of someone else."""
    return file.rpartition("/")[0] in _FOLDERS and _PART_NAME.fullmatch(Path(file).name) is not None


def _remove(location: Location, files: Iterable[str]) -> None:
    for file in files:
        with suppress(FileNotFoundError):
            location.remove(file)
