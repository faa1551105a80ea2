"""A world: one timeline, one network, one trace, one service of domain names, in one of the three time modes."""

import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context
from functools import partial
from types import TracebackType
from typing import TypeVar

import attrs
import structlog
import trio

from emulator.base.chance import named_stream
from emulator.base.errors import unwrap_group
from emulator.guests.guests import GuestAccess, Guests
from emulator.guests.listeners import GrpcGuestListeners, LoopbackGuestListeners
from emulator.machine.garbage import Garbage, rare_garbage_collection
from emulator.network.fabric import Fabric
from emulator.network.hub import MemoryCarrier
from emulator.network.loopback import LoopbackCarrier
from emulator.time.clock import Drive, EmulatedClock
from emulator.time.determinism import deterministic_scheduling
from emulator.time.failure import Failure
from emulator.time.mode import TimeMode
from emulator.time.timeline import NEVER_NS, Timeline, wait_until
from emulator.trace.recorder import BatchWriter, Recorder, RowListener
from emulator.trace.schema import TraceLevel
from nodes.host import Logger
from nodes.units import NS_PER_MS

T = TypeVar("T")
Stamp = Callable[[], tuple[int, int]]
"""Returns the emulated ns, and the seq of the last row."""
_NO_GUESTS = GuestAccess()


class DomainNames:
    """A name service without a machine of its own: it always answers, and a change is seen by the next question.

    Args:
        seed: of the run.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draws: dict[str, Callable[[int], int]] = {}
        """Process -> what draws its addresses."""
        self.ips: dict[str, tuple[str, ...]] = {}
        """Domain name -> its IP addresses now; an administrator may change them."""

    def lookup(self, domain: str) -> tuple[str, ...]:
        """The IP addresses of a name; empty: there are none."""
        return self.ips.get(domain, ())

    def choose(self, domain: str, node: str, incarnation: int) -> str:
        """The address to which a process connects, drawn as servers of names change the order; empty: none."""
        ips = self.lookup(domain)
        if len(ips) < 2:
            return "".join(ips)
        process = f"{node} {incarnation}"
        if process not in self._draws:
            stream = named_stream(self._seed, node, str(incarnation), "addresses of domain names")
            self._draws[process] = stream.randrange
        return ips[self._draws[process](len(ips))]


@attrs.frozen
class World:
    """The parts that all hosts of a run share."""

    seed: int
    timeline: Timeline
    clock: EmulatedClock
    fabric: Fabric
    recorder: Recorder
    failure: Failure
    """Gets the errors that end the emulation."""
    nursery: trio.Nursery
    guests: Guests
    """Who has joined from outside."""
    log: Logger
    domains: DomainNames = attrs.field(
        default=attrs.Factory(lambda world: DomainNames(world.seed), takes_self=True), init=False
    )
    stopwatches: dict[str, "Stopwatch"] = attrs.field(factory=dict, init=False)
    """What nodes have measured of their own work."""

    def stopwatch(self, name: str) -> "Stopwatch":
        """The stopwatch of this name, which all nodes share."""
        known = self.stopwatches.get(name)
        return self.stopwatches.setdefault(name, Stopwatch()) if known is None else known

    async def sleep_until_ns(self, instant_ns: int) -> None:
        """Sleep until an emulated instant."""
        await wait_until(self.timeline, instant_ns)


class Stopwatch:
    """Adds up the CPU time of `with` blocks that neither wait nor nest: a figure of the machine, not of the run."""

    def __init__(self) -> None:
        self.times = 0
        self.cpu_ns = 0
        self._begin_ns = 0

    def __enter__(self) -> None:
        self._begin_ns = time.thread_time_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cpu_ns += time.thread_time_ns() - self._begin_ns
        self.times += 1


class DeadlockError(Exception):
    """Every task waits and no timer is set, so time cannot advance; the text names the tasks."""


@rare_garbage_collection()
def run_world(
    main: Callable[[World], Awaitable[T]],
    *,
    mode: TimeMode = TimeMode.SIM,
    seed: int = 0,
    delay_ms: int = 0,
    jitter_ms: int = 0,
    writer: BatchWriter | None = None,
    level: TraceLevel = TraceLevel.FULL,
    stepped: bool = False,
    make_log: Callable[[Stamp], Logger] | None = None,
    listeners: Iterable[RowListener] = (),
    guests: GuestAccess = _NO_GUESTS,
    failure: Failure | None = None,
) -> T:
    """Run `main` in a new world until it returns.

    Args:
        main: called with the world, inside trio.
        mode: time mode; the same `main` gives the same trace in `fast` and `sim`.
        seed: of all random streams.
        delay_ms: latency of every link, one way.
        jitter_ms: upper bound of a uniform delay on top.
        writer: writes the trace; None: only its digest is retained.
        level: which rows the trace has.
        stepped: virtual time starts with the limit 0 and advances when the limit of the clock is moved.
        make_log: makes the logger of the nodes from what stamps its lines; None: structlog's configured one.
        listeners: called with every row as it is recorded, except rows of `rpc` and `causes`.
        guests: how guests join, in mode `live`.
        failure: gets the errors that end the emulation; None: one of its own.

    Raises:
        DeadlockError: in virtual time, if every task waits and no timer is set.
    """
    # Each part is made after those that it uses. Guests have the machine's clock, and search messages by its time.
    timeline = Timeline(time.time_ns() // NS_PER_MS) if mode is TimeMode.LIVE else Timeline()
    failure = Failure() if failure is None else failure
    carrier = MemoryCarrier() if mode is TimeMode.SIM or guests.guest_listeners is not None else LoopbackCarrier()
    guest_listeners = guests.guest_listeners
    if mode is TimeMode.LIVE and isinstance(carrier, LoopbackCarrier):
        guest_listeners = LoopbackGuestListeners(carrier, guests.names)
    if guest_listeners is not None and guests.grpc_listeners is not None:
        guest_listeners = GrpcGuestListeners(guest_listeners, guests.grpc_listeners)
    recorder = Recorder(timeline, writer, level, listeners, failure.report, Garbage().collect_if_much)
    fabric = Fabric(timeline, carrier, recorder, seed, delay_ms, jitter_ms, failure)
    joined = Guests(fabric, guests, guest_listeners)
    drive = Drive(
        turn=partial(Context().run, fabric.hub.turn),  # no cause may leak from one world into the next
        lingers=fabric.hub.lingers,
        keep_up=recorder.keep_up,
        on_deadlock=lambda: failure.report(DeadlockError(_waiting_tasks())),
    )
    rate, limit_ns = 1.0 if mode is TimeMode.LIVE else None, 0 if stepped else NEVER_NS
    clock = EmulatedClock(timeline, drive, rate, limit_ns)
    log = structlog.get_logger() if make_log is None else make_log(lambda: (timeline.now_ns, recorder.last_seq))

    async def body() -> T:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(failure.guard, name="guard")
            world = World(seed, timeline, clock, fabric, recorder, failure, nursery, joined, log)
            try:
                result = await main(world)
            finally:
                clock.stop_driving()
            nursery.cancel_scope.cancel()
        return result

    try:
        with deterministic_scheduling():
            # Ctrl-C between a row's seq and the row itself would leave a gap, so it is raised at checkpoints only.
            return trio.run(body, clock=clock, restrict_keyboard_interrupt_to_checkpoints=True)
    except BaseExceptionGroup as group:
        raise unwrap_group(group) from None
    finally:
        if isinstance(carrier, LoopbackCarrier):
            carrier.release()


def _waiting_tasks() -> str:
    root = trio.lowlevel.current_root_task()
    names: list[str] = []
    tasks = [root] if root is not None else []
    while tasks:
        task = tasks.pop()
        names.append(task.name)
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return "deadlock: no timer is set, and these tasks wait: " + ", ".join(sorted(names))
