"""A run directory: what was run, how it ended, and its trace.

The manifest is written last. A run without one was killed, or is still under way:
the index of its trace takes the place of the manifest.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.base.files import open_regular, read_bytes, resolved
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.index import INDEX
from emulator.trace.journal import JOURNAL
from emulator.trace.recorder import WRITE_EVERY_S
from emulator.trace.schema import LIFECYCLE, SCHEMA_VERSION, TraceLevel
from emulator.trace.seals import BrokenSealError, checksum_of_file, sealed, unsealed
from emulator.trace.segments import FOLDER
from emulator.trace.stored import StoredTrace, stored_trace

MANIFEST = "manifest.json"
LOG_FILE = "log.jsonl"
"""What nodes log, and the tracebacks of bugs."""
BY_HAND_FILE = "by_hand.toml"
"""A scenario that repeats the interactive faults."""
MANIFEST_KEYS = ("run_id", "schema_version", "digest", "seed", "mode", "rows", "virtual_s", "wall_s", "scenario")
_INDEX_SUM = "index_checksum"
LOG_SUM = "log_checksum"
"""Key of the manifest."""
COMMIT = "commit"
"""Key of the manifest and of the head: the commit of the emulator, with the version; earlier runs have none."""
RELEASE = "rocketmq-emulator"
"""The package of the emulator among the versions."""
_PACKAGES = (RELEASE, "trio", "msgpack", "pyarrow")


class RunEnd(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """An error ended it, such as a bug of the emulator."""
    KILLED = "killed"
    """It has no manifest: its emulator was killed, or could not write on."""
    UNDER_WAY = "under way"
    """It has no manifest yet."""


class NotARunError(UserError):
    """The directory is not a run that this version can read; the text says why in one line."""


class DamagedRunError(NotARunError):
    """Files of a run are missing or were changed; `lines` names each."""

    def __init__(self, damages: tuple[str, ...]) -> None:
        super().__init__("; ".join(damages))
        self._damages = damages

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per file."""
        return self._damages


@attrs.frozen
class RunDirectory:
    """One run on disk."""

    path: Path
    manifest: Mapping[str, Any]
    """Of a run without a manifest: what can be known instead, without a digest."""
    trace: StoredTrace = attrs.field(default=attrs.Factory(lambda self: stored_trace(self.path), takes_self=True))

    @property
    def run(self) -> str:
        """The run's id in analyses: the name of its directory."""
        return self.path.name

    @property
    def end_ns(self) -> int:
        """End of the run, in ns since it began."""
        return round(float(self.manifest["virtual_s"]) * 1e9)

    @property
    def level(self) -> TraceLevel:
        """Which rows the trace has."""
        return self.trace.level

    @property
    def ended(self) -> RunEnd:
        """How the run ended."""
        return RunEnd(self.manifest.get("ended", RunEnd.COMPLETE))

    def broken_off(self) -> str:
        """Why the run has no result, and what of it is there; empty if it is complete."""
        at = f"at {self.end_ns / 1e9:.1f} s"
        have = f"{sum(self.manifest['rows'].values()):,} rows up to {self.end_ns / 1e9:.1f} s are there"
        match self.ended:
            case RunEnd.COMPLETE:
                return ""
            case RunEnd.INTERRUPTED:
                return f"the run was interrupted {at}"
            case RunEnd.FAILED:
                return f"the run failed {at}"
            case RunEnd.UNDER_WAY:
                return f"the run is still under way: {have}"
            case RunEnd.KILLED:
                lost = f"at most the last {WRITE_EVERY_S:g} s of wall time is missing"
                return f"the emulator was killed or could not write on: {have}, {lost}"


def open_run(path: Path | str) -> RunDirectory:
    """Open a run, and check that all its files are as they were written.

    Args:
        path: the run directory, `runs/<run-id>`.

    Raises:
        NotARunError: there is neither a manifest nor an index, or the run has another schema version.
        DamagedRunError: files are missing or were changed.
    """
    directory = resolved(Path(path))
    try:
        content = read_bytes(directory / MANIFEST)
    except FileNotFoundError:
        return _without_manifest(path, directory)
    except OSError as error:
        raise NotARunError(f"{path} is not a readable run: {MANIFEST}: {error.strerror}") from None
    _refuse_other_version(path, _version_in(content))
    try:
        manifest = unsealed(content)
    except BrokenSealError as error:
        raise DamagedRunError((f"{directory / MANIFEST} is damaged: {error}",)) from None
    missing = [key for key in MANIFEST_KEYS if key not in manifest]
    if missing:
        raise NotARunError(f"{path} is not a complete run: {MANIFEST} lacks {', '.join(missing)}")
    index = directory / FOLDER / INDEX
    try:
        trace = stored_trace(directory)
        whole = checksum_of_file(index) == manifest.get(_INDEX_SUM)
    except OSError as error:
        raise DamagedRunError((_unreadable(index, error),)) from None
    damages = trace.check()
    if not whole and not trace.damages:
        damages = (f"{index} is damaged: it is not the one that {MANIFEST} names", *damages)
    if damages:
        raise DamagedRunError(damages)
    return RunDirectory(directory, manifest, trace)


def changed_log(run: Path) -> str:
    """What is wrong with the log of a run, from which no verdict follows; empty: nothing is known to be.

    The log of a run without a manifest is under no checksum.

    Args:
        run: the run directory.
    """
    try:
        expected = unsealed(read_bytes(run / MANIFEST)).get(LOG_SUM)
    except (OSError, BrokenSealError):
        return ""
    path = run / LOG_FILE
    try:
        return "" if not expected or checksum_of_file(path) == expected else f"{path} was changed after the run"
    except OSError as error:
        return _unreadable(path, error)


def open_trace(run: Path) -> StoredTrace:
    """Open the trace of a run to read a part of it: neither segments nor the manifest are read.

    Args:
        run: the run directory.

    Raises:
        NotARunError: there is no run, or it has another schema version.
        DamagedRunError: index or journal are missing or were changed.
    """
    index = run / FOLDER / INDEX
    try:
        ended = (run / MANIFEST).exists()
        trace = stored_trace(run)
    except (FileNotFoundError, NotADirectoryError):
        raise NotARunError(f"{run} is not a run: it has no {FOLDER}/{INDEX}") from None
    except OSError as error:
        raise DamagedRunError((_unreadable(index, error),)) from None
    if not trace.head:
        raise DamagedRunError(trace.damages or (f"{index} is damaged: it does not say what was run",))
    _refuse_other_version(run, trace.head.get("schema_version"))
    if trace.damages:
        raise DamagedRunError(trace.damages)
    if not ended and not trace.has_journal and not (run / MANIFEST).exists():
        raise DamagedRunError((f"{run / FOLDER / JOURNAL} is missing",))
    return trace


def _without_manifest(path: Path | str, directory: Path) -> RunDirectory:
    index = directory / FOLDER / INDEX
    try:
        under_way = _is_locked(index)
        trace = stored_trace(directory)
    except (FileNotFoundError, NotADirectoryError):
        raise NotARunError(f"{path} is not a run: it has neither {MANIFEST} nor {FOLDER}/{INDEX}") from None
    except OSError as error:
        raise DamagedRunError((_unreadable(index, error),)) from None
    if not trace.head:
        raise DamagedRunError(trace.damages or (f"{index} is damaged: it does not say what was run",))
    _refuse_other_version(path, trace.head.get("schema_version"))
    damages = trace.check()
    if not trace.has_journal:
        damages = (*damages, f"{directory / FOLDER / JOURNAL} is missing")
    counts = trace.counts()
    if not damages and (lacks := trace.missing_rows()):
        damages = (f"{directory / FOLDER / JOURNAL} is damaged: {lacks}",)
    if damages:
        raise DamagedRunError(damages)
    manifest = {
        **trace.head,
        "ended": RunEnd.UNDER_WAY if under_way else RunEnd.KILLED,
        "digest": "",
        "rows": counts,
        "virtual_s": trace.end_ns / 1e9,
        "wall_s": 0.0,
        "crashes": _crashes(trace),
    }
    return RunDirectory(directory, manifest, trace)


def _crashes(trace: StoredTrace) -> list[str]:
    rows = (row for table in trace.tables(LIFECYCLE) for row in table.to_pylist())
    return [f"{row['node']}: {row['detail']}" for row in rows if row["event"] == "crashed"]


def _refuse_other_version(path: Path | str, version: object) -> None:
    if version not in (None, SCHEMA_VERSION):
        raise NotARunError(
            f"{path} has trace schema version {version}, this program reads {SCHEMA_VERSION}: "
            "analyze it with the release that made it, or run its scenario again"
        )


def _version_in(manifest: bytes) -> object:
    """The schema version, which is read before the seal: other versions have other seals, or none."""
    try:
        content = json.loads(manifest)
    except (ValueError, RecursionError):
        return None
    return content.get("schema_version") if isinstance(content, dict) else None


def _unreadable(path: Path, error: OSError) -> str:
    where = error.filename or path  # the journal, which is read with the index
    return f"{where} is missing" if isinstance(error, FileNotFoundError) else f"{where}: {error.strerror}"


@contextmanager
def being_written(run: Path) -> Iterator[None]:
    """Inside the `with` block, and while the process lives, other processes see that the run is under way."""
    with open_regular(run / FOLDER / INDEX) as index:
        with suppress(OSError):  # a file system without locks: such a run looks killed until it has ended
            fcntl.flock(index, fcntl.LOCK_EX)
        yield


def is_under_way(run: Path) -> bool:
    """Whether an emulator still writes a run; what it has left after that does not change any more.

    Args:
        run: the run directory.

    Raises:
        OSError: there is no run any more.
    """
    return not (run / MANIFEST).exists() and _is_locked(run / FOLDER / INDEX)


def _is_locked(index: Path) -> bool:
    with open_regular(index) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def versions() -> dict[str, str]:
    """Versions of the packages on which a trace depends, besides seed and scenario."""
    return {package: _version(package) for package in _PACKAGES}


def write_manifest(directory: Path, manifest: Mapping[str, Any], files: RunFiles | None = None) -> None:
    """Write the manifest, which seals the index and itself.

    Raises:
        OSError: it cannot be written; there is no manifest.
    """
    whole = {**manifest, _INDEX_SUM: checksum_of_file(directory / FOLDER / INDEX)}
    put_in_place(files or RunFiles(), directory / MANIFEST, (sealed(whole, indent=2) + "\n").encode())


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
