"""The operations on files with which a run is written, and nothing else that could fail on a disk.

What is made is for its owner alone, since a trace may hold what guests have sent.

Nothing is synced: what the kernel has been given survives the death of the
emulator (SIGKILL, a crash of Python), which is what a run promises. After a
power failure of the real machine, checksums report what is damaged.
"""

import os
from contextlib import suppress
from pathlib import Path

from emulator.base.files import open_to_write, require_place

OWNER_ALONE, OWNERS_FILE = 0o700, 0o600
"""Modes of directories and files: a trace may hold more than every user of the machine should read."""


class RunFiles:
    """Writes files below a run directory; every method may raise OSError."""

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents, unless it exists."""
        path.mkdir(parents=True, exist_ok=True)

    def make_new_directory(self, path: Path) -> None:
        """Create a directory, which must not exist, for its owner alone."""
        path.mkdir(OWNER_ALONE)

    def create(self, path: Path, content: bytes) -> None:
        """Create a file, or replace its content in place."""
        self._write_all(path, os.O_CREAT | os.O_TRUNC, content)

    def append(self, path: Path, content: bytes) -> None:
        """Append to a file, which must exist: a run directory that was removed is an error, not a new file."""
        self._write_all(path, os.O_APPEND, content)

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file, and replace the target."""
        path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        path.unlink(missing_ok=True)

    def write(self, descriptor: int, content: bytes) -> int:
        """Write the begin of `content`; returns how many bytes were written."""
        return os.write(descriptor, content)

    def _write_all(self, path: Path, flags: int, content: bytes) -> None:
        descriptor = open_to_write(path, flags, OWNERS_FILE)
        try:
            while content:
                content = content[self.write(descriptor, content) :]
        finally:
            os.close(descriptor)


class ScratchFiles(RunFiles):
    """Writes runs in a folder that another process may remove at any time: it is not created again."""

    def make_directory(self, path: Path) -> None:
        """Create a directory unless it exists; its parent must exist."""
        path.mkdir(exist_ok=True)


def put_in_place(files: RunFiles, path: Path, content: bytes) -> None:
    """Write a file under a hidden name and rename it, so that readers see all of it or none.

    Nothing is written through a link, and nothing but a regular file is replaced: not `/dev/null`, when root names it.

    Raises:
        OSError: it cannot be written; no part of it is left, as far as the disk allows.
    """
    hidden = path.with_name(f".{path.name}.tmp")
    require_place(path)
    require_place(hidden)
    try:
        files.create(hidden, content)
        files.rename(hidden, path)
    except OSError as error:
        with suppress(OSError):  # the first error says more, and no reader looks at hidden files
            files.remove(hidden)
        error.filename, error.filename2 = str(path), None  # a full disk names none, a rename two
        raise
