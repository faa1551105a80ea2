"""Garbage collection: rare while a world runs, and made when it has left much behind."""

import gc

from emulator.base.process_wide import ProcessWide, Undo, is_frozen

_MIN = 10_000
"""Objects that are always tolerated, a MB or two: a collection would take longer than a short run gains by it."""
_GARBAGE_THRESHOLD = 2_000_000
"""Net allocations between collections; Python's default takes a third of the start of 300 consumers, and with 100,000
a run takes a tenth more. What a world leaves while it is under way is collected by `Garbage`."""
_OBJECTS_LEFT_MAX = 10_000
"""Objects left by ended worlds, about 1 kB each, after which they are collected."""


class Garbage:
    """Collects the garbage of a world that goes on, when there may be much of it.

    What has ended refers to itself: a node and its parts, the two ends of a connection, an exception and its frames. So
    only a collection frees it, and collections by themselves are rare while a world runs (`rare_garbage_collection`).
    One is made here when the objects of the process have become half as many again; so it takes a constant share of
    the time, and garbage a constant share of the memory.
    """

    def __init__(self) -> None:
        self._alive = 0
        """Objects that were left by the last collection."""

    def collect_if_much(self) -> None:
        """Collect, if many objects have been made since the last time and are still there."""
        if gc.get_count()[0] > max(_MIN, self._alive // 2):
            gc.collect()
            self._alive = len(gc.get_objects())  # without those that are frozen


class _RareGarbageCollection:
    """Makes garbage collection rare: a big cluster has many long-lived objects and few cycles.

    A world that has ended is one of those cycles. It is collected while everything older is still frozen, so the
    collection visits nothing but what the run has left. Most processes run one scenario and end, so the first world is
    collected when a second run begins, as is what an error or a result has retained of a world.

    A process may freeze by itself what it has before its runs. That stays frozen, so no collection ever visits it.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._left = 0
        """Objects that the runs since the last whole collection have left."""
        self._collections = 0
        """Whole collections of this process at the end of the last run."""

    def begin(self) -> Undo:
        before = gc.get_threshold()
        freezes = not is_frozen()
        if self._left > _OBJECTS_LEFT_MAX:
            if _whole_collections() == self._collections:  # no one has collected meanwhile
                gc.collect()
            self._left = 0
        if freezes:
            gc.freeze()
        gc.set_threshold(_GARBAGE_THRESHOLD, *before[1:])

        def undo() -> None:
            if not self._is_first:
                gc.collect()
            self._is_first = False
            gc.set_threshold(*before)
            if freezes:
                self._left += len(gc.get_objects())  # without the frozen ones
                gc.unfreeze()
            self._collections = _whole_collections()

        return undo


def _whole_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])


rare_garbage_collection = ProcessWide(_RareGarbageCollection().begin).held
"""Decorates what runs a world; when it returns, nothing should hold the world any more."""
