"""One process on an emulated machine: what its node asks for, and what happens to it."""

import errno
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import trio

from emulator.base.chance import named_stream
from emulator.base.errors import unwrap_group
from emulator.machine.world import World
from emulator.network.dial import Dial
from emulator.network.endpoint import Endpoint, Listener
from emulator.network.guests.acceptors import GuestAcceptors
from emulator.network.hub import Arrival
from emulator.time.timeline import Entry, GiveWaker, wait_until
from emulator.trace.recorder import NodeIdentity
from faults.link import Stage
from nodes.beliefs import Belief, BeliefKind, Event, Lifecycle, LifecycleEvent
from nodes.broker.group.pre_online_service import OnlineStage
from nodes.cause import cause
from nodes.host import Channel, ChannelHandler, Clock, Disk, Logger, Node, RandomStream

ONLINE = OnlineStage.ONLINE.value
_NS_PER_MS = 1_000_000


class Machine(Protocol):
    """What a process must know of the machine that it runs on."""

    world: World
    number: int
    name: str
    role: str
    ip: str

    @property
    def clock(self) -> Clock:
        """Its clocks."""

    @property
    def disk(self) -> Disk:
        """What survives its processes."""

    def next_port(self) -> int:
        """An ephemeral port."""


class HostProcess:
    """One process on a machine; implements `nodes.host.Host` for the node in it."""

    def __init__(self, machine: Machine, incarnation: int) -> None:
        world = machine.world
        self.machine = machine
        self.name = self.node = machine.name
        self.ip = machine.ip
        self.pid = 1_000 + machine.number * 100 + incarnation
        self.incarnation = incarnation
        self.clock: Clock = machine.clock
        self.disk: Disk = machine.disk
        self.log: Logger = world.log.bind(node=machine.name, role=machine.role, incarnation=incarnation)  # type: ignore[attr-defined]
        self.suspended = False
        """Nothing of it runs: it was stopped, or it waits for its turn of the CPU."""
        self.stopped = False
        """By SIGSTOP."""
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
        self._stopping = False
        self._pre_online = False
        self._ports: dict[int, Listener] = {}
        self._acceptors: dict[int, GuestAcceptors] = {}
        self._cancel = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._not_yet_begun: list[tuple[Callable[[], Awaitable[object]], str]] = []
        """Flows of a process whose first task has not run yet."""
        self._source = NodeIdentity(machine.name, machine.role, incarnation)
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
            self._acceptors[port] = GuestAcceptors(fabric, listener, self, self._world.nursery, port)

    def close_listener(self, port: int) -> None:
        """Stop accepting on a port."""
        listener = self._ports.pop(port, None)
        if listener is not None:
            del self._world.fabric.listeners[self.ip, port]
            acceptors = self._acceptors.pop(port, None)
            if acceptors is not None:
                acceptors.close()
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
            if type(event) is Lifecycle:
                self._note_stage(event.event)
            elif type(event) is Belief and event.kind is BeliefKind.ONLINE_STAGE:
                self._pre_online = event.value != ONLINE

    def _note_stage(self, event: LifecycleEvent) -> None:
        if event is LifecycleEvent.READY:
            self.ready.set()
        elif event is LifecycleEvent.STOPPING:
            self._stopping = True

    # --- what the machine and the network ask for -------------------------------

    def admits(self, entry: Entry) -> bool:
        """Whether a timer may fire now: a suspended process keeps it, a dead one forgets it."""
        if self.suspended:
            self._held.append(entry)
        return self.alive and not self.suspended

    def is_in(self, stage: Stage) -> bool:
        """Whether it is in a stage of its life."""
        match stage:
            case Stage.STARTING:
                return not self.ready.is_set()
            case Stage.PRE_ONLINE:
                return self._pre_online
            case Stage.STOPPING:
                return self._stopping

    def next_port(self) -> int:
        """An ephemeral port of the machine."""
        return self.machine.next_port()

    def crash(self, error: Exception) -> None:
        """The node's own code raised: the process is gone, the trace says why."""
        if self.alive:
            cause_of_all = unwrap_group(error)
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
        self.stopped = True
        self.leave_cpu()

    def thaw(self) -> list[Arrival]:
        """SIGCONT: what the kernel buffered is handled in order, then what fell due meanwhile.

        Returns:
            What the network thread finds out a little later: see `Fabric.deliver_inbox`.
        """
        self.stopped = False
        return self.take_cpu()

    @property
    def waiting(self) -> int:
        """How much has arrived or fallen due while nothing of it ran."""
        return len(self.inbox) + len(self._held)

    def leave_cpu(self) -> None:
        """Nothing of it runs from now on."""
        if not self.suspended:
            self.suspended = True
            self.resumed = trio.Event()

    def take_cpu(self) -> list[Arrival]:
        """It runs on; returns what `thaw` returns."""
        self.suspended = False
        self.resumed.set()
        late = self._world.fabric.deliver_inbox(self)
        held, self._held = self._held, []
        for entry in held:
            if self.admits(entry):
                entry.fire()
        return late
