"""Sleeping on the timeline."""

from collections.abc import Callable

import outcome
import trio

from emulator.time.timeline import Owner, Timeline
from nodes.cause import cause

GiveWaker = Callable[[Callable[[], None]], None]


async def wait_until(
    timeline: Timeline,
    instant_ns: int,
    owner: Owner | None = None,
    give_waker: GiveWaker | None = None,
) -> None:
    """Sleep until an instant, or until the waker that `give_waker` is handed is called.

    Args:
        owner: whose sleep it is; a suspended process sleeps on.
    """
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def wake() -> None:
        nonlocal task
        entry.cancel()
        if task is not None:
            trio.lowlevel.reschedule(task, outcome.Value(cause.get()))
            task = None

    entry = timeline.call_at(instant_ns, wake, owner, cause.get())
    if give_waker is not None:
        give_waker(wake)

    def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        nonlocal task
        task = None
        entry.cancel()
        return trio.lowlevel.Abort.SUCCEEDED

    cause.set(await trio.lowlevel.wait_task_rescheduled(abort))
