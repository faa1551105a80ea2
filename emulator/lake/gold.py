"""Gold on disk: what was found in the runs of a dataset, a Parquet directory per table.

    GOLD/
        gold.json                     the snapshot: which files gold has, and which runs they are about
        <table>/part-<task>-*.parquet

Each table has `run` and `seed` in front, and then the columns of `emulator.analysis.arrow_tables`. Tasks write files;
they belong to gold once the snapshot lists them, which is replaced as a whole.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from emulator.analysis.arrow_tables import RUNS, TABLES, schema_of_runs, with_run
from emulator.lake.errors import DamagedDatasetError, DatasetError
from emulator.lake.exclusive import held
from emulator.lake.files import PartFiles
from emulator.lake.filesystems import Location, located
from emulator.lake.footers import footer_problem
from emulator.lake.layout import FileEntry, RunEntry, Stored, entry_of
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.seals import BrokenSealError, sealed, unsealed

FORMAT_VERSION = 4
GOLD = "gold.json"
GOLD_FOLDER = "gold"
"""Where gold lies in a dataset unless another place is named."""
GOLD_TABLES: Mapping[str, Stored] = {name: Stored(name, name, schema_of_runs(name)) for name in (RUNS, *TABLES)}
"""Mapping name -> how a gold table is stored."""


class JudgedMeanwhileError(DatasetError):
    """Gold has a run that was about to be added, since another program was faster; nothing was added."""


@attrs.frozen(repr=False)
class Gold:
    """What gold has at an instant."""

    location: Location
    files: tuple[FileEntry, ...] = ()
    runs: Mapping[str, str] = attrs.Factory(dict)
    """Mapping run -> checksum of its content when it was judged (`RunEntry.content`), sorted."""

    def __repr__(self) -> str:
        return f"gold of {len(self.runs):,} run{'s' if len(self.runs) != 1 else ''} in {self.location.uri}"

    def uris(self, table: str) -> tuple[str, ...]:
        """The files of a table as URIs for Spark; empty where nothing was found.

        Raises:
            KeyError: there is no such table.
        """
        return tuple(self.location.uri_of(entry.file) for entry in self._entries(table))

    def table(self, name: str) -> Any:
        """All rows of a table as an Arrow table, for gold that fits into memory; the rows of a run are in their order.

        Raises:
            KeyError: there is no such table.
            DatasetError: it cannot be read.
        """
        paths = [self.location.at(entry.file) for entry in self._entries(name)]
        schema = GOLD_TABLES[name].schema
        with self.location.explained():
            parts = [pq.read_table(path, filesystem=self.location.filesystem).cast(schema) for path in paths]
        return pa.concat_tables([schema.empty_table(), *parts])

    def lacks(self, runs: Mapping[str, RunEntry]) -> tuple[str, ...]:
        """Which runs of a dataset have not been judged, in their order.

        Raises:
            DatasetError: it has the judgement of another run under the same name.
        """
        for run, entry in runs.items():
            if self.runs.get(run, entry.content) != entry.content:
                raise DatasetError(
                    f"{self.location.uri} has the judgement of another run {run}, of another campaign or scenario: "
                    "remove it, and the runs are judged again"
                )
        return tuple(run for run in runs if run not in self.runs)

    def _entries(self, table: str) -> list[FileEntry]:
        if table not in GOLD_TABLES:
            raise KeyError(f"gold has no table {table}; it has {', '.join(GOLD_TABLES)}")
        return [entry for entry in self.files if entry.table == table]


def write_part(location: Location, judged: Iterable[tuple[str, int, Mapping[str, pa.Table]]]) -> tuple[FileEntry, ...]:
    """Write the gold tables of some runs; a task calls it.

    Args:
        location: where gold lies.
        judged: (run, seed, tables of `tables_of`) of each, in the order of their names.

    Raises:
        OSError: a file cannot be written.
    """
    files = PartFiles(location, f"part-{uuid.uuid4().hex}", GOLD_TABLES)
    for run, seed, tables in judged:
        for name in GOLD_TABLES:
            files.add(name, run, with_run(name, tables[name], run, seed))
    return files.close()


def read_gold(location: Location) -> Gold:
    """What gold has; nothing where there is none.

    Raises:
        DatasetError: it is damaged, has another version, or cannot be read.
    """
    with location.explained():
        if location.filesystem.get_file_info(location.at(GOLD)).type is fs.FileType.NotFound:
            return Gold(location)
        content = location.read(GOLD)
    try:
        plain = unsealed(content)
    except BrokenSealError as error:
        raise DamagedDatasetError((f"{location.uri_of(GOLD)} is damaged: {error}",)) from None
    if (plain.get("format_version"), plain.get("schema_version")) != (FORMAT_VERSION, SCHEMA_VERSION):
        raise DatasetError(f"{location.uri} was judged by another release: write gold to another place")
    try:
        files = tuple(entry_of(FileEntry, item, GOLD_TABLES) for item in plain["files"])
        runs = {str(run): str(content) for run, content in plain["runs"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedDatasetError((f"{location.uri_of(GOLD)} is damaged: {error}",)) from None
    gold = Gold(location, files, runs)
    with location.explained():
        for entry in gold.files:
            location.require_own(entry.file)
    _require_files(gold)
    return gold


def gold_of(dataset: Location) -> Gold:
    """What the gold of a dataset has.

    Raises:
        DatasetError: as `read_gold`.
    """
    return read_gold(gold_place(dataset))


def gold_place(dataset: Location) -> Location:
    """Where gold lies in a dataset.

    Raises:
        DatasetError: a link leads elsewhere.
    """
    with dataset.explained():
        dataset.require_own(f"{GOLD_FOLDER}/{GOLD}")
    return located(dataset.uri_of(GOLD_FOLDER))


def commit_gold(location: Location, files: Sequence[FileEntry], runs: Sequence[RunEntry]) -> Gold:
    """Add files and runs to gold, which other programs may do at the same time.

    Args:
        location: where gold lies.
        files: that `write_part` has written there.
        runs: that they are about.

    Raises:
        JudgedMeanwhileError: gold has one of the runs; the files are removed.
        DatasetError: the snapshot cannot be read or written.
    """
    with location.explained(), held(location):
        before = read_gold(location)
        if any(entry.run in before.runs for entry in runs):
            for file in files:
                location.remove(file.file)
            raise JudgedMeanwhileError(f"{location.uri} was judged by another program meanwhile: judge once more")
        judged = {**before.runs, **{entry.run: entry.content for entry in runs}}
        after = attrs.evolve(before, files=(*before.files, *files), runs=dict(sorted(judged.items())))
        plain: dict[str, Any] = {"format_version": FORMAT_VERSION, "schema_version": SCHEMA_VERSION}
        plain |= {"files": [attrs.asdict(entry) for entry in after.files], "runs": after.runs}
        location.put(GOLD, f"{sealed(plain)}\n".encode())
    return after


def _require_files(gold: Gold) -> None:
    with gold.location.explained():
        infos = gold.location.filesystem.get_file_info([gold.location.at(entry.file) for entry in gold.files])
    damages = []
    for entry, info in zip(gold.files, infos, strict=True):
        if info.type is fs.FileType.NotFound:
            damages.append(f"{gold.location.uri_of(entry.file)} is missing")
        elif info.size != entry.bytes:
            damages.append(f"{gold.location.uri_of(entry.file)} is damaged: expected {entry.bytes} bytes")
        elif (folder := gold.location.local) is not None and (
            problem := footer_problem(folder / entry.file, entry, GOLD_TABLES)
        ):
            damages.append(f"{gold.location.uri_of(entry.file)} is damaged: {problem}")
    if damages:
        raise DamagedDatasetError(tuple(damages))
