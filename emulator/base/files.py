"""The one place that opens files which others may have made: regular files of a bounded size, no link on writing.

A run directory, a campaign or a dataset may come from somebody else, and so may each file in it. A pipe without a
writer would wait for ever, a device may have no end, and a link may lead out of the directory. So a file is read only
if it is a regular file, be it through links, as people link data that lies on another disk; and what is written is
never written through a link.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
"""Size of the largest JSON document that is read: manifest, head of a campaign, line of a part. It may take 20 times as
much memory."""
LISTING_BYTES_MAX = 512 * 1024 * 1024
"""Size of the largest list that grows with what there is: index of a trace, snapshot of a dataset, gold."""
DATA_BYTES_MAX = 1024 * 1024 * 1024
"""Size of the largest file of rows that is read: segment, journal, log."""
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link, through which nothing is written"),
)
_NEVER_WAITS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnreadableError(Exception):
    """A file cannot be read; the text says why."""


class UnexpectedFileError(OSError):
    """There is something else than the file that was expected; `strerror` says what, `filename` where."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it.

    Raises:
        UnexpectedFileError: it is no regular file.
        OSError: it does not exist, or cannot be read.
    """
    # Asked before it is opened, since opening some devices does something, and again of what was opened.
    require_regular(path)
    descriptor = os.open(path, os.O_RDONLY | _NEVER_WAITS)
    try:
        _require_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(path: Path) -> None:
    """Refuse what is no regular file, before a library opens it by its path.

    Raises:
        UnexpectedFileError: it is no regular file.
        OSError: it does not exist.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise UnexpectedFileError(
                errno.EINVAL, "expected a regular file, not a link to nothing", str(path)
            ) from None
        raise
    except ValueError:  # a path with a NUL
        raise UnexpectedFileError(errno.EINVAL, "expected the path of a file", str(path)) from None
    _require_regular(found, path)


def read_bytes(path: Path, bytes_max: int = DOCUMENT_BYTES_MAX) -> bytes:
    """The content of a regular file.

    Args:
        path: of the file.
        bytes_max: size of the largest file that is read.

    Raises:
        UnexpectedFileError: it is no regular file, or is too large.
        OSError: it does not exist, or cannot be read.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > bytes_max:
            raise _too_large(path, bytes_max)
        content = file.read(bytes_max + 1)
    if content is None:  # a file of the kernel that has nothing to read now
        raise UnexpectedFileError(errno.EAGAIN, "expected a regular file, not one without an end", str(path))
    if len(content) > bytes_max:
        raise _too_large(path, bytes_max)
    return content


def read_lines(path: Path, begin: int = 0) -> Iterator[bytes]:
    """The whole lines of a regular file of any size, without their ends; what follows the last end is left out.

    Args:
        path: of the file.
        begin: where the first line begins, in bytes.

    Raises:
        UnexpectedFileError: it is no regular file, or a line has more than `DOCUMENT_BYTES_MAX` bytes.
        OSError: it does not exist, or cannot be read.
    """
    with open_regular(path) as file:
        file.seek(begin)
        while line := file.readline(DOCUMENT_BYTES_MAX + 1):
            if len(line) > DOCUMENT_BYTES_MAX:
                problem = f"expected lines of at most {DOCUMENT_BYTES_MAX} bytes"
                raise UnexpectedFileError(errno.EFBIG, problem, str(path))
            if not line.endswith(b"\n"):
                return  # it is being written, or was cut off
            yield line[:-1]


def read_text(path: Path, bytes_max: int) -> str:
    """The text of a regular file.

    Args:
        path: of the file.
        bytes_max: size of the largest file that is read.

    Raises:
        UnreadableError: it does not exist, is no regular file, is too large, or is not UTF-8.
    """
    try:
        content = read_bytes(path, bytes_max)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"expected UTF-8: byte {error.start} is not") from None


def open_to_write(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a regular file to write it, never through a link; returns its descriptor.

    Args:
        path: of the file.
        flags: such as `os.O_CREAT | os.O_APPEND`; `os.O_WRONLY` is always set.
        mode: of a file that is created.

    Raises:
        UnexpectedFileError: there is something else than a regular file.
        OSError: it cannot be opened.
    """
    require_place(path)
    # Truncated when it is known what was opened.
    opening = (flags & ~os.O_TRUNC) | os.O_WRONLY | os.O_NOFOLLOW | _NEVER_WAITS
    descriptor = os.open(path, opening, mode)
    try:
        _require_regular(os.fstat(descriptor), path)
        if flags & os.O_TRUNC:
            _truncate(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_place(path: Path) -> None:
    """Refuse a path at which no file can be written or replaced: there is a link, a pipe, a device or a directory.

    Raises:
        UnexpectedFileError: there is something else than a regular file.
    """
    with suppress(FileNotFoundError):
        _require_regular(path.lstat(), path)


def require_own_folder(path: Path) -> None:
    """Refuse a folder inside a directory of ours that leads elsewhere: nothing is listed, written or removed there.

    Raises:
        UnexpectedFileError: there is a link, or a file.
    """
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            kind = "a link" if stat.S_ISLNK(found.st_mode) else "a file"
            raise UnexpectedFileError(errno.ENOTDIR, f"expected a folder, not {kind}", str(path))


def require_own_tree(path: Path) -> None:
    """Refuse a folder, if there is one, in which anything is a link: a library that writes there would follow it.

    Raises:
        UnexpectedFileError: there is a link, or a file in the place of the folder.
    """
    require_own_folder(path)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            found = Path(folder, name)
            if found.is_symlink():
                raise UnexpectedFileError(errno.EINVAL, "expected no link in this folder", str(found))


def resolved(path: Path) -> Path:
    """The absolute path without links; of what is none, the path as it is."""
    try:
        return path.resolve()
    except (RuntimeError, ValueError):  # ValueError: a path with a NUL
        return path.absolute()


def _require_regular(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for holds, name in _KINDS if holds(found.st_mode)), "something else")
        code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise UnexpectedFileError(code, f"expected a regular file, not {kind}", str(path))


def _truncate(descriptor: int, path: Path) -> None:
    if os.fstat(descriptor).st_nlink > 1:
        raise UnexpectedFileError(errno.EMLINK, "expected a file of its own, not a hard link", str(path))
    os.ftruncate(descriptor, 0)


def _too_large(path: Path, bytes_max: int) -> UnexpectedFileError:
    return UnexpectedFileError(errno.EFBIG, f"expected at most {bytes_max} bytes", str(path))
