"""Settings of the whole process that one or more worlds need, each in its own thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Undo = Callable[[], None]


class ProcessWide:
    """A setting that the first holder makes and the last holder undoes.

    Args:
        make: makes the setting; returns a function that undoes it.
    """

    def __init__(self, make: Callable[[], Undo]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._holders = 0
        self._undo: Undo | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the setting inside the `with` block; safe in several threads."""
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
