"""What a run has left behind while it goes on: processes, connections and exceptions that have ended."""

import gc

_MIN = 10_000
"""Objects that are always tolerated, a MB or two: a collection would take longer than a short run gains by it."""


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
