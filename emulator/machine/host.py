"""An emulated machine: its power states, and the process on it."""

from collections.abc import Callable
from contextvars import copy_context

import trio

from emulator.machine.clock import MachineClock
from emulator.machine.cpu import CpuQuota
from emulator.machine.disk import EmulatedDisk
from emulator.machine.power import PowerState, PowerStateError
from emulator.machine.process import HostProcess, InnerProcess
from emulator.machine.world import World
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.host import Host, Node

_FIRST_PORT = 32_768
NodeFactory = Callable[[Host], Node]


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
        shares_disk: whether it has the disk of that host, too.
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
        *,
        shares_disk: bool = False,
    ) -> None:
        self.world = world
        self.number = number
        self.name = name
        self.role = role
        self.ip = ip
        hits = world.fabric.hits
        self.disk: EmulatedDisk = (
            shares.disk if shares is not None and shares_disk else EmulatedDisk(world.timeline, hits)
        )
        self.clock = MachineClock(world.timeline, hits)
        self.cpu = CpuQuota(world, name, lambda: self.process)
        self.process: HostProcess | None = None
        self.node: Node | None = None
        self.inner_machines: dict[str, InnerMachine] = {}
        """Mapping file -> the part of its process that the file describes."""
        self.errors: list[Exception] = []
        self.changed_options = ""
        """What restarts have changed of its options, reported in the trace at each start; empty for nothing."""
        self._detail = detail
        self._factory = factory
        self._shares = shares
        self._incarnations = 0
        self._ports = _FIRST_PORT
        self._powered_off = False
        self._waits_until_ready: trio.CancelScope | None = None

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

    @property
    def machine(self) -> "EmulatedHost":
        """The machine that a fault of processes or machines hits."""
        return self

    def enter(self, path: str, process: HostProcess) -> InnerProcess:
        """Begin the part of a process that the file at `path` describes.

        Raises:
            KeyError: there is no such part.
        """
        return self.inner_machines[path].begin_in(process)

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
        self._record_start(process)
        self.world.nursery.start_soon(self._run, process, node, name=f"{self.name}/process")

    def power_on(self) -> None:
        """Switch on a machine whose process starts later."""
        self._powered_off = False

    async def until_ready(self) -> None:
        """Wait until the node is ready; returns also when its process has ended, or is suspended."""
        if self.process is not None and self.power_state is PowerState.RUNNING:
            with trio.CancelScope() as self._waits_until_ready:
                await self.process.ready.wait()
            self._waits_until_ready = None

    def _record_start(self, process: HostProcess) -> None:
        process.record(Lifecycle(LifecycleEvent.STARTED, self._detail))
        if self.changed_options:
            process.record(Lifecycle(LifecycleEvent.CONFIGURED, self.changed_options))

    async def kill(self) -> None:
        """SIGKILL: tasks and memory are gone, peers see their connections close, the disk stays."""
        await self._end("kill", LifecycleEvent.KILLED, silent=False)

    async def power_off(self) -> None:
        """The machine goes silent: no FIN, no answer; unsynced writes are lost."""
        if self.power_state is not PowerState.DOWN:
            await self._end("power off", LifecycleEvent.POWERED_OFF, silent=True)
        if self.process is not None and not self.process.ended.is_set():
            await self.process.ended.wait()  # it was killed a moment ago, and writes until its tasks have ended
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
        if (
            self.process is not None and self.power_state is PowerState.RUNNING
        ):  # another fault may have begun meanwhile
            self.process.record_of_all(Lifecycle(LifecycleEvent.SUSPENDED))
            self.process.freeze()
            if self._waits_until_ready is not None:
                self._waits_until_ready.cancel()

    async def resume(self) -> None:
        """SIGCONT.

        Threads whose sleep is over run before the process sees that connections which it had opened were closed. The
        real client does the same: it sends heartbeats before it knows that the broker closed the connection.
        """
        self._require(PowerState.SUSPENDED, verb="resume")
        assert self.process is not None
        process = self.process
        process.record_of_all(Lifecycle(LifecycleEvent.RESUMED))
        late = copy_context().run(process.thaw)  # its handlers must not set the cause of this task
        await self.world.clock.idle()
        copy_context().run(self.world.fabric.deliver, late)

    async def _end(self, verb: str, event: LifecycleEvent, *, silent: bool) -> None:
        self._require(PowerState.RUNNING, PowerState.SUSPENDED, verb=verb)
        await self.world.clock.idle()
        process = self.process
        if process is not None and process.alive:
            process.record_of_all(Lifecycle(event))
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


def _never(_host: Host) -> Node:
    msg = "a part of a process is made by the process"
    raise AssertionError(msg)


class InnerMachine(EmulatedHost):
    """The place of a part of a process, such as a broker in a container: a name and a folder on its machine.

    It is added to the process and removed from it while the process runs; every other change of its power state is one
    of the whole machine.

    Args:
        number: position in the cluster, from 0.
        name: of the part.
        role: of the part.
        container: machine of the process.
        add: asks the process to begin the part.
        remove: asks the process to end it in good order.
    """

    def __init__(
        self,
        number: int,
        name: str,
        role: str,
        container: EmulatedHost,
        add: Callable[[], None],
        remove: Callable[[], None],
    ) -> None:
        super().__init__(container.world, number, name, role, container.ip, "", _never, container)
        self.disk = container.disk.folder(name)
        self.clock = container.clock
        self.cpu = container.cpu
        self._container = container
        self._add = add
        self._remove = remove

    @property
    def machine(self) -> EmulatedHost:
        """The machine of its process."""
        return self._container

    @property
    def power_state(self) -> PowerState:
        """That of the machine, unless the part was removed."""
        is_there = self.process is not None and self.process.alive
        state = self._container.power_state
        return state if is_there or state is PowerState.POWERED_OFF else PowerState.DOWN

    def begin_in(self, process: HostProcess) -> InnerProcess:
        """Begin the part in a process."""
        self._incarnations += 1
        self.process = inner = InnerProcess(self, self._incarnations, process, self._begins)
        self._record_start(inner)
        return inner

    def _begins(self, node: Node) -> None:
        self.node = node

    def start(self) -> None:
        """Ask the process to add the part; if there is none, the part begins with the process."""
        if self._container.power_state is PowerState.RUNNING:
            self._add()

    async def shutdown(self) -> None:
        """Ask the process to remove the part; returns when it has ended."""
        self._require(PowerState.RUNNING, verb="shut down")
        assert self.process is not None
        process = self.process
        process.record(Lifecycle(LifecycleEvent.STOPPING))
        self._remove()
        await process.ended.wait()

    async def kill(self) -> None:
        """Kill the process."""
        await self._container.kill()

    async def power_off(self) -> None:
        """Switch the machine off."""
        await self._container.power_off()

    async def suspend(self) -> None:
        """Suspend the process."""
        await self._container.suspend()

    async def resume(self) -> None:
        """Resume the process."""
        await self._container.resume()
