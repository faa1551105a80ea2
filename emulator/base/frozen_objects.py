"""Objects that stay for long, and that no garbage collection visits meanwhile.

Python reports how many objects are frozen by counting them: a tenth of a second for those of a big process, which is a
quarter of a short run. So the code that freezes them here is known, and nothing is counted.
"""

import gc

from emulator.base.process_wide import ProcessWide, Undo


class _FrozenObjects:
    """What `frozen_objects` froze."""

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
