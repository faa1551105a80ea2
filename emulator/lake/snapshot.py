"""The snapshot of a dataset: `dataset.json` lists the files that belong to it.

It is replaced as a whole, and files are only added, so a reader sees the dataset before a landing or after it. A file
that no snapshot lists does not belong to the dataset.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from emulator.lake.errors import DamagedDatasetError, DatasetError, NoDatasetError
from emulator.lake.filesystems import Location, located
from emulator.lake.footers import footer_problem
from emulator.lake.layout import FORMAT_VERSION, RUNS, STORED, TRACE, FileEntry, RunEntry, entry_of
from emulator.lake.sources import SNAPSHOT
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.seals import BrokenSealError, running_checksum, sealed, unsealed
from nodes.fields import quoted

_WITHOUT_DIGESTS = 1
"""The format before: its runs name neither campaign nor scenario."""
_PIECE = 4 * 1024 * 1024


@attrs.frozen
class Snapshot:
    """What a dataset has at an instant."""

    files: tuple[FileEntry, ...] = ()
    runs: Mapping[str, RunEntry] = attrs.Factory(dict)
    """Mapping run -> its entry, sorted by name."""

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases of the emulator that executed the runs, sorted."""
        return tuple(sorted(dict.fromkeys(entry.release for entry in self.runs.values())))

    def with_part(self, files: Iterable[FileEntry], runs: Iterable[RunEntry]) -> "Snapshot":
        """The snapshot with further files, and the runs that are in them."""
        every = {**self.runs, **{entry.run: entry for entry in runs}}
        return Snapshot((*self.files, *files), dict(sorted(every.items())))

    def content(self) -> bytes:
        """The bytes of `dataset.json`."""
        plain: dict[str, Any] = {"format_version": FORMAT_VERSION, "schema_version": SCHEMA_VERSION}
        plain["files"] = [attrs.asdict(entry) for entry in self.files]
        plain["runs"] = [attrs.asdict(entry) for entry in self.runs.values()]
        return f"{sealed(plain)}\n".encode()


def read_snapshot(location: Location) -> Snapshot | None:
    """The snapshot of a dataset; None: there is none.

    Raises:
        DatasetError: it is damaged, has another version, or cannot be read.
    """
    with location.explained():
        if location.filesystem.get_file_info(location.at(SNAPSHOT)).type is fs.FileType.NotFound:
            _require_container(location)
            return None
        content = location.read(SNAPSHOT)
    return _parsed(location, content)


def _require_container(location: Location) -> None:
    """Refuse a place in a bucket that does not exist: nothing can be read or written there."""
    if isinstance(location.filesystem, fs.S3FileSystem):
        bucket = location.path.partition("/")[0]
        if location.filesystem.get_file_info(bucket).type is fs.FileType.NotFound:
            raise DatasetError(f"{location.uri}: there is no bucket {bucket}")


def _parsed(location: Location, content: bytes) -> Snapshot:
    try:
        plain = unsealed(content)
    except BrokenSealError as error:
        raise DamagedDatasetError((f"{location.uri_of(SNAPSHOT)} is damaged: {error}",)) from None
    readable = {"format_version": (FORMAT_VERSION, _WITHOUT_DIGESTS), "schema_version": (SCHEMA_VERSION,)}
    for key, (now, *before) in readable.items():
        if plain.get(key) not in (now, *before):
            subject = f"{'trace schema' if key == 'schema_version' else 'dataset format'} version {plain.get(key)}"
            raise DatasetError(
                f"{location.uri} has {subject}, this program has {now}: use the release that made it, or land its runs "
                "in another dataset"
            )
    try:
        files = tuple(entry_of(FileEntry, item) for item in plain["files"])
        runs = {entry.run: entry for entry in (entry_of(RunEntry, item) for item in plain["runs"])}
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedDatasetError((f"{location.uri_of(SNAPSHOT)} is damaged: {error}",)) from None
    return Snapshot(files, runs)


@attrs.frozen(slots=False)
class Dataset:
    """A dataset as its snapshot was when it was opened."""

    location: Location
    snapshot: Snapshot

    @property
    def uri(self) -> str:
        """Where it lies, for Spark."""
        return self.location.uri

    @property
    def filesystem(self) -> Any:
        """The file system of pyarrow."""
        return self.location.filesystem

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs, sorted."""
        return tuple(self.snapshot.runs)

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases of the emulator that executed the runs, sorted."""
        return self.snapshot.releases

    @cached_property
    def rows(self) -> int:
        """Rows of all tables of the trace."""
        return sum(entry.rows for entry in self.snapshot.runs.values())

    def files(self, table: str) -> tuple[str, ...]:
        """The files of a table as URIs for Spark; empty where no run has a row of it.

        Raises:
            KeyError: there is no such table.
        """
        return tuple(self.location.uri_of(entry.file) for entry in self._entries(table))

    def paths(self, table: str) -> tuple[str, ...]:
        """The files of a table as paths in `filesystem`.

        Raises:
            KeyError: there is no such table.
        """
        return tuple(self.location.at(entry.file) for entry in self._entries(table))

    def table(self, name: str) -> Any:
        """All rows of a table as an Arrow table: for datasets that fit into memory.

        Raises:
            KeyError: there is no such table.
        """
        schema = STORED[name].schema
        with self.location.explained():
            parts = [pq.read_table(path, filesystem=self.filesystem).cast(schema) for path in self.paths(name)]
        return pa.concat_tables([schema.empty_table(), *parts])

    def check(self) -> None:
        """Compare the content of every file with its checksum: reads all of them.

        Raises:
            DamagedDatasetError: files are missing or were changed.
        """
        changed = [entry for entry in self.snapshot.files if self._checksum(entry) != entry.checksum]
        if changed:
            uris = (self.location.uri_of(entry.file) for entry in changed)
            raise DamagedDatasetError(tuple(f"{uri} is damaged: its content was changed" for uri in uris))

    def _checksum(self, entry: FileEntry) -> str:
        running = running_checksum()
        with self.location.explained(), self.filesystem.open_input_stream(self.location.at(entry.file)) as stream:
            while piece := stream.read(_PIECE):
                running.update(piece)
        return running.hexdigest()

    def _entries(self, table: str) -> list[FileEntry]:
        if table not in STORED:
            raise KeyError(f"a dataset has no table {table}; it has {', '.join(STORED)}")
        return [entry for entry in self.snapshot.files if entry.table == table]


def open_dataset(uri: str | Path) -> Dataset:
    """Open a dataset, and check that all its files are there with their sizes.

    Args:
        uri: of its directory: a path, or a URI with file:, s3:, s3a: or hdfs:.

    Raises:
        NoDatasetError: there is none, or it has no run.
        DamagedDatasetError: files are missing or were changed.
        DatasetError: it has another version, or cannot be read.
    """
    location = located(uri)
    snapshot = read_snapshot(location)
    if snapshot is None:
        raise NoDatasetError(f"{location.uri} is no dataset: it has no {SNAPSHOT}; rmqemu land makes one")
    if not snapshot.runs:
        raise NoDatasetError(f"{location.uri} is an empty dataset: no run has been landed")
    damages = tuple(_damages(location, snapshot))
    if damages:
        raise DamagedDatasetError(damages)
    return Dataset(location, snapshot)


def sizes_there(location: Location) -> dict[str, int]:
    """Mapping path in the dataset -> bytes, of all files of its tables, listed or not."""
    return {file: info.size for file, info in files_there(location).items()}


def files_there(location: Location) -> dict[str, Any]:
    """Mapping path in the dataset -> pyarrow's `FileInfo`, of all files of its tables, listed or not.

    Raises:
        DatasetError: they cannot be listed.
    """
    found: dict[str, Any] = {}
    with location.explained():
        for folder in (TRACE, RUNS):
            for info in location.listing(folder, recursive=True):
                if info.type is fs.FileType.File:
                    found[info.path[len(location.path) + 1 :]] = info
    return found


def _damages(location: Location, snapshot: Snapshot) -> Iterable[str]:
    if problem := _contradiction(snapshot):
        yield f"{location.uri_of(SNAPSHOT)} is damaged: {problem}"
        return
    there = sizes_there(location)
    for entry in snapshot.files:
        size, uri = there.get(entry.file), location.uri_of(entry.file)
        if size is None:
            yield f"{uri} is missing"
        elif size != entry.bytes:
            yield f"{uri} is damaged: it has {size} bytes in place of {entry.bytes}"
        elif location.local is not None and (problem := footer_problem(location.local / entry.file, entry)):
            yield f"{uri} is damaged: {problem}"


def _contradiction(snapshot: Snapshot) -> str:
    """In what the parts of a snapshot contradict each other; empty if in nothing."""
    if len(dict.fromkeys(entry.file for entry in snapshot.files)) < len(snapshot.files):
        return "it lists a file twice"
    named = (name for entry in snapshot.files for name in (entry.first_run, entry.last_run))
    if (unknown := next((name for name in named if name not in snapshot.runs), None)) is not None:
        return f"it has a file of the run {quoted(unknown)}, which it does not list"
    of_runs = sum(entry.rows for entry in snapshot.files if entry.table == RUNS)
    if of_runs != len(snapshot.runs):
        return f"it lists {len(snapshot.runs)} runs, and files with {of_runs}"
    rows = sum(entry.rows for entry in snapshot.files if entry.table != RUNS)
    of_entries = sum(entry.rows for entry in snapshot.runs.values())
    return "" if rows == of_entries else f"its runs have {of_entries} rows, and its files {rows}"
