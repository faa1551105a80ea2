"""The timeline: every timer of the emulated world in one ordered heap.

trio's own deadlines are not used inside the emulation: their ties break by
memory address, and they cannot wait for a suspended process.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

import trio

from nodes.cause import NO_CAUSE, cause
from nodes.parking import park, unpark

NEVER_NS = 1 << 62
"""Later than anything that will happen."""
_CLEAN_EVERY_MIN = 1_024
"""Fewest calls that are scheduled between two removals of cancelled ones."""


class Owner(Protocol):
    """The owner of a timer, usually a process; while the process does not run, its timers wait."""

    alive: bool
    """Whether any of its timers may still fire."""

    def admits(self, entry: "ScheduledCall") -> bool:
        """Whether the timer may fire now; if not, the owner keeps it for later or drops it."""

    def crash(self, error: Exception) -> None:
        """Handle an exception that a timer of this owner raised."""


EPOCH_MS = 1_735_689_600_000
"""Wall clock at the beginning of every run in virtual time, in ms since 1970: 2025-01-01T00:00:00Z."""


class ScheduledCall:
    """One scheduled call; calls are made in the order of (instant, order of creation)."""

    __slots__ = ("callback", "cause", "owner")

    def __init__(self, callback: Callable[[], None], owner: Owner | None, cause_seq: int) -> None:
        self.callback: Callable[[], None] | None = callback
        self.owner = owner
        self.cause = cause_seq

    def cancel(self) -> None:
        """Cancel the call; does nothing if it has been made."""
        self.callback = None

    def fire(self) -> None:
        """Make the call, once, with the cause under which it was scheduled."""
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
    """The scheduled calls, and the present instant.

    Args:
        epoch_ms: what wall clocks show at its beginning, milliseconds since 1970.
    """

    __slots__ = ("_clean_at", "_created", "_heap", "epoch_ms", "now_ns")

    def __init__(self, epoch_ms: int = EPOCH_MS) -> None:
        self.epoch_ms = epoch_ms
        self.now_ns = 0
        self._heap: list[tuple[int, int, ScheduledCall]] = []
        self._created = 0
        self._clean_at = _CLEAN_EVERY_MIN
        """Number of calls scheduled by then when the cancelled ones are removed next."""

    def call_at(
        self, due_ns: int, callback: Callable[[], None], owner: Owner | None = None, cause_seq: int = NO_CAUSE
    ) -> ScheduledCall:
        """Schedule a call at `due_ns`, in ns since the run began; at once if that is past."""
        entry = ScheduledCall(callback, owner, cause_seq)
        self.add(due_ns, entry)
        return entry

    def add(self, due_ns: int, entry: ScheduledCall) -> None:
        """Schedule an entry at `due_ns`; at once if that is past."""
        self._created += 1
        heappush(self._heap, (due_ns, self._created, entry))
        if self._created >= self._clean_at:
            self._remove_cancelled()

    def _remove_cancelled(self) -> None:
        """Without this a sleep that is ended early would stay until its time is up, which may be never.

        So would the timers of a process that has ended, and with them all that it held.
        """
        self._heap[:] = [scheduled for scheduled in self._heap if _may_fire(scheduled[2])]
        heapify(self._heap)
        self._clean_at = self._created + max(_CLEAN_EVERY_MIN, len(self._heap))

    def next_due_ns(self) -> int:
        """The instant of the next call; `NEVER_NS` if none is scheduled."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heappop(heap)
        return heap[0][0] if heap else NEVER_NS

    def fire_due(self) -> None:
        """Make every call that is due by now, including those that become due meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= self.now_ns:
            entry = heappop(heap)[2]
            if entry.callback is None:
                continue
            if entry.owner is None or entry.owner.admits(entry):
                entry.fire()


def _may_fire(entry: ScheduledCall) -> bool:
    return entry.callback is not None and (entry.owner is None or entry.owner.alive)


GiveWaker = Callable[[Callable[[], None]], None]


class _Sleep(ScheduledCall):
    """A task that sleeps until its entry fires or its waker is called."""

    __slots__ = ("_task",)

    def __init__(self, task: trio.lowlevel.Task, owner: Owner | None, cause_seq: int) -> None:
        # Field by field: most entries are sleeps.
        self.callback, self.owner, self.cause = _nothing, owner, cause_seq
        self._task = task

    def fire(self) -> None:
        """Wake the task, which goes on with the cause with which it fell asleep."""
        if self.callback is not None:
            self.callback = None
            unpark(self._task)

    def wake(self) -> None:
        """Wake the task early, with the cause of the caller."""
        if self.callback is not None:
            self.cause = cause.get()
            self.fire()

    def abort(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        """The sleep was cancelled."""
        self.callback = None
        return trio.lowlevel.Abort.SUCCEEDED


def _nothing() -> None:
    """The callback of a sleep, which overrides `fire`."""


async def wait_until(
    timeline: Timeline,
    instant_ns: int,
    owner: Owner | None = None,
    give_waker: GiveWaker | None = None,
) -> None:
    """Sleep until an instant, or until the waker that is passed to `give_waker` is called.

    Args:
        owner: process that sleeps; while it is suspended it does not wake.
        give_waker: called once with a function that ends the sleep early.
    """
    sleep = _Sleep(trio.lowlevel.current_task(), owner, cause.get())
    timeline.add(instant_ns, sleep)
    if give_waker is not None:
        give_waker(sleep.wake)
    await park(sleep.abort)
    cause.set(sleep.cause)
