"""Settings of the whole process that worlds need while they exist, however many, in whatever threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Undo = Callable[[], None]


class ProcessWide:
    """A setting that the first who needs it makes, and the last takes back.

    Args:
        make: makes the setting; returns what takes it back.
    """

    def __init__(self, make: Callable[[], Undo]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._holders = 0
        self._undo: Undo | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the setting is made."""
        with self._lock:
            if self._holders == 0:
                self._undo = self._make()
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0 and self._undo is not None:
                    self._undo()
