"""An emulated machine: its power states, and the process on it."""

from collections.abc import Callable
from contextvars import copy_context
from enum import StrEnum

from emulator.machine.clock import MachineClock
from emulator.machine.cpu import CpuQuota
from emulator.machine.disk import EmulatedDisk
from emulator.machine.process import HostProcess
from emulator.machine.world import World
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.host import Host, Node

_FIRST_PORT = 32_768
NodeFactory = Callable[[Host], Node]


class PowerState(StrEnum):
    """The power state of a machine and its process."""

    DOWN = "down"
    RUNNING = "running"
    SUSPENDED = "suspended"
    POWERED_OFF = "powered off"


class PowerStateError(Exception):
    """The power state does not allow the action."""


class EmulatedHost:
    """A machine, which keeps its address and its disk while its processes start and end.

    Args:
        number: position in the cluster, from 0; decides the pids.
        name: of the node.
        role: nameserver, broker, consumer or producer.
        ip: emulated IP address.
        detail: text of its `started` rows: the consumer group.
        factory: makes the node for each new process.
        shares: host that has the same address, and so the same ephemeral ports.
    """

    def __init__(
        self,
        world: World,
        number: int,
        name: str,
        role: str,
        ip: str,
        detail: str,
        factory: NodeFactory,
        shares: "EmulatedHost | None" = None,
    ) -> None:
        self.world = world
        self.number = number
        self.name = name
        self.role = role
        self.ip = ip
        hits = world.fabric.hits
        self.disk = EmulatedDisk(world.timeline, hits)
        self.clock = MachineClock(world.timeline, hits)
        self.cpu = CpuQuota(world, name, lambda: self.process)
        self.process: HostProcess | None = None
        self.node: Node | None = None
        self.errors: list[Exception] = []
        self.changed_options = ""
        """What restarts have changed of its options, told in the trace at each start; empty for nothing."""
        self._detail = detail
        self._factory = factory
        self._shares = shares
        self._incarnations = 0
        self._ports = _FIRST_PORT
        self._powered_off = False

    @property
    def power_state(self) -> PowerState:
        """The current power state."""
        if self._powered_off:
            return PowerState.POWERED_OFF
        if self.process is None or not self.process.alive:
            return PowerState.DOWN
        return PowerState.SUSPENDED if self.process.stopped else PowerState.RUNNING

    def next_port(self) -> int:
        """An ephemeral port; ports repeat only after all have been used."""
        if self._shares is not None:
            return self._shares.next_port()
        self._ports = self._ports + 1 if self._ports < 65_535 else _FIRST_PORT
        return self._ports

    def start(self) -> None:
        """Start a new process; a machine without power is switched on.

        Raises:
            PowerStateError: a process is running or suspended.
        """
        self._require(PowerState.DOWN, PowerState.POWERED_OFF, verb="start")
        self._powered_off = False
        self.world.fabric.powered.setdefault(self.ip, self.name)
        self._incarnations += 1
        process = HostProcess(self, self._incarnations)
        self.process = process
        self.node = node = self._factory(process)
        process.record(Lifecycle(LifecycleEvent.STARTED, self._detail))
        if self.changed_options:
            process.record(Lifecycle(LifecycleEvent.CONFIGURED, self.changed_options))
        self.world.nursery.start_soon(self._run, process, node, name=f"{self.name}/process")

    async def kill(self) -> None:
        """SIGKILL: tasks and memory are gone, peers see their connections close, the disk stays."""
        await self._end("kill", LifecycleEvent.KILLED, silent=False)

    async def power_off(self) -> None:
        """The machine goes silent: no FIN, no answer; unsynced writes are lost."""
        if self.power_state is not PowerState.DOWN:
            await self._end("power off", LifecycleEvent.POWERED_OFF, silent=True)
        self._powered_off = True
        self.world.fabric.lose_power(self.ip)
        self.disk.lose_power()

    async def restart(self) -> None:
        """Start a new process on the same address; a running process is killed first."""
        if self.power_state in (PowerState.RUNNING, PowerState.SUSPENDED):
            await self.kill()
        self.start()

    async def shutdown(self) -> None:
        """SIGTERM: the node shuts down in an orderly way; returns when it has."""
        self._require(PowerState.RUNNING, verb="shut down")
        assert self.node is not None
        assert self.process is not None
        self.process.record(Lifecycle(LifecycleEvent.STOPPING))
        self.node.request_shutdown()
        await self.process.ended.wait()

    async def terminate(self) -> None:
        """SIGTERM, whatever the state: a suspended process receives it when it runs again, none does nothing."""
        if self.process is not None and self.process.suspended:
            await self.process.resumed.wait()
        if self.power_state is PowerState.RUNNING:
            await self.shutdown()

    async def suspend(self) -> None:
        """SIGSTOP: nothing runs, connections stay open, arrivals are buffered."""
        self._require(PowerState.RUNNING, verb="suspend")
        await self.world.clock.idle()
        if self.process is not None and self.process.alive:
            self.process.record(Lifecycle(LifecycleEvent.SUSPENDED))
            self.process.freeze()

    async def resume(self) -> None:
        """SIGCONT.

        Threads whose sleep is over run before the process sees that connections which it had opened were closed. The
        real client does the same: it sends heartbeats before it knows that the broker closed the connection.
        """
        self._require(PowerState.SUSPENDED, verb="resume")
        assert self.process is not None
        process = self.process
        process.record(Lifecycle(LifecycleEvent.RESUMED))
        late = copy_context().run(process.thaw)  # its handlers must not set the cause of this task
        await self.world.clock.idle()
        copy_context().run(self.world.fabric.deliver, late)

    async def _end(self, verb: str, event: LifecycleEvent, *, silent: bool) -> None:
        self._require(PowerState.RUNNING, PowerState.SUSPENDED, verb=verb)
        await self.world.clock.idle()
        process = self.process
        if process is not None and process.alive:
            process.record(Lifecycle(event))
            process.lose_inbox()
            process.die(silent=silent)
            await process.ended.wait()

    async def _run(self, process: HostProcess, node: Node) -> None:
        try:
            await process.run(node)
        finally:  # also where the run ends before the process has
            if process.error is not None:
                self.errors.append(process.error)

    def _require(self, *states: PowerState, verb: str) -> None:
        if self.power_state not in states:
            msg = f"cannot {verb} {self.name}: it is {self.power_state}"
            raise PowerStateError(msg)
