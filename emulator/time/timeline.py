"""What will happen when: every timer of the emulated world in one ordered heap.

trio's own deadlines are not used inside the emulation: their ties break by
memory address, and they cannot wait for a suspended process.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from nodes.cause import NO_CAUSE, cause

NEVER_NS = 1 << 62
"""Later than anything that will happen."""


class Owner(Protocol):
    """Whose timer it is; a process that does not run holds back what falls due."""

    def admits(self, entry: "Entry") -> bool:
        """Whether the timer may fire now; the owner keeps it for later, or for good, where not."""

    def crash(self, error: Exception) -> None:
        """Its own code raised when the timer fired."""


EPOCH_MS = 1_735_689_600_000
"""Wall clock at the beginning of every run in virtual time: 2025-01-01T00:00:00Z."""


class Entry:
    """One call that will happen, in the order of (instant, order of creation)."""

    __slots__ = ("callback", "cause", "owner")

    def __init__(self, callback: Callable[[], None], owner: Owner | None, cause_seq: int) -> None:
        self.callback: Callable[[], None] | None = callback
        self.owner = owner
        self.cause = cause_seq

    def cancel(self) -> None:
        """Forget the call."""
        self.callback = None

    def fire(self) -> None:
        """Make the call, once, with the cause that it was created under."""
        callback = self.callback
        if callback is not None:
            self.callback = None
            cause.set(self.cause)
            try:
                callback()
            except Exception as error:
                if self.owner is None:
                    raise
                self.owner.crash(error)


class Timeline:
    """The instants at which something falls due, and the present one.

    Args:
        epoch_ms: what wall clocks show at its beginning, milliseconds since 1970.
    """

    __slots__ = ("_created", "_heap", "epoch_ms", "now_ns")

    def __init__(self, epoch_ms: int = EPOCH_MS) -> None:
        self.epoch_ms = epoch_ms
        self.now_ns = 0
        self._heap: list[tuple[int, int, Entry]] = []
        self._created = 0

    def call_at(
        self, due_ns: int, callback: Callable[[], None], owner: Owner | None = None, cause_seq: int = NO_CAUSE
    ) -> Entry:
        """Have `callback` called at `due_ns`, at once if that is past."""
        entry = Entry(callback, owner, cause_seq)
        self.add(due_ns, entry)
        return entry

    def add(self, due_ns: int, entry: Entry) -> None:
        """Have an entry fired at `due_ns`, at once if that is past."""
        self._created += 1
        heappush(self._heap, (due_ns, self._created, entry))

    def next_due_ns(self) -> int:
        """The next instant at which something falls due, `NEVER_NS` if nothing does."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heappop(heap)
        return heap[0][0] if heap else NEVER_NS

    def fire_due(self) -> None:
        """Make every call that is due by now, those that fall due meanwhile included."""
        heap = self._heap
        while heap and heap[0][0] <= self.now_ns:
            entry = heappop(heap)[2]
            if entry.callback is None:
                continue
            if entry.owner is None or entry.owner.admits(entry):
                entry.fire()
