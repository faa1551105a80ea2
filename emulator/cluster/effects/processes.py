"""Faults of processes: each is done where it makes sense, so a fault on all nodes skips those that are down."""

from abc import abstractmethod
from contextvars import copy_context
from typing import ClassVar

from emulator.cluster.effects.effect import HostEffect, ImpossibleError
from emulator.machine.host import EmulatedHost, PowerState
from emulator.spec.targets import guest_names
from faults.fault import Fault
from faults.process import DOWN, Kill, NodeFault, PowerOff, Restart, Suspend

_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)
_IS_DOWN = (PowerState.DOWN, PowerState.POWERED_OFF)


class ProcessEffect(HostEffect[NodeFault]):
    """A process is stopped in some way, and goes on or begins anew when the fault ends."""

    needs: ClassVar[tuple[PowerState, ...]]
    """States in which it does something."""
    undone_by: ClassVar[tuple[PowerState, ...]] = _IS_DOWN
    """States in which its end does something."""
    holding: ClassVar[tuple[type[Fault], ...]] = DOWN
    """Faults that keep a process from what the end of this one would have it do."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:  # noqa: ARG002 - its kind says all
        """Stop the process, where it is in a state to be stopped."""
        if host.power_state in self.needs:
            self.scene.count(fault_id)
            await self.stop(host)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: NodeFault) -> None:  # noqa: ARG002 - as above
        """Let it run, unless something else holds it down."""
        if not self.is_held_down(host.name) and host.power_state in self.undone_by:
            await self.let_run(host)

    @abstractmethod
    async def stop(self, host: EmulatedHost) -> None:
        """What the fault does to a process."""

    async def let_run(self, host: EmulatedHost) -> None:
        """Begin a new process with what the disk has."""
        host.start()
        await host.cpu.wait_for_turn()

    def is_held_down(self, name: str) -> bool:
        """Whether another fault still holds a process down."""
        return self.scene.is_held(name, self.holding) or self.scene.cluster.is_retired(name)

    def states(self, fault: NodeFault) -> dict[str, PowerState]:
        """Node -> state, of all that the fault hits."""
        hosts = self.scene.cluster.hosts.items()
        return {name: host.power_state for name, host in hosts if fault.scope.matches(name)}

    def expect_possible(self, fault: NodeFault) -> None:
        """Refuse a fault on nobody who could be stopped so."""
        states = self.states(fault)
        if not any(state in self.needs for state in states.values()):
            told = ", ".join(f"{name} is {state.value}" for name, state in states.items())
            raise ImpossibleError(f"{told}: there is nothing to {fault.kind}")


class KillEffect(ProcessEffect, kinds=(Kill,)):
    """SIGKILL; the end begins a new process."""

    needs: ClassVar[tuple[PowerState, ...]] = _LIVES

    async def stop(self, host: EmulatedHost) -> None:
        """End the process at once."""
        await host.kill()


class RestartEffect(ProcessEffect, kinds=(Restart,)):
    """SIGTERM; the end begins a new process."""

    needs: ClassVar[tuple[PowerState, ...]] = _RUNS

    async def stop(self, host: EmulatedHost) -> None:
        """End the process in good order."""
        await shut_down(host)


class PowerOffEffect(ProcessEffect, kinds=(PowerOff,)):
    """The machine loses power; the end boots it."""

    needs: ClassVar[tuple[PowerState, ...]] = (*_LIVES, PowerState.DOWN)

    async def stop(self, host: EmulatedHost) -> None:
        """Take the power."""
        await host.power_off()


class SuspendEffect(ProcessEffect, kinds=(Suspend,)):
    """SIGSTOP and SIGCONT; the machine of a guest stands still as if its process did."""

    needs: ClassVar[tuple[PowerState, ...]] = _RUNS
    undone_by: ClassVar[tuple[PowerState, ...]] = (PowerState.SUSPENDED,)
    holding: ClassVar[tuple[type[Fault], ...]] = (Suspend,)

    async def begin(self, fault_id: str, fault: NodeFault) -> None:
        """Suspend processes, then guests."""
        await super().begin(fault_id, fault)
        for name in self._guests(fault):
            program = self.scene.world.fabric.guests.program(name)
            if not program.suspended:
                self.scene.count(fault_id)
                program.suspend()

    async def end(self, fault_id: str, fault: NodeFault) -> None:
        """Resume processes, then guests."""
        await super().end(fault_id, fault)
        fabric = self.scene.world.fabric
        for name in self._guests(fault):
            if not self.is_held_down(name):
                # What it handles sets causes that are not ours.
                copy_context().run(fabric.guests.program(name).resume, fabric)

    async def stop(self, host: EmulatedHost) -> None:
        """Nothing of the process runs."""
        await host.suspend()

    async def let_run(self, host: EmulatedHost) -> None:
        """It runs on; one whose group became smaller meanwhile could not hear of it, and stops now."""
        await host.resume()
        await host.cpu.wait_for_turn()
        if self.scene.cluster.is_retired(host.name):
            await shut_down(host)

    def is_held_down(self, name: str) -> bool:
        """Whether another fault still suspends it."""
        return self.scene.is_held(name, self.holding)

    def states(self, fault: NodeFault) -> dict[str, PowerState]:
        """Node or guest -> state, of all that the fault hits."""
        guests = self.scene.world.fabric.guests
        return super().states(fault) | {
            name: PowerState.SUSPENDED if guests.program(name).suspended else PowerState.RUNNING
            for name in self._guests(fault)
        }

    def _guests(self, fault: NodeFault) -> list[str]:
        return [name for name in guest_names(self.scene.cluster.scenario) if fault.scope.names(name)]


async def shut_down(host: EmulatedHost) -> None:
    """SIGTERM; a process hears of it when it has its turn of the CPU."""
    if host.process is not None and host.process.suspended:
        await host.process.resumed.wait()
    if host.power_state is PowerState.RUNNING:
        await host.shutdown()
