"""The checkpoint of somebody who follows a run: how far its rows have been reported.

The place behind the last row that was reported is written after each look, and rows before it are not reported again.

The state of the watchers is stored now and then, so that a restart reads few rows again. One that is damaged, or of
another release or of another user, is left out: then the rows are read from the first one on.
"""

import fcntl
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from emulator.analysis.live.changes import LiveWatch
from emulator.base.errors import UserError
from emulator.base.files import DATA_BYTES_MAX, open_regular, open_to_write, read_bytes
from emulator.base.own_values import ForeignValueError
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.index import INDEX
from emulator.trace.run_directory import RunDirectory, versions
from emulator.trace.seals import BrokenSealError, checksum, sealed, unsealed
from emulator.trace.segments import FOLDER
from emulator.trace.tail import TracePlace

PROGRESS = "watch.json"
WATCH = "watch.state"
_LOCK = "lock"
_RELEASE = "rocketmq-emulator"


class CheckpointError(UserError):
    """A folder is no checkpoint, or that of another run; the text says why in one line."""


@attrs.frozen
class RunProgress:
    """How far a run has been reported."""

    place: TracePlace = TracePlace()
    t_ns: int = 0
    """Emulated time of the last row before the place."""
    rested: bool = False
    """Whether the changes of the last row's instant have been reported, too, since no other row came for a while."""


@attrs.frozen
class StoredWatch:
    """The watchers as they were at a place."""

    before: TracePlace
    """The place before their last row."""
    place: TracePlace
    watch: LiveWatch


class Checkpoint:
    """The checkpoint of a run.

    Args:
        folder: it is created by `claim`.
        run: that is followed.

    Raises:
        CheckpointError: the folder is no checkpoint of this run.
        OSError: it cannot be read.
    """

    def __init__(self, folder: Path, run: RunDirectory) -> None:
        self.folder = folder.absolute()
        self._run = run
        self._lock: BinaryIO | None = None
        self.progress = self._read()
        """How far the run has been reported."""

    def claim(self) -> None:
        """Create the folder if there is none, and keep others out until this process ends.

        Raises:
            CheckpointError: another process uses it.
            OSError: it cannot be created.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.fdopen(open_to_write(self.folder / _LOCK, os.O_CREAT), "wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{self.folder} is the checkpoint of a watch that is under way") from None
        self.progress = self._read()
        self.save(self.progress)

    def release(self) -> None:
        """Let others use it."""
        if self._lock is not None:
            self._lock.close()

    def save(self, progress: RunProgress) -> None:
        """Write how far the run has been reported.

        Raises:
            OSError: it cannot be written.
        """
        put_in_place(RunFiles(), self.folder / PROGRESS, sealed({**self._of(), **attrs.asdict(progress)}).encode())
        self.progress = progress

    def save_watch(self, stored: StoredWatch) -> None:
        """Write the state of the watchers, in place of an earlier one; not for a user without a key.

        Raises:
            OSError: it cannot be written.
        """
        state = zlib.compress(stored.watch.state(), 1)
        head = {"release": versions()[_RELEASE], "state": checksum(state), **self._of()}
        head |= {"before": attrs.asdict(stored.before), "place": attrs.asdict(stored.place)}
        put_in_place(RunFiles(), self.folder / WATCH, sealed(head).encode() + b"\n" + state)

    def stored_watch(self) -> StoredWatch | None:
        """The watchers that were stored last; None: there are none of this run and release.

        Raises:
            CheckpointError: the file names something else than values of watchers.
        """
        try:
            line, _, state = read_bytes(self.folder / WATCH, DATA_BYTES_MAX).partition(b"\n")
            head = unsealed(line)
        except (OSError, BrokenSealError):
            return None
        expected = {"release": versions()[_RELEASE], "state": checksum(state), **self._of()}
        if any(head.get(key) != value for key, value in expected.items()):
            return None
        try:
            places = _place(head["before"]), _place(head["place"])
            return StoredWatch(*places, LiveWatch.restored(_unpacked(state)))
        except (KeyError, TypeError, zlib.error, ForeignValueError) as error:
            raise CheckpointError(f"{self.folder / WATCH}: {error}; remove the folder to begin again") from None

    def other_run(self) -> CheckpointError:
        """The error of a checkpoint whose run is another one."""
        return CheckpointError(f"{self.folder} is the checkpoint of another run than {self._run.path}")

    def _of(self) -> dict[str, Any]:
        """What reports runs apart before any of their rows does."""
        with open_regular(self._run.path / FOLDER / INDEX) as index:
            return {"run": self._run.manifest["run_id"], "head": checksum(index.readline())}

    def _read(self) -> RunProgress:
        try:
            answer = unsealed(read_bytes(self.folder / PROGRESS))
        except FileNotFoundError:
            if self.folder.exists() and any(item.name != _LOCK for item in self.folder.iterdir()):
                raise CheckpointError(
                    f"{self.folder} is no checkpoint: expected an empty folder, or a new one"
                ) from None
            return RunProgress()
        except BrokenSealError as error:
            raise CheckpointError(f"{self.folder / PROGRESS} is damaged: {error}") from None
        if any(answer.get(key) != value for key, value in self._of().items()):
            raise self.other_run()
        try:
            return RunProgress(_place(answer["place"]), _number(answer["t_ns"]), bool(answer["rested"]))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{self.folder / PROGRESS} is damaged: {error}") from None


def _place(written: Mapping[str, Any]) -> TracePlace:
    """The place that was written as JSON.

    Raises:
        TypeError: it is none.
    """
    return TracePlace(**{name: _number(value) for name, value in dict(written).items()})


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"expected a number, not {value!r:.40}")
    return value


def _unpacked(state: bytes) -> bytes:
    """What was compressed, if it is no more than may be read.

    Raises:
        ForeignValueError: it is more.
        zlib.error: it was not compressed.
    """
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(state, DATA_BYTES_MAX)
    if unpacking.unconsumed_tail:
        raise ForeignValueError(f"expected a state of at most {DATA_BYTES_MAX} bytes")
    return content
