"""Parking: how a task of a flow waits until somebody wakes it.

`park` and `unpark` are trio's `wait_task_rescheduled` and `reschedule`, for tasks that are woken without a value. They
make half as many calls of Python, and an emulated message waits three times. With `emulator.time.determinism` this is
the only module that uses private names of trio.
"""

from collections.abc import Callable, Generator
from types import coroutine
from typing import Any

import trio
from outcome import Outcome, Value
from trio._core._traps import WaitTaskRescheduled

_WOKEN = Value(None)
"""What each task is woken with; no one unwraps it, which would be possible once."""


@coroutine
def park(abort: Callable[[trio.lowlevel.RaiseCancelT], trio.lowlevel.Abort]) -> Generator[Any, Outcome[None], None]:
    """Wait until `unpark` is called with the running task.

    Args:
        abort: called when the task is cancelled, as by `trio.lowlevel.wait_task_rescheduled`; no one may call `unpark`
            any more if it returns SUCCEEDED.

    Raises:
        trio.Cancelled: the task was cancelled.
    """
    wait = object.__new__(WaitTaskRescheduled)
    wait.__dict__["abort_func"] = abort  # its own way, of a frozen value, takes twice as long
    sent = yield wait
    if sent is not _WOKEN:
        try:
            sent.unwrap()
        finally:
            del sent  # its error has a traceback with this frame: a cycle for each task that is cancelled


async def park_among(waiting: dict[trio.lowlevel.Task, None]) -> None:
    """Wait among others until `unpark` is called with this task, by the code that has taken it from `waiting`."""
    task = trio.lowlevel.current_task()
    waiting[task] = None

    def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        del waiting[task]
        return trio.lowlevel.Abort.SUCCEEDED

    await park(abort)


def unpark(task: trio.lowlevel.Task) -> None:
    """Wake a task that waits in `park`; once for each wait."""
    task._runner.reschedule(task, _WOKEN)  # noqa: SLF001 - see above
