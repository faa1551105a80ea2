"""Where the nodes of a study log, which has no run directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog


@contextmanager
def open_log(path: Path) -> Iterator[None]:
    """Have all structlog loggers of the process write JSON lines to `path`, inside the `with` block."""
    with path.open("w", encoding="utf-8") as file:
        structlog.configure(
            processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer(sort_keys=True)],
            logger_factory=structlog.PrintLoggerFactory(file),
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            structlog.reset_defaults()
