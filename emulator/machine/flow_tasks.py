"""The tasks of a process: each flow has one to itself while it runs, and the next flow may get the same one.

To make a task and to end it takes trio twenty calls of Python, and a popped message begins eight flows.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from nodes.cause import NO_CAUSE, cause
from nodes.parking import park, unpark_as_new

IDLE = "idle"
"""Name of a task that waits for its next flow."""
_IDLE_MAX = 16

_Flow = Callable[..., Awaitable[object]]


class FlowTasks:
    """Runs flows as tasks of a nursery, in the order and with the causes that new tasks would have.

    Args:
        nursery: ends all of them.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._idle: list[_FlowTask] = []
        self._begun: dict[str, None] = {}
        """Names of flows: one that begins again is short, any other one may be a thread that never ends."""

    def start_soon(self, flow: _Flow, args: tuple[object, ...], name: str) -> None:
        """Run a flow."""
        if self._idle:
            found = self._idle.pop()
            found.flow, found.args, found.cause = flow, args, cause.get()
            unpark_as_new(found.task, name)
        elif name in self._begun:
            self._nursery.start_soon(_FlowTask(self._idle).run, flow, args, name=name)
        else:
            self._begun[name] = None
            self._nursery.start_soon(partial(flow, *args), name=name)


class _FlowTask:
    """A task that runs one flow after the other; while it waits it holds nothing of them."""

    __slots__ = ("_idle", "args", "cause", "flow", "task")

    task: trio.lowlevel.Task

    def __init__(self, idle: "list[_FlowTask]") -> None:
        self._idle = idle
        self.flow: _Flow | None = None
        self.args: tuple[object, ...] = ()
        self.cause = NO_CAUSE

    async def run(self, flow: _Flow, args: tuple[object, ...]) -> None:
        self.task = trio.lowlevel.current_task()
        self.flow, self.args = flow, args
        del flow, args
        while self.flow is not None:
            await self.flow(*self.args)
            self.flow, self.args = None, ()
            if len(self._idle) < _IDLE_MAX:
                self._idle.append(self)
                self.task.name = IDLE
                await park(self._end)
                cause.set(self.cause)

    def _end(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        """The process has ended, so no flow begins any more."""
        self._idle.remove(self)
        return trio.lowlevel.Abort.SUCCEEDED
