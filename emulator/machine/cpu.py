"""The CPU quota of a machine: its process runs only in turns, as under a cgroup's quota."""

from collections.abc import Callable
from contextvars import copy_context

import trio

from emulator.machine.process import HostProcess
from emulator.machine.world import World
from nodes.units import NS_PER_MS


class CpuQuota:
    """Gives the process of a machine turns of the CPU while a fault throttles it.

    Between two turns nothing of the process runs, as if it were stopped; the kernel keeps running.

    Args:
        world: of the machine.
        name: of the machine.
        process: returns the current process of the machine, None if it has none.
    """

    def __init__(self, world: World, name: str, process: Callable[[], HostProcess | None]) -> None:
        self._world = world
        self._name = name
        self._process = process
        self._turns_ms: dict[str, int] = {}
        """Mapping fault id -> ms from one turn to the next."""
        self._until_healed = trio.CancelScope()

    async def throttle(self, fault_id: str, turn_ms: int) -> None:
        """Begin a fault: one turn every `turn_ms`; of several faults the longest interval applies."""
        self._turns_ms[fault_id] = turn_ms
        if len(self._turns_ms) == 1:
            until_healed = self._until_healed = trio.CancelScope()
            await self.wait_for_turn()
            name = f"{self._name}/turns of the CPU"
            self._world.nursery.start_soon(self._take_turns, until_healed, name=name)

    async def unthrottle(self, fault_id: str) -> None:
        """End a fault."""
        self._turns_ms.pop(fault_id, None)
        if not self._turns_ms:
            self._until_healed.cancel()
            await self._take()

    async def wait_for_turn(self) -> None:
        """Let a process that has just started or resumed wait for its next turn, if the machine is throttled."""
        if self._turns_ms:
            await self._world.clock.idle()
        if self._turns_ms:  # the faults may have ended meanwhile
            self._leave()

    async def _take_turns(self, until_healed: trio.CancelScope) -> None:
        world = self._world
        with until_healed:
            while not until_healed.cancel_called:
                turn_ns = max(self._turns_ms.values()) * NS_PER_MS
                await world.sleep_until_ns(world.timeline.now_ns + turn_ns)
                await self._take()
                await world.clock.idle()
                if not until_healed.cancel_called:  # the fault may have ended meanwhile
                    self._leave()

    def _leave(self) -> None:
        process = self._process()
        if process is not None and process.alive and not process.stopped:
            process.leave_cpu()

    async def _take(self) -> None:
        """Let the process handle everything that has waited, in order."""
        process, world = self._process(), self._world
        if process is None or not process.alive or process.stopped or not process.suspended:
            return
        for fault_id in self._turns_ms:
            world.fabric.hits.count(fault_id, process.waiting)
        late = copy_context().run(process.take_cpu)  # its handlers must not set the cause of this task
        if late:
            await world.clock.idle()
            copy_context().run(world.fabric.deliver, late)
