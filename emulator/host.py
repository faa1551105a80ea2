"""An emulated machine and the process on it: power states, time, network, disk, chance."""

import errno
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from enum import StrEnum
from functools import partial

import attrs
import structlog
import trio

from emulator.chance import named_stream
from emulator.disk import EmulatedDisk
from emulator.first_cause import first_cause
from emulator.network.dial import Dial
from emulator.network.endpoint import Endpoint
from emulator.network.fabric import Fabric, Listener
from emulator.network.foreign import ForeignDoor
from emulator.network.hub import Arrival
from emulator.time.clock import EmulatedClock
from emulator.time.timeline import Entry, Timeline
from emulator.time.waiting import GiveWaker, wait_until
from emulator.trace.recorder import Recorder, Source
from nodes.beliefs import Event, Lifecycle, LifecycleEvent
from nodes.cause import cause
from nodes.host import Channel, ChannelHandler, Clock, ConnectError, Disk, Host, Logger, RandomStream
from nodes.node import Node

EPOCH_MS = 1_735_689_600_000
"""Wall clock at the beginning of every run: 2025-01-01T00:00:00Z."""
_NS_PER_MS = 1_000_000
_FIRST_PORT = 32_768
NodeFactory = Callable[[Host], Node]


class PowerState(StrEnum):
    """What a machine's process is doing."""

    DOWN = "down"
    RUNNING = "running"
    SUSPENDED = "suspended"
    POWERED_OFF = "powered off"


class PowerStateError(Exception):
    """A verb that makes no sense in the present power state."""


@attrs.frozen
class World:
    """What all hosts of a run share."""

    seed: int
    timeline: Timeline
    clock: EmulatedClock
    fabric: Fabric
    recorder: Recorder
    nursery: trio.Nursery
    log: Logger = attrs.Factory(structlog.get_logger)

    async def sleep_until_ns(self, instant_ns: int) -> None:
        """Sleep until an emulated instant."""
        await wait_until(self.timeline, instant_ns)


class HostClock:
    """A machine's clocks; implements `nodes.host.Clock`."""

    __slots__ = ("_timeline",)

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        return EPOCH_MS + self._timeline.now_ns // _NS_PER_MS

    def monotonic_ns(self) -> int:
        """Nanoseconds since the run began."""
        return self._timeline.now_ns


class HostProcess:
    """One process on a machine; implements `nodes.host.Host` for the node in it."""

    def __init__(self, machine: "EmulatedHost", incarnation: int) -> None:
        world = machine.world
        self.machine = machine
        self.name = self.node = machine.name
        self.ip = machine.ip
        self.pid = 1_000 + machine.number * 100 + incarnation
        self.incarnation = incarnation
        self.clock: Clock = HostClock(world.timeline)
        self.disk: Disk = machine.disk
        self.log: Logger = world.log.bind(node=machine.name, role=machine.role, incarnation=incarnation)  # type: ignore[attr-defined]
        self.suspended = False
        self.alive = True
        self.resumed = trio.Event()
        """Set unless it is suspended."""
        self.resumed.set()
        self.inbox: list[Arrival] = []
        self.endpoints: dict[Endpoint, None] = {}
        self.ended = trio.Event()
        self.ready = trio.Event()
        """The node says that it is ready, or it has ended."""
        self.error: Exception | None = None
        self._held: list[Entry] = []
        self._ports: dict[int, Listener] = {}
        self._cancel = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._not_yet_begun: list[tuple[Callable[[], Awaitable[object]], str]] = []
        """Flows of a process whose first task has not run yet."""
        self._source = Source(machine.name, machine.role, incarnation)
        self._timeline = world.timeline
        self._world = world

    # --- what the node asks for -------------------------------------------------

    async def sleep_ms(self, duration_ms: float) -> None:
        """Sleep for a while."""
        await self.sleep_until_ns(self._timeline.now_ns + int(duration_ms * _NS_PER_MS))

    async def sleep_until_ns(self, instant_ns: int) -> None:
        """Sleep until an instant."""
        await self._sleep(instant_ns, None)

    async def sleep_or_call_ms(self, duration_ms: float, give_waker: GiveWaker) -> None:
        """Sleep for a while, or until woken."""
        await self._sleep(self._timeline.now_ns + int(duration_ms * _NS_PER_MS), give_waker)

    async def _sleep(self, instant_ns: int, give_waker: GiveWaker | None) -> None:
        await wait_until(self._timeline, instant_ns, self, give_waker)

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> Entry:
        """Call back once."""
        due_ns = self._timeline.now_ns + int(delay_ms * _NS_PER_MS)
        return self._timeline.call_at(due_ns, callback, self, cause.get())

    @contextmanager
    def timeout_ms(self, duration_ms: float) -> Iterator[None]:
        """Cancel what runs inside after a while, raising `trio.TooSlowError`."""
        with trio.CancelScope() as scope:
            entry = self.call_later_ms(duration_ms, scope.cancel)
            try:
                yield
            finally:
                entry.cancel()
        if scope.cancelled_caught:
            raise trio.TooSlowError

    def start_soon(self, flow: Callable[..., Awaitable[object]], *args: object, name: str) -> None:
        """Run a flow as a task of this process."""
        if not self.alive:
            return
        begin = partial(flow, *args)
        if self._nursery is None:
            self._not_yet_begun.append((begin, name))
        else:
            self._nursery.start_soon(begin, name=f"{self.name}/{name}")

    def listen(self, port: int, handler: ChannelHandler) -> None:
        """Accept connections on a port."""
        fabric = self._world.fabric
        if (self.ip, port) in fabric.listeners:
            raise OSError(errno.EADDRINUSE, f"{self.ip}:{port} is taken")
        listener = Listener(self, handler, fabric.carrier.listen(self.ip, port))
        fabric.listeners[self.ip, port] = listener
        self._ports[port] = listener
        if self._world.clock.follows_wall:
            door = ForeignDoor(fabric, listener, self, self._world.nursery)
            self._world.nursery.start_soon(door.serve, name=f"{self.name}/guests of {port}")

    def close_listener(self, port: int) -> None:
        """Stop accepting on a port."""
        listener = self._ports.pop(port, None)
        if listener is not None:
            del self._world.fabric.listeners[self.ip, port]
            self._world.fabric.carrier.close_listener(listener.wire)

    async def connect(self, address: str, handler: ChannelHandler, timeout_ms: float) -> Channel:
        """Open a connection."""
        return await Dial(self._world.fabric, self, address, handler).connect(timeout_ms)

    def rng(self, name: str) -> RandomStream:
        """A named stream of chance, another one in every incarnation."""
        return named_stream(self._world.seed, self.name, str(self.incarnation), name)

    def begin_cause(self, name: str) -> None:
        """Start a chain of causes."""
        cause.set(self._world.recorder.begin_cause(self.name, name))

    def record(self, event: Event) -> None:
        """Write into the trace; a dead process writes nothing."""
        if self.alive:
            self._world.recorder.event(self._source, event)
            if type(event) is Lifecycle and event.event is LifecycleEvent.READY:
                self.ready.set()

    # --- what the machine and the network ask for -------------------------------

    def admits(self, entry: Entry) -> bool:
        """Whether a timer may fire now: a suspended process keeps it, a dead one forgets it."""
        if self.suspended:
            self._held.append(entry)
        return self.alive and not self.suspended

    def next_port(self) -> int:
        """An ephemeral port of the machine."""
        return self.machine.next_port()

    def crash(self, error: Exception) -> None:
        """The node's own code raised: the process is gone, the trace says why."""
        if self.alive:
            cause_of_all = first_cause(error)
            self.error = cause_of_all if isinstance(cause_of_all, Exception) else error
            self.record(Lifecycle(LifecycleEvent.CRASHED, f"{type(self.error).__name__}: {self.error}"))
            self.die(silent=False)

    async def run(self, node: Node) -> None:
        """Live until the node has stopped, crashed, or was killed."""
        try:
            with self._cancel:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    for begin, name in self._not_yet_begun:
                        self.start_soon(begin, name=name)
                    await node.main()
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - one node's bug must not end the emulation
            self.crash(error)
        if self.alive:
            self.record(Lifecycle(LifecycleEvent.STOPPED))
            self.die(silent=False)
        self.ready.set()
        self.ended.set()

    def die(self, *, silent: bool) -> None:
        """End at once; unless `silent`, the kernel closes its sockets towards the peers."""
        self.alive = False
        self.suspended = False
        self.resumed.set()
        self._held.clear()
        self.inbox.clear()
        self._cancel.cancel()
        for port in list(self._ports):
            self.close_listener(port)
        fabric = self._world.fabric
        for endpoint in list(self.endpoints):
            (fabric.forget if silent else fabric.close)(endpoint)

    def freeze(self) -> None:
        """SIGSTOP."""
        self.suspended = True
        self.resumed = trio.Event()

    def thaw(self) -> list[Arrival]:
        """SIGCONT: what the kernel buffered is handled in order, then what fell due meanwhile.

        Returns:
            What the network thread finds out a little later: see `Fabric.hand_over_inbox`.
        """
        self.suspended = False
        self.resumed.set()
        late = self._world.fabric.hand_over_inbox(self)
        held, self._held = self._held, []
        for entry in held:
            if self.admits(entry):
                entry.fire()
        return late


class EmulatedHost:
    """A machine: keeps its address and its disk through all that happens to its processes.

    Args:
        number: position in the spec; pids and streams follow from it.
        role: nameserver, broker, consumer or producer.
        factory: makes the node for each new process.
        shares: the host whose address, and so whose ephemeral ports, this one has, too.
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
        self.disk = EmulatedDisk()
        self.process: HostProcess | None = None
        self.node: Node | None = None
        self.errors: list[Exception] = []
        self._detail = detail
        self._factory = factory
        self._shares = shares
        self._incarnations = 0
        self._ports = _FIRST_PORT
        self._powered_off = False

    @property
    def power_state(self) -> PowerState:
        """What the machine's process is doing."""
        if self._powered_off:
            return PowerState.POWERED_OFF
        if self.process is None or not self.process.alive:
            return PowerState.DOWN
        return PowerState.SUSPENDED if self.process.suspended else PowerState.RUNNING

    def next_port(self) -> int:
        """An ephemeral port, never the same twice before they run out."""
        if self._shares is not None:
            return self._shares.next_port()
        self._ports = self._ports + 1 if self._ports < 65_535 else _FIRST_PORT
        return self._ports

    def start(self) -> None:
        """Begin a new process; a machine without power is switched on."""
        self._require(PowerState.DOWN, PowerState.POWERED_OFF, verb="start")
        self._powered_off = False
        self.world.fabric.powered.setdefault(self.ip, self.name)
        self._incarnations += 1
        process = HostProcess(self, self._incarnations)
        self.process = process
        self.node = node = self._factory(process)
        process.record(Lifecycle(LifecycleEvent.STARTED, self._detail))
        self.world.nursery.start_soon(self._run, process, node, name=f"{self.name}/process")

    async def kill(self) -> None:
        """SIGKILL: tasks and memory are gone, peers see their connections close, the disk stays."""
        await self._end("kill", LifecycleEvent.KILLED, silent=False)

    async def power_off(self) -> None:
        """The machine goes silent: no FIN, no answer; unsynced writes are lost."""
        await self._end("power off", LifecycleEvent.POWERED_OFF, silent=True)
        self._powered_off = True
        del self.world.fabric.powered[self.ip]
        self.disk.lose_power()

    async def restart(self) -> None:
        """A new process on the same address; what runs is killed first."""
        if self.power_state in (PowerState.RUNNING, PowerState.SUSPENDED):
            await self.kill()
        self.start()

    async def shutdown(self) -> None:
        """SIGTERM: the node stops in its own order; returns when it has."""
        self._require(PowerState.RUNNING, verb="shut down")
        assert self.node is not None
        assert self.process is not None
        self.process.record(Lifecycle(LifecycleEvent.STOPPING))
        self.node.request_shutdown()
        await self.process.ended.wait()

    async def suspend(self) -> None:
        """SIGSTOP: nothing runs, connections stay open, what arrives is buffered."""
        self._require(PowerState.RUNNING, verb="suspend")
        await self.world.clock.idle()
        if self.process is not None and self.process.alive:
            self.process.record(Lifecycle(LifecycleEvent.SUSPENDED))
            self.process.freeze()

    async def resume(self) -> None:
        """SIGCONT.

        Threads whose sleep is over run before the process has found out which of the connections that it had
        opened have ended, as was seen with the real client: its heartbeats are under way before it knows that the
        broker gave it up.
        """
        self._require(PowerState.SUSPENDED, verb="resume")
        assert self.process is not None
        process = self.process
        process.record(Lifecycle(LifecycleEvent.RESUMED))
        late = copy_context().run(process.thaw)  # what it handles sets causes that are not ours
        await self.world.clock.idle()
        copy_context().run(self.world.fabric.hand_over, late)

    async def _end(self, verb: str, event: LifecycleEvent, *, silent: bool) -> None:
        self._require(PowerState.RUNNING, PowerState.SUSPENDED, verb=verb)
        await self.world.clock.idle()
        process = self.process
        if process is not None and process.alive:
            process.record(Lifecycle(event))
            process.die(silent=silent)
            await process.ended.wait()

    async def _run(self, process: HostProcess, node: Node) -> None:
        await process.run(node)
        if process.error is not None:
            self.errors.append(process.error)

    def _require(self, *states: PowerState, verb: str) -> None:
        if self.power_state not in states:
            msg = f"cannot {verb} {self.name}: it is {self.power_state}"
            raise PowerStateError(msg)


__all__ = ["ConnectError", "EmulatedHost", "HostProcess", "NodeFactory", "PowerState", "PowerStateError", "World"]
