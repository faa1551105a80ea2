"""The effects of faults of processes; a fault skips nodes in whose state it has no effect.

A node whose planned start is to come has no process. What keeps processes down keeps it from starting, until the fault
ends; a suspension is a signal to a process that runs, and does not wait for one.
"""

from abc import abstractmethod
from contextvars import copy_context
from typing import ClassVar

from emulator.cluster.effects.effect import HostEffect, ImpossibleError
from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from emulator.spec.refusals.targets import guest_names
from faults.fault import Fault
from faults.process import DOWN, NodeFault, PowerOff, Suspend

_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)
_IS_DOWN = (PowerState.DOWN, PowerState.POWERED_OFF)


class ProcessEffect(HostEffect[NodeFault]):
    """A process is stopped when the fault begins, and resumed or started when it ends."""

    needs: ClassVar[tuple[PowerState, ...]]
    """States in which the begin has an effect."""
    undone_by: ClassVar[tuple[PowerState, ...]] = _IS_DOWN
    """States in which the end has an effect."""
    holding: ClassVar[tuple[type[Fault], ...]] = DOWN
    """Kinds of faults that, while active, prevent the end from having an effect."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:  # noqa: ARG002 - its kind says all
        """Stop the process, if its state allows it."""
        if host.power_state in self.needs and not self.scene.cluster.is_start_to_come(host.name):
            self.scene.cluster.faults.count_node(fault_id, host.name)
            await self.stop(host)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:  # noqa: ARG002 - as above
        """Let the process run, unless another fault keeps it down."""
        if not self.stays_down(host.name) and host.power_state in self.undone_by:
            await self.let_run(host)

    @abstractmethod
    async def stop(self, host: EmulatedHost) -> None:
        """Stop a process as this kind of fault does."""

    async def let_run(self, host: EmulatedHost) -> None:
        """Start a new process from the disk."""
        host.start()
        await host.cpu.wait_for_turn()

    def stays_down(self, name: str) -> bool:
        """Whether another fault or scaling keeps a process down, or its planned start is to come."""
        return self.scene.must_stay_down(name)

    def states(self, fault: NodeFault) -> dict[str, PowerState]:
        """Mapping node -> state, of all nodes that the fault hits."""
        hosts = self.scene.cluster.hosts.items()
        return {name: host.power_state for name, host in hosts if fault.scope.matches(name)}

    def require_possible(self, fault: NodeFault) -> None:
        """Refuse a fault if no target can be stopped."""
        states = self.states(fault)
        if any(state in self.needs or self._keeps_from_starting(name) for name, state in states.items()):
            return
        found = ", ".join(f"{name} {self._described(name, state)}" for name, state in states.items())
        raise ImpossibleError(f"{found}: there is nothing to {fault.kind}")

    def _keeps_from_starting(self, name: str) -> bool:
        return self.holding == DOWN and self._is_start_to_come(name)

    def _described(self, name: str, state: PowerState) -> str:
        return "has not started yet" if self._is_start_to_come(name) else f"is {state.value}"

    def _is_start_to_come(self, name: str) -> bool:
        cluster = self.scene.cluster
        return name in cluster.hosts and cluster.is_start_to_come(name)


class KillEffect(ProcessEffect):
    """SIGKILL; the end starts a new process."""

    needs: ClassVar[tuple[PowerState, ...]] = _LIVES

    async def stop(self, host: EmulatedHost) -> None:
        """End the process at once."""
        await host.kill()


class RestartEffect(ProcessEffect):
    """SIGTERM; the end starts a new process."""

    needs: ClassVar[tuple[PowerState, ...]] = _RUNS

    async def stop(self, host: EmulatedHost) -> None:
        """Shut the process down."""
        await host.terminate()


class PowerOffEffect(ProcessEffect):
    """The machine loses power; the end boots it.

    Before its planned start a machine gives no answer, so there is nothing to lose but the start itself.
    """

    needs: ClassVar[tuple[PowerState, ...]] = (*_LIVES, PowerState.DOWN)

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:
        """Switch the machine off."""
        await super().begin_on(host, fault_id, fault)
        is_off = host.power_state is PowerState.POWERED_OFF  # by another fault
        if self.scene.cluster.is_start_to_come(host.name) and not is_off:
            await self.stop(host)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:
        """Boot the machine, unless another fault keeps it down; its planned start may be to come."""
        await super().end_on(host, fault_id, fault)
        if self.scene.cluster.is_start_to_come(host.name) and not self.scene.is_held(host.name, (PowerOff,)):
            host.power_on()

    async def stop(self, host: EmulatedHost) -> None:
        """Switch the machine off."""
        await host.power_off()


class SuspendEffect(ProcessEffect):
    """SIGSTOP and SIGCONT; of a guest, its host is suspended on the network."""

    needs: ClassVar[tuple[PowerState, ...]] = _RUNS
    undone_by: ClassVar[tuple[PowerState, ...]] = (PowerState.SUSPENDED,)
    holding: ClassVar[tuple[type[Fault], ...]] = (Suspend,)

    async def begin(self, fault_id: str, fault: NodeFault) -> None:
        """Suspend processes, then guests."""
        await super().begin(fault_id, fault)
        for name in self._guests(fault):
            program = self.scene.world.guests.program(name)
            if not program.suspended:
                self.scene.count(fault_id)
                program.suspend()

    async def end(self, fault_id: str, fault: NodeFault) -> None:
        """Resume processes, then guests."""
        await super().end(fault_id, fault)
        world = self.scene.world
        for name in self._guests(fault):
            if not self.stays_down(name):
                # Its handlers must not set the cause of this task.
                copy_context().run(world.guests.program(name).resume, world.fabric)

    async def stop(self, host: EmulatedHost) -> None:
        """Suspend the process."""
        await host.suspend()

    async def let_run(self, host: EmulatedHost) -> None:
        """Resume the process; shut it down if scaling removed it while it was suspended."""
        await host.resume()
        await host.cpu.wait_for_turn()
        if self.scene.cluster.is_retired(host.name):
            await host.terminate()

    def stays_down(self, name: str) -> bool:
        """Whether another fault keeps the process suspended."""
        return self.scene.is_held(name, self.holding)

    def states(self, fault: NodeFault) -> dict[str, PowerState]:
        """Mapping node or guest -> state, of all that the fault hits."""
        guests = self.scene.world.guests
        return super().states(fault) | {
            name: PowerState.SUSPENDED if guests.program(name).suspended else PowerState.RUNNING
            for name in self._guests(fault)
        }

    def _guests(self, fault: NodeFault) -> list[str]:
        return [name for name in guest_names(self.scene.cluster.scenario) if fault.scope.names(name)]
