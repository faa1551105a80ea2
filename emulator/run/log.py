"""The log of a run: structlog events as JSON lines, with emulated names and no wall clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

_PROCESSORS: Any = [structlog.processors.add_log_level, structlog.processors.JSONRenderer(sort_keys=True)]


@contextmanager
def run_log(path: Path) -> Iterator[Any]:
    """Yields the logger of one run, which writes to `path`; there may be several runs in one process."""
    with path.open("w", encoding="utf-8") as file:
        yield structlog.wrap_logger(structlog.PrintLogger(file), processors=_PROCESSORS)


@contextmanager
def open_log(path: Path) -> Iterator[None]:
    """Inside, everything that nodes log goes to `path`."""
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
