"""The log of a run, and of a process that runs worlds without a run directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from emulator.trace.files import RunFiles

LOG_FILE = "log.jsonl"
"""Name of the file in a run directory."""
_PROCESSORS: Any = [structlog.processors.add_log_level, structlog.processors.JSONRenderer(sort_keys=True)]


class RunLog:
    """The log of one run: JSON lines with emulated time and seq; there may be several runs in one process.

    Args:
        path: of the file.
        files: to write with.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, files: RunFiles) -> None:
        self._path = path
        self._files = files
        self._broken = False
        self.on_error: Callable[[OSError], None] | None = None
        """Called if a line cannot be written, instead of raising in the node that logs; nothing is written then."""
        self.now: Callable[[], tuple[int, int]] | None = None
        """Emulated ns, and the seq of the last row, for each line; None: the run has not begun."""
        processors = [self._stamp, *_PROCESSORS]
        self.logger: Any = structlog.wrap_logger(structlog.WriteLogger(self), processors=processors)  # type: ignore[arg-type]
        files.create(path, b"")

    def _stamp(self, _logger: Any, _method: str, line: dict[str, Any]) -> dict[str, Any]:
        if self.now is not None:
            now_ns, seq = self.now()
            line |= {"t_s": now_ns / 1e9, "seq": seq}
        return line

    def write(self, text: str) -> None:
        """Append lines."""
        if self._broken:
            return
        try:
            self._files.append(self._path, text.encode(errors="replace"))
        except OSError as error:
            self._broken = True
            if self.on_error is None:
                raise
            self.on_error(error)

    def flush(self) -> None:
        """Every line is written at once."""


@contextmanager
def open_log(path: Path) -> Iterator[None]:
    """Have all structlog loggers of the process write JSON lines to `path`, inside the `with` block."""
    with path.open("w", encoding="utf-8") as file:
        structlog.configure(
            processors=_PROCESSORS,
            logger_factory=structlog.PrintLoggerFactory(file),
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            structlog.reset_defaults()
