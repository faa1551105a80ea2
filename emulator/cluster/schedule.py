"""The schedule of a run: steps of faults, acts of the administrator, each at its instant, and the end."""

from collections import deque
from collections.abc import Callable

import trio

from emulator.acts.act import TimedAct
from emulator.cluster.operator import Operator
from emulator.machine.world import World
from emulator.time.timeline import ScheduledCall
from faults.plan import Plan, Step
from nodes.units import NS_PER_MS


class Schedule:
    """Does every step of a plan and every act at its instant, also while the cluster starts, and reports the end.

    Steps of one instant are done one after the other, in the order of the plan. A step that takes time, such as an
    orderly shutdown, delays no step of a later instant; one of the same instant begins a nanosecond later. Acts come
    after the faults of their instant.

    Args:
        world: of the run.
        operator: begins and ends the faults.
        plan: the faults.
        acts: of the administrator.
        run_for_ms: length of the run; ends every fault.
        at_end: called at the end of the run; None: the run goes on.
    """

    def __init__(
        self,
        world: World,
        operator: Operator,
        plan: Plan,
        run_for_ms: int,
        at_end: Callable[[], None] | None,
        acts: tuple[TimedAct, ...] = (),
    ) -> None:
        self._world = world
        self._operator = operator
        steps: list[Step | TimedAct] = [*plan.steps(run_for_ms), *acts]
        self._steps = deque(sorted(steps, key=lambda step: step.at_ms))
        self._end_ns = run_for_ms * NS_PER_MS
        self._at_end = at_end
        self._timer: ScheduledCall | None = None
        """Timer of the next step, or of the end."""
        self._is_due = trio.Event()
        """Set when the task of the schedule shall do the next step."""
        self._waits = False
        """Whether that task waits for it."""
        self._doing: list[Step | TimedAct] = []
        """The steps that are not done, the newest last."""
        self._has_stopped = False
        self._is_done = trio.Event()
        """Set when the last step is done after the end."""

    def begin(self) -> None:
        """Begin; to be called before the first node starts, and before any task that may run at the same instants.

        At one instant tasks run in the order in which they were created.
        """
        self._set_timer(self._next_ns())
        if self._steps:
            self._waits = True
            self._world.nursery.start_soon(self._follow, name="faults")

    def on_started(self) -> None:
        """Set the timer once more; to be called when the start is over.

        Timers of one instant fire in the order in which they were set, so without this a fault that begins after the
        start would change the order of what nodes do at its instant.
        """
        if not self._doing:
            self._set_timer(self._next_ns())

    def stop(self) -> None:
        """Do no further step."""
        self._cancel_timer()
        self._steps.clear()
        self._has_stopped = True

    async def until_done(self) -> None:
        """Wait for the steps that are not done, such as a restart; to be called after `stop`."""
        if self._doing:
            await self._is_done.wait()

    def _next_ns(self) -> int:
        return self._steps[0].at_ms * NS_PER_MS if self._steps else self._end_ns

    def _set_timer(self, due_ns: int) -> None:
        self._cancel_timer()
        if self._steps or self._at_end is not None:
            self._timer = self._world.timeline.call_at(due_ns, self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if not self._steps:
            if self._at_end is not None:
                self._at_end()
        elif self._waits:
            self._is_due.set()
        else:  # an earlier step is not done
            self._world.nursery.start_soon(self._do, self._steps.popleft(), name="fault")

    async def _follow(self) -> None:
        while True:
            await self._is_due.wait()
            self._is_due, self._waits = trio.Event(), False
            if not self._steps:  # the schedule has been stopped at this instant
                return
            await self._do(self._steps.popleft())
            self._waits = True

    async def _do(self, step: Step | TimedAct) -> None:
        self._set_timer(max(self._next_ns(), self._world.timeline.now_ns + 1))
        self._doing.append(step)
        if isinstance(step, TimedAct):
            self._operator.begin_act(step)
        else:
            await self._operator.do(step)
        is_newest = self._doing[-1] is step
        self._doing.remove(step)
        if is_newest and self._timer is not None:
            self._set_timer(self._next_ns())
        if self._has_stopped and not self._doing:
            self._is_done.set()
