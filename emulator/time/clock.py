"""The clock that trio runs on: jumps when nothing can run, or follows the wall.

trio asks `deadline_to_sleep_time` only when no task is runnable. That is the
moment for a turn of the hub, which wakes tasks by what falls due and arrives;
and if the hub has nothing to do either, to jump to the next instant.
"""

import math
import time
from collections.abc import Callable, Sized

import attrs
import trio

from emulator.time.determinism import PASSES_PER_LOOK, look_outside_rarely, look_up_instruments_fast, runnable_tasks
from emulator.time.timeline import NEVER_NS, Timeline
from nodes.parking import park, park_among, unpark
from nodes.units import NS_PER_S

_BUSY_NS_MAX = 100_000_000
"""How long, of the wall's time, tasks wait for idleness while guests keep the cluster busy, in `live`."""
_BUSY_NS_MIN = 1_000_000
"""How long the next ones wait if it has been as busy as that already."""
_TURNS_PER_PASS = 64
"""Turns of the hub in a row before trio looks at the machine again, where Ctrl-C arrives."""


@attrs.frozen
class Drive:
    """What the clock drives; by default nothing."""

    turn: Callable[[], bool] = lambda: True
    """Does what is due, and returns whether nothing is left to do."""
    lingers: Callable[[], bool] = lambda: False
    """Whether to look outside again at once, in place of sleeping until the next instant."""
    keep_up: Callable[[], float] = lambda: math.inf
    """Called as trio goes on, in every pass in `live` and in every sixteenth in virtual time, for what has to happen in
    wall time and is nothing to the emulation; returns after how many wall seconds it must be called again, even if no
    task can run."""
    on_deadlock: Callable[[], None] = lambda: None
    """Called in virtual time when no task can run and no timer is set."""


class EmulatedClock(trio.abc.Clock):
    """One clock for the three time modes.

    Args:
        timeline: what falls due when; this clock moves its `now_ns`.
        drive: what happens as time goes on.
        rate: emulated seconds per wall second (1.0 in `live`); None jumps as fast as it can.
        limit_ns: first limit of virtual time, in ns since the run began.
    """

    def __init__(self, timeline: Timeline, drive: Drive, rate: float | None, limit_ns: int = NEVER_NS) -> None:
        self._timeline = timeline
        self._drive = drive
        self._turn = drive.turn if rate is None else self._turn_once
        self._keep_up = drive.keep_up
        self._passes = 0
        self._turning = False
        """Whether a turn goes on, in `live`; in virtual time no turn begins while another one goes on."""
        self._rate = rate
        self._anchor_ns = 0
        self._idle: dict[trio.lowlevel.Task, None] = {}
        """Tasks that wait for idleness, in the order in which they began to."""
        self._idle_woken = False
        self._idle_ns = timeline.now_ns
        """Instant at which the clock was idle last."""
        self._runnable: Sized = ()
        self._waits_for_limit: trio.lowlevel.Task | None = None
        self._limit_ns = limit_ns
        self._stands = timeline.now_ns >= limit_ns

    @property
    def follows_wall(self) -> bool:
        """Whether time follows the wall clock (`live`)."""
        return self._rate is not None

    @property
    def limit_ns(self) -> int:
        """Instant at which virtual time stops, before anything that is due then; `NEVER_NS`: no limit."""
        return self._limit_ns

    @limit_ns.setter
    def limit_ns(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._stands = self._timeline.now_ns >= limit_ns

    def start_clock(self) -> None:
        """Anchor emulated time to the wall."""
        self._anchor_ns = time.perf_counter_ns()
        self._runnable = runnable_tasks()
        look_up_instruments_fast()
        if self._rate is None:
            look_outside_rarely()

    def current_time(self) -> float:
        """Emulated seconds; trio asks in every pass, so a busy loop cannot starve the timeline.

        It also asks where a scope is entered or cancelled. That may be in the midst of a turn, which no other one may
        interrupt, and whose time stands still.
        """
        if self._turning:
            return self._timeline.now_ns / NS_PER_S
        if self._idle_woken:  # the task that waited for idleness must act before anything else begins
            self._idle_woken = False
        elif self._rate is not None:
            self._follow_wall(self._rate)
            self._turn()
        self._passes += 1
        if self._rate is not None or not self._passes % PASSES_PER_LOOK:
            self._keep_up()
        return self._timeline.now_ns / NS_PER_S

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """No task can run: do what is due, else wake a task that waits for idleness, else go to the next instant."""
        if self._stands:
            return min(self._stand_still(), self._keep_up())
        for _ in range(_TURNS_PER_PASS):
            if not self._turn() or self._runnable:
                return 0
            self._idle_ns = self._timeline.now_ns
            if self._idle:
                self._wake_from_idle(next(iter(self._idle)))
                self._idle_woken = True
                return 0
            sleep_s = self._go_to_next_instant(deadline)
            if sleep_s > 0:
                return 0 if self._drive.lingers() else min(sleep_s, self._keep_up())
            if self._runnable or self._timeline.now_ns / NS_PER_S >= deadline:
                return sleep_s
        return 0

    def _go_to_next_instant(self, deadline: float) -> float:
        """Jump there and return 0, or return the wall seconds until then."""
        timeline = self._timeline
        due_ns = timeline.next_due_ns()
        if deadline < due_ns / NS_PER_S:
            due_ns = _first_instant_at(deadline)
        if self._rate is not None:
            return (due_ns - timeline.now_ns) / NS_PER_S / self._rate
        if due_ns >= self._limit_ns:
            if self._limit_ns < NEVER_NS:
                timeline.now_ns = self._limit_ns
                self._stands = True
                return self._stand_still()
            self._drive.on_deadlock()
        else:
            timeline.now_ns = max(timeline.now_ns, due_ns)
        return 0

    def stop_driving(self) -> None:
        """The emulation has ended; trio still runs until its tasks are cancelled."""
        self._drive = Drive()
        self._turn, self._keep_up = self._drive.turn, self._drive.keep_up

    async def standstill(self) -> None:
        """Wait until time has stopped at its limit; only one task may wait."""
        self._waits_for_limit = trio.lowlevel.current_task()

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._waits_for_limit = None
            return trio.lowlevel.Abort.SUCCEEDED

        await park(abort)

    def _stand_still(self) -> float:
        """Wake the task in `standstill`; without one, sleep until another thread wakes trio."""
        task, self._waits_for_limit = self._waits_for_limit, None
        if task is None:
            return math.inf
        unpark(task)
        return 0

    async def idle(self, patience_ns: int | None = None) -> bool:
        """Wait until no other task can run at this instant; waiting tasks are woken one after the other.

        In virtual time every instant has an end. In `live` guests may keep the cluster busy as long as they like, so
        the wait ends after some time all the same.

        Args:
            patience_ns: how long to wait in `live`, of the wall's time; None: until the clock has been busy for 100 ms.

        Returns:
            Whether no other task could run.
        """
        if self._rate is None:
            await park_among(self._idle)
            return True
        task = trio.lowlevel.current_task()
        now_ns = self._timeline.now_ns
        since_ns, waits_ns = (self._idle_ns, _BUSY_NS_MAX) if patience_ns is None else (now_ns, patience_ns)
        due_ns = max(now_ns + int(_BUSY_NS_MIN * self._rate), since_ns + int(waits_ns * self._rate))
        gave_up = False

        def give_up() -> None:
            nonlocal gave_up
            if task in self._idle:
                gave_up = bool(self._runnable)  # time may have passed although nothing was done
                self._wake_from_idle(task)

        alarm = self._timeline.call_at(due_ns, give_up)
        try:
            await park_among(self._idle)
        finally:
            alarm.cancel()
        return not gave_up

    def _wake_from_idle(self, task: trio.lowlevel.Task) -> None:
        del self._idle[task]
        unpark(task)

    def _turn_once(self) -> bool:
        self._turning = True
        try:
            return self._drive.turn()
        finally:
            self._turning = False

    def _follow_wall(self, rate: float) -> None:
        elapsed_ns = time.perf_counter_ns() - self._anchor_ns
        self._timeline.now_ns = max(self._timeline.now_ns, int(elapsed_ns * rate))


def _first_instant_at(deadline: float) -> int:
    """The first nanosecond that trio, which counts in seconds, takes for `deadline` or later."""
    instant_ns = math.ceil(deadline * NS_PER_S)
    while instant_ns / NS_PER_S < deadline:
        instant_ns += 1
    return instant_ns
