"""Reading files that people name: regular files of a bounded size, in UTF-8."""

import stat
from pathlib import Path


class UnreadableError(Exception):
    """A file cannot be read; the text says why."""


def read_text(path: Path, bytes_most: int) -> str:
    """The text of a regular file.

    Nothing else is read: a pipe without a writer would wait for ever, and a device may have no end.

    Args:
        path: of the file.
        bytes_most: size of the largest file that is read.

    Raises:
        UnreadableError: it does not exist, is no regular file, is too large, or is not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnreadableError("expected a regular file")
        with path.open("rb") as file:
            content = file.read(bytes_most + 1)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from None
    except ValueError:  # a path with a NUL
        raise UnreadableError("expected the path of a file") from None
    if len(content) > bytes_most:
        raise UnreadableError(f"expected at most {bytes_most} bytes")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"expected UTF-8: byte {error.start} is not") from None
