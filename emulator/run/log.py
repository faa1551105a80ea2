"""The log of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from emulator.trace.files import RunFiles
from emulator.trace.seals import running_checksum

_PROCESSORS: Any = [structlog.processors.add_log_level, structlog.processors.JSONRenderer(sort_keys=True)]


class RunLog:
    """The log of one run: JSON lines with emulated time and seq; there may be several runs in one process.

    Args:
        path: of the file.
        files: to write with.
        on_error: called if a line cannot be written, instead of raising in the node that logs; nothing is written then.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, files: RunFiles, on_error: Callable[[OSError], None]) -> None:
        self._path = path
        self._files = files
        self._broken = False
        self._on_error = on_error
        self._running = running_checksum()
        files.create(path, b"")

    @property
    def checksum(self) -> str:
        """Of all lines so far, for the manifest; empty: a line could not be written."""
        return "" if self._broken else self._running.hexdigest()

    def logger(self, stamp: Callable[[], tuple[int, int]] | None = None) -> Any:
        """A logger of lines.

        Args:
            stamp: emulated ns, and the seq of the last row, for each line; None: the run has not begun.
        """

        def stamped(_logger: Any, _method: str, line: dict[str, Any]) -> dict[str, Any]:
            if stamp is not None:
                now_ns, seq = stamp()
                line |= {"t_s": now_ns / 1e9, "seq": seq}
            return line

        processors: list[Any] = [stamped, *_PROCESSORS]
        return structlog.wrap_logger(structlog.WriteLogger(self), processors=processors)  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """Append lines."""
        if self._broken:
            return
        content = text.encode(errors="replace")
        try:
            self._files.append(self._path, content)
            self._running.update(content)
        except OSError as error:
            self._broken = True
            self._on_error(error)

    def flush(self) -> None:
        """Every line is written at once."""
