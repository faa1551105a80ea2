"""One process on an emulated machine: the services for its node, and its life."""

import errno
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Protocol

import outcome
import trio

from emulator.base.chance import named_stream
from emulator.base.errors import unwrap_group
from emulator.guests.acceptors import GuestAcceptors
from emulator.machine.world import Stopwatch, World
from emulator.network.dial import Dial
from emulator.network.endpoint import Endpoint, Listener
from emulator.network.hub import Arrival
from emulator.time.timeline import GiveWaker, ScheduledCall, wait_until
from emulator.trace.recorder import NodeIdentity
from faults.link import ProcessStage
from nodes.beliefs import Belief, BeliefKind, Event, Lifecycle, LifecycleEvent
from nodes.broker.group.pre_online_service import OnlineStage
from nodes.cause import cause
from nodes.config.nameserver import is_domain_name
from nodes.host import Channel, ChannelHandler, Clock, ConnectError, Disk, Logger, Node, RandomStream
from nodes.protocol.command import Command
from nodes.units import NS_PER_MS

Sleep = Coroutine[Any, Any, None]
ONLINE = OnlineStage.ONLINE.value


class _Timeout:
    """A `with` block with a time-out; no generator, because most blocks end at once."""

    def __init__(self, process: "HostProcess", duration_ms: float) -> None:
        self._process = process
        self._duration_ms = duration_ms
        self._scope = trio.CancelScope()

    def __enter__(self) -> None:
        self._scope.__enter__()
        self._entry = self._process.call_later_ms(self._duration_ms, self._scope.cancel)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        self._entry.cancel()
        is_over = self._scope.__exit__(kind, error, where)
        if self._scope.cancelled_caught:
            raise trio.TooSlowError from None
        return is_over


class Machine(Protocol):
    """The machine of a process, as the process sees it."""

    world: World
    number: int
    name: str
    role: str
    ip: str

    @property
    def clock(self) -> Clock:
        """The clocks of the machine."""

    @property
    def disk(self) -> Disk:
        """The disk, which survives processes."""

    def next_port(self) -> int:
        """An ephemeral port."""

    def enter(self, path: str, process: "HostProcess") -> "InnerProcess":
        """Begin the part of a process that the file at `path` describes.

        Raises:
            KeyError: there is no such part.
        """


class HostProcess:
    """One process on a machine; implements `nodes.host.Host` for the node in it."""

    inner_processes: tuple["InnerProcess", ...] = ()
    """Its parts that run, in the order in which they began. Of the class: most processes have none, and with one more
    attribute of its own each would have a dictionary of its own, five times as large."""

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
        """Whether nothing of it runs: it was stopped, or waits for its turn of the CPU."""
        self.stopped = False
        """Whether it was stopped by SIGSTOP."""
        self.alive = True
        self.resumed = trio.Event()
        """Set unless it is suspended."""
        self.resumed.set()
        self.inbox: list[Arrival] = []
        self.endpoints: dict[Endpoint, None] = {}
        self.ended = trio.Event()
        self.ready = trio.Event()
        """Set when the node is ready, or has ended."""
        self.error: Exception | None = None
        self._held: list[ScheduledCall] = []
        self._stopping = False
        self._pre_online = False
        self._ports: dict[int, Listener] = {}
        self._acceptors: dict[int, GuestAcceptors] = {}
        self._cancel = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._not_yet_begun: list[tuple[Callable[[], Awaitable[object]], str]] = []
        """(flow, name) to start once the main task runs."""
        self._source = NodeIdentity(machine.name, machine.role, incarnation)
        self._timeline = world.timeline
        self._world = world

    # --- services for the node --------------------------------------------------

    def sleep_ms(self, duration_ms: float) -> Sleep:
        """Sleep for a duration."""
        return wait_until(self._timeline, self._timeline.now_ns + int(duration_ms * NS_PER_MS), self)

    def sleep_until_ns(self, instant_ns: int) -> Sleep:
        """Sleep until an instant."""
        return wait_until(self._timeline, instant_ns, self)

    def sleep_or_call_ms(self, duration_ms: float, give_waker: GiveWaker) -> Sleep:
        """Sleep for a duration, or until the waker is called."""
        return wait_until(self._timeline, self._timeline.now_ns + int(duration_ms * NS_PER_MS), self, give_waker)

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> ScheduledCall:
        """Call `callback` once, after `delay_ms`."""
        due_ns = self._timeline.now_ns + int(delay_ms * NS_PER_MS)
        return self._timeline.call_at(due_ns, callback, self, cause.get())

    def timeout_ms(self, duration_ms: float) -> "_Timeout":
        """Cancel the `with` block after a duration.

        Raises:
            trio.TooSlowError: the block was cancelled.
        """
        return _Timeout(self, duration_ms)

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
        """Accept connections on a port.

        Raises:
            OSError: the port is in use.
        """
        if not self.alive:  # it was killed after its task was woken: it opens nothing that no one would close
            return
        fabric = self._world.fabric
        if (self.ip, port) in fabric.listeners:
            raise OSError(errno.EADDRINUSE, f"{self.ip}:{port} is taken")
        listener = Listener(self, handler, fabric.carrier.listen(self.ip, port))
        fabric.listeners[self.ip, port] = listener
        self._ports[port] = listener
        guests = self._world.guests
        if guests.listeners is not None:
            self._acceptors[port] = GuestAcceptors(guests, guests.listeners, listener, self, self._world.nursery, port)

    def close_listener(self, port: int) -> None:
        """Stop accepting on a port."""
        listener = self._ports.pop(port, None)
        if listener is not None:
            del self._world.fabric.listeners[self.ip, port]
            acceptors = self._acceptors.pop(port, None)
            if acceptors is not None:
                acceptors.close()
            self._world.fabric.carrier.close_listener(listener.wire)

    def dial(
        self, address: str, handler: ChannelHandler, take: Callable[[Channel | ConnectError], None], timeout_ms: float
    ) -> Dial:
        """Open a connection; `take` gets it, or the error; a process that has ended opens none.

        Of the IP addresses of a domain name one is drawn, as servers of names send them in changing order.
        """
        host = address.rpartition(":")[0]
        ip = self._world.domains.choose(host, self.name, self.incarnation) if is_domain_name(host) else host
        return Dial(self._world.fabric, self, address, ip, handler, take, timeout_ms)

    def lookup(self, domain: str) -> tuple[str, ...]:
        """The IP addresses of a domain name."""
        return self._world.domains.lookup(domain)

    async def connect(self, address: str, handler: ChannelHandler, timeout_ms: float) -> Channel:
        """Open a connection, and wait until it is open.

        Raises:
            ConnectError: the connection was refused, or not answered in time.
        """
        task = trio.lowlevel.current_task()
        dialed = self.dial(address, handler, lambda got: trio.lowlevel.reschedule(task, outcome.Value(got)), timeout_ms)

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            dialed.abandon()
            return trio.lowlevel.Abort.SUCCEEDED

        got: Channel | ConnectError = await trio.lowlevel.wait_task_rescheduled(abort)
        if isinstance(got, ConnectError):
            raise got
        return got

    def send_each(self, channels: Iterable[Channel], command: Command) -> None:
        """Send one frame over each of many channels, oneway."""
        self._world.fabric.send_each(channels, command)  # type: ignore[arg-type]

    def rng(self, name: str) -> RandomStream:
        """A named random stream, a different one in every incarnation."""
        return named_stream(self._world.seed, self.name, str(self.incarnation), name)

    def stopwatch(self, name: str) -> Stopwatch:
        """Measure what runs inside, for the manifest of the run."""
        return self._world.stopwatch(name)

    def begin_cause(self, name: str) -> None:
        """Start a chain of causes."""
        cause.set(self._world.recorder.begin_cause(self.name, name))

    def record(self, event: Event) -> None:
        """Record an event in the trace; a dead process records nothing."""
        if self.alive:
            self._world.recorder.event(self._source, event)
            if type(event) is Lifecycle:
                self._on_stage(event.event)
            elif type(event) is Belief and event.kind is BeliefKind.ONLINE_STAGE:
                self._pre_online = event.value != ONLINE

    def inner(self, path: str) -> "InnerProcess":
        """A part of this process, described by a file.

        Raises:
            KeyError: the machine has no such part.
        """
        return self.machine.enter(path, self)

    def record_of_all(self, event: Lifecycle) -> None:
        """Record a stage of its life, and of that of each of its parts."""
        for inner in self.inner_processes:
            inner.record(event)
        self.record(event)

    def _on_stage(self, event: LifecycleEvent) -> None:
        if event is LifecycleEvent.READY:
            self.ready.set()
        elif event is LifecycleEvent.STOPPING:
            self._stopping = True

    # --- for the machine and the network ----------------------------------------

    async def until_idle(self, patience_ns: int) -> bool:
        """Wait until no other task can run, but not longer than `patience_ns`; returns whether none could."""
        return await self._world.clock.idle(patience_ns)

    def admits(self, entry: ScheduledCall) -> bool:
        """Whether a timer may fire now: a suspended process keeps it, a dead process drops it."""
        if self.suspended:
            self._held.append(entry)
        return self.alive and not self.suspended

    def is_in(self, stage: ProcessStage) -> bool:
        """Whether the process is in a stage of its life."""
        match stage:
            case ProcessStage.STARTING:
                return not self.ready.is_set()
            case ProcessStage.PRE_ONLINE:
                return self._pre_online
            case ProcessStage.STOPPING:
                return self._stopping

    def next_port(self) -> int:
        """An ephemeral port of the machine."""
        return self.machine.next_port()

    def crash(self, error: Exception) -> None:
        """End the process because the node's own code raised; the trace records the error."""
        if self.alive:
            innermost = unwrap_group(error)
            self.error = innermost if isinstance(innermost, Exception) else error
            subject = f"{type(self.error).__name__}: {self.error}"
            self.record_of_all(Lifecycle(LifecycleEvent.CRASHED, subject))
            self.log.error("crashed", error=subject, traceback="".join(traceback.format_exception(error)))
            self.die(silent=False)

    async def run(self, node: Node) -> None:
        """Run the node until it has stopped, crashed, or was killed."""
        try:
            with self._cancel:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    for begin, name in self._not_yet_begun:
                        self.start_soon(begin, name=name)
                    self._not_yet_begun.clear()
                    await node.main()
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - an exception of a node must not end the emulation
            self.crash(error)
        if self.alive:
            self.record(Lifecycle(LifecycleEvent.STOPPED))
            self.die(silent=False)
        self.ready.set()
        self.ended.set()

    def lose_inbox(self) -> None:
        """Record the frames that the kernel has buffered for a process which will never read them."""
        for sender, command, sent_ns in self.inbox:
            if command is not None:
                self._world.recorder.frame("lost", sender, command, sent_ns, "receiver has ended")
        self.inbox.clear()
        for inner in self.inner_processes:
            inner.lose_inbox()

    def die(self, *, silent: bool) -> None:
        """End at once; unless `silent`, the kernel sends FINs to the peers."""
        for inner in self.inner_processes:
            inner.die(silent=silent)
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
        """SIGCONT: handle what the kernel buffered in order, then the timers that are due.

        Returns:
            FINs that the network thread sees a little later: see `Fabric.deliver_inbox`.
        """
        self.stopped = False
        return self.take_cpu()

    @property
    def waiting(self) -> int:
        """Number of arrivals and timers that wait for the process to run."""
        return len(self.inbox) + len(self._held) + sum(inner.waiting for inner in self.inner_processes)

    def leave_cpu(self) -> None:
        """Take the CPU from the process: nothing of it runs from now on."""
        if not self.suspended:
            self.suspended = True
            self.resumed = trio.Event()
            for inner in self.inner_processes:
                inner.leave_cpu()

    def take_cpu(self) -> list[Arrival]:
        """Give the process the CPU; returns what `thaw` returns."""
        self.suspended = False
        self.resumed.set()
        late = self._world.fabric.deliver_inbox(self)
        held, self._held = self._held, []
        for entry in held:
            if self.admits(entry):
                entry.fire()
        for inner in self.inner_processes:
            late += inner.take_cpu()
        return late


class InnerProcess(HostProcess):
    """A part of a process, with rows, files and random streams of its own; implements `nodes.host.InnerHost`.

    Args:
        machine: where its name and its folder come from.
        incarnation: how often it has begun.
        outer: the process that it is a part of.
        begins: called with the node that begins.
    """

    def __init__(self, machine: Machine, incarnation: int, outer: HostProcess, begins: Callable[[Node], None]) -> None:
        super().__init__(machine, incarnation)
        self._begins = begins
        self.pid = outer.pid
        self._outer = outer
        outer.inner_processes += (self,)
        if outer.suspended:
            self.leave_cpu()

    async def start(self, node: Node) -> None:
        """Run a node; returns when it is ready, or has ended."""
        self._begins(node)
        self._outer.start_soon(self.run, node, name=self.name)
        await self.ready.wait()

    async def wait_ended(self) -> None:
        """Wait until the node has ended."""
        await self.ended.wait()

    def crash(self, error: Exception) -> None:
        """An exception of a part ends the whole process."""
        self._outer.crash(error)

    def die(self, *, silent: bool) -> None:
        """End; the process goes on."""
        others = tuple(inner for inner in self._outer.inner_processes if inner is not self)
        if others != self._outer.inner_processes:
            self._outer.inner_processes = others
        super().die(silent=silent)
