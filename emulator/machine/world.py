"""A world: one timeline, one network, one trace, in one of the three time modes."""

import gc
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import TypeVar

import attrs
import structlog
import trio

from emulator.base.errors import unwrap_group
from emulator.base.process_wide import ProcessWide, Undo
from emulator.network.fabric import Fabric
from emulator.network.hub import MemoryCarrier
from emulator.network.loopback import LoopbackCarrier
from emulator.time.clock import EmulatedClock
from emulator.time.determinism import deterministic_scheduling
from emulator.time.mode import TimeMode
from emulator.time.timeline import NEVER_NS, Timeline, wait_until
from emulator.trace.recorder import Recorder
from emulator.trace.segments import SegmentWriter
from nodes.host import Logger

T = TypeVar("T")
_NS_PER_MS = 1_000_000
_GARBAGE_THRESHOLD = 100_000
"""Objects allocated more than freed; Python's own choice costs a third of the start of 300 consumers."""


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


class DeadlockError(Exception):
    """Nothing will ever happen again: every task waits, and no timer is set."""


def run_world(
    main: Callable[[World], Awaitable[T]],
    *,
    mode: TimeMode = TimeMode.SIM,
    seed: int = 0,
    delay_ms: int = 0,
    jitter_ms: int = 0,
    writer: SegmentWriter | None = None,
    stepped: bool = False,
    log: Logger | None = None,
) -> T:
    """Run `main` in a fresh world, to its end.

    Args:
        mode: time mode; the same `main` gives the same trace in `fast` and `sim`.
        seed: of everything that is left to chance.
        delay_ms: latency of every link, one way.
        jitter_ms: upper bound of a uniform delay on top.
        writer: where the trace goes; None keeps its digest only.
        stepped: virtual time stands still from the beginning until somebody moves the limit of the clock.
        log: where nodes log to; None: what structlog has been told.

    Raises:
        DeadlockError: in virtual time, when everybody waits for nothing.
    """
    # Programs from outside have the machine's clock, and ask by its time for what was stored when.
    timeline = Timeline(time.time_ns() // _NS_PER_MS) if mode is TimeMode.LIVE else Timeline()
    clock = EmulatedClock(timeline, rate=1.0 if mode is TimeMode.LIVE else None, limit_ns=0 if stepped else NEVER_NS)
    carrier = MemoryCarrier() if mode is TimeMode.SIM else LoopbackCarrier()
    recorder = Recorder(timeline, writer)
    fabric = Fabric(timeline, carrier, recorder, seed, delay_ms, jitter_ms)
    clock.turn = partial(Context().run, fabric.hub.turn)  # no cause leaks from one world into the next
    fabric.hub.on_flushed = clock.linger
    clock.on_deadlock = lambda: fabric.hub.fail(DeadlockError(_who_waits()))

    async def body() -> T:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fabric.hub.guard, name="guard")
            world = World(seed, timeline, clock, fabric, recorder, nursery, **({} if log is None else {"log": log}))
            try:
                result = await main(world)
            finally:
                clock.turn = lambda: True  # trio still winds itself up; the world has ended
            nursery.cancel_scope.cancel()
        return result

    try:
        with deterministic_scheduling(), _RARE_GARBAGE_COLLECTION.held():
            # Ctrl-C between a row's seq and the row itself would leave a gap: it waits until `main` waits.
            return trio.run(body, clock=clock, restrict_keyboard_interrupt_to_checkpoints=True)
    except BaseExceptionGroup as group:
        raise unwrap_group(group) from None
    finally:
        if isinstance(carrier, LoopbackCarrier):
            carrier.release()


def _collect_garbage_rarely() -> Undo:
    """Have the collector look seldom: a big cluster holds much that lives long, and makes few cycles."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, *before[1:])

    def undo() -> None:
        gc.set_threshold(*before)
        gc.unfreeze()

    return undo


_RARE_GARBAGE_COLLECTION = ProcessWide(_collect_garbage_rarely)


def _who_waits() -> str:
    root = trio.lowlevel.current_root_task()
    names: list[str] = []
    tasks = [root] if root is not None else []
    while tasks:
        task = tasks.pop()
        names.append(task.name)
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return "nothing will ever happen again; these tasks wait: " + ", ".join(sorted(names))
