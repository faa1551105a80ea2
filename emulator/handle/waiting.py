"""A line on stderr that says how far a long call is."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

_SILENT_S = 2.0
_REDRAWN_EVERY_S = 0.5
_BAR_CHARS = 30


class WaitingLine:
    """Appears when something takes longer than people wait without a sign, and goes when it is over.

    Args:
        share: how far it is, 0..1.
    """

    def __init__(self, share: Callable[[], float]) -> None:
        self._share = share
        self._begin_s = time.monotonic()
        self._shown = False
        self._next_s = _SILENT_S

    def __enter__(self) -> Self:
        return self

    def look(self) -> None:
        """Show how far it is, if it has lasted long enough."""
        lasted_s = time.monotonic() - self._begin_s
        if lasted_s >= self._next_s:
            self._next_s = lasted_s + _REDRAWN_EVERY_S
            share = min(max(self._share(), 0.0), 1.0)
            full = round(share * _BAR_CHARS)
            bar = "━" * full + "·" * (_BAR_CHARS - full)
            print(f"\r{bar} {share:4.0%} {lasted_s:4.0f} s", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._shown = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            print("\r" + " " * (_BAR_CHARS + 14) + "\r", end="", file=sys.stderr, flush=True)  # noqa: T201
