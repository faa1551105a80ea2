"""Landings at the same time: each has a name, and one at a time replaces the snapshot.

On this machine, locks of the file system say which landing still lives; they end with their process, however it ends.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from emulator.lake.filesystems import Location

_LOCK = ".lock"
_CLAIM = ".landing-"


class Claim:
    """The name of a landing, and a lock that lasts as long as it.

    Args:
        location: of the dataset.
    """

    def __init__(self, location: Location) -> None:
        self.name = uuid4().hex
        self._folder = location.local
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        """Lock the name; where there are no locks, nothing.

        Raises:
            OSError: the folder of the dataset cannot be written.
        """
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = self._path(self._folder).open("wb")
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
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except OSError:  # locked, gone meanwhile, or on a file system without locks
        return False
    return True


@contextmanager
def held(location: Location) -> Iterator[None]:
    """Inside the `with` block no other landing on this machine replaces the snapshot."""
    if location.local is None:
        yield
        return
    location.local.mkdir(parents=True, exist_ok=True)
    with (location.local / _LOCK).open("wb") as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
