"""Settings of the whole process: garbage that is looked for rarely, objects that are frozen, and what worlds need.

Several worlds may run in one process, each in its own thread.
"""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Undo = Callable[[], None]
_NEW_OBJECTS_MAX = 20_000
"""So many objects more than were freed make Python look for garbage. By default, 700, it looks a hundred times while
the command line is imported, and a hundred times while two runs are judged, which make objects that stay."""


def look_for_garbage_rarely() -> None:
    """Let this process, a command or a worker of Spark, look for garbage only after many new objects."""
    gc.set_threshold(_NEW_OBJECTS_MAX)


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


class _FrozenObjects:
    """Whether `frozen_objects` has frozen objects, which stay for long: no garbage collection visits them meanwhile.

    Python reports how many objects are frozen by counting them: a tenth of a second for those of a big process, which
    is a quarter of a short run. So the code that freezes them here is known, and nothing is counted.
    """

    def __init__(self) -> None:
        self.are_there = False

    def begin(self) -> Undo:
        if gc.get_freeze_count():  # by somebody else, who thaws them
            return lambda: None
        gc.collect()
        gc.freeze()
        self.are_there = True
        return self._thaw

    def _thaw(self) -> None:
        gc.unfreeze()
        self.are_there = False


_OURS = _FrozenObjects()
frozen_objects = ProcessWide(_OURS.begin).held
"""Freezes all objects of the process, if nothing is frozen yet, until the last `with` block ends."""


def is_frozen() -> bool:
    """Whether objects of this process are frozen, by `frozen_objects` or by somebody else."""
    return _OURS.are_there or gc.get_freeze_count() > 0
