"""Landings at the same time: each has a name, and one at a time replaces the snapshot.

Locks of a local file system end with their process, however it ends. Object stores have none, so landings take turns.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from emulator.base.files import open_regular, open_to_write
from emulator.lake.filesystems import Location

_LOCK = ".lock"
_CLAIM = ".landing-"
_TURNS = ".turns"
_CHOOSING, _NUMBER, _TRIED = "choosing-", "turn-", "written"
_LOOK_S = 0.1
_TURN_S = 60.0
"""A turn takes as long as writing a snapshot; a landing that is seen for longer was killed."""


class Claim:
    """The name of a landing, and a lock that lasts as long as it.

    Args:
        location: of the dataset.
    """

    def __init__(self, location: Location) -> None:
        self.name = uuid4().hex
        self._location = location
        self._folder = location.local
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        """Lock the name; where there are no locks, only find out whether files can be written.

        Raises:
            OSError: the folder of the dataset cannot be written.
        """
        if self._folder is None:
            _touch(self._location, self._location.at(f"{_TURNS}/{_TRIED}"))
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(open_to_write(self._path(self._folder), os.O_CREAT), "wb")
        with suppress(OSError):  # a file system without locks
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def drop(self) -> None:
        """Unlock the name; a folder to which nothing was added is removed."""
        if self._folder is not None and self._file is not None:
            self._path(self._folder).unlink(missing_ok=True)
            self._file.close()
            with suppress(OSError):  # it is not empty
                self._folder.rmdir()

    def _path(self, folder: Path) -> Path:
        return folder / f"{_CLAIM}{self.name}"


def dead_claims(location: Location) -> tuple[str, ...]:
    """Names of the landings whose process was killed; their claims are removed.

    Raises:
        OSError: they cannot be removed.
    """
    if location.local is None:
        return ()
    dead = [path for path in sorted(location.local.glob(f"{_CLAIM}*")) if _is_dead(path)]
    return tuple(path.name.removeprefix(_CLAIM) for path in dead)


def _is_dead(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except OSError:  # locked, gone meanwhile, or on a file system without locks
        return False
    return True


@contextmanager
def held(location: Location) -> Iterator[None]:
    """Inside the `with` block no other landing replaces the snapshot.

    Raises:
        OSError: the folder of the dataset cannot be written.
    """
    with ExitStack() as stack:
        if not _is_locked(location, stack):
            stack.enter_context(_turn(location))
        yield


def _is_locked(location: Location, stack: ExitStack) -> bool:
    """Wait for the lock of the file system, and hold it until the end of the stack; False: it has no locks."""
    if location.local is None:
        return False
    location.local.mkdir(parents=True, exist_ok=True)
    file = stack.enter_context(os.fdopen(open_to_write(location.local / _LOCK, os.O_CREAT), "wb"))
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_S)  # a call that blocks would never end if Ctrl-C came just before it
        except OSError:
            return False
        else:
            return True


@contextmanager
def _turn(location: Location) -> Iterator[None]:
    """Wait for a turn, where there are no locks: Lamport's bakery algorithm, with a file per landing.

    It needs of the file system that a file which was written is listed from then on, as object stores promise. A
    listing is in the order of names, so one without the file `choosing` of a landing has its number.
    """
    name, folder, files = uuid4().hex, location.at(_TURNS), location.filesystem
    choosing = f"{folder}/{_CHOOSING}{name}"
    _touch(location, choosing)
    number = f"{_NUMBER}{1 + max(map(_number_of, _listed(location)), default=0):06d}-{name}"
    _touch(location, f"{folder}/{number}")
    files.delete_file(choosing)
    try:
        _wait(location, number)
        yield
    finally:
        files.delete_file(f"{folder}/{number}")


def _wait(location: Location, number: str) -> None:
    """Wait until all landings with smaller numbers have had their turn; one that was killed has none any more."""
    first_seen_s: dict[str, float] = {}
    while before := [element for element in _listed(location) if element < number]:
        now_s = time.monotonic()
        for item in before:
            if now_s - first_seen_s.setdefault(item, now_s) > _TURN_S:
                with suppress(FileNotFoundError):
                    location.filesystem.delete_file(f"{location.at(_TURNS)}/{item}")
        time.sleep(_LOOK_S)


def _listed(location: Location) -> list[str]:
    return sorted(info.base_name for info in location.listing(_TURNS))


def _number_of(name: str) -> int:
    return int(name.split("-")[1]) if name.startswith(_NUMBER) else 0


def _touch(location: Location, path: str) -> None:
    location.require_own(f"{_TURNS}/{_TRIED}")
    if not location.puts_whole_files:
        location.filesystem.create_dir(location.at(_TURNS), recursive=True)
    with location.filesystem.open_output_stream(path) as stream:
        stream.write(b"-")
