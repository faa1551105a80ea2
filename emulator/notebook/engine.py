"""The engine: runs a cluster in a thread, and executes calls from other threads one after the other.

The whole emulation runs in that one thread. Virtual time stops at a limit
between calls, and calls are executed only then, so the same calls give the same
trace at any pace. In `live`, time follows the wall clock.
"""

import concurrent.futures.thread  # noqa: F401 - see `abandon`
import math
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

import attrs
import trio

from emulator.cluster.cluster import NodeCrashedError
from emulator.console.session import Session
from emulator.guests.address_book import OWN_ADDRESSES, ListenAddresses
from emulator.run import RunResult, run_scenario
from emulator.run.manifest import manifest_of
from emulator.spec import Scenario
from emulator.spec.model.addresses import owners
from emulator.time.mode import TimeMode
from emulator.time.timeline import NEVER_NS
from emulator.trace.run_directory import RunDirectory, RunEnd, open_run
from emulator.trace.schema import TraceLevel
from nodes.units import NS_PER_MS

T = TypeVar("T")
Act = Callable[[Session], Awaitable[T]]
Look = Callable[[], None]
_LOOKS_EVERY_S = 0.1
_GRACE_S = 1.0
"""How long an interrupted call may take to end by itself before it is cancelled."""


class ClusterEndedError(Exception):
    """The cluster has ended; the text says why, and where its trace is, in one line."""


class CallCancelledError(Exception):
    """A call was interrupted."""


@attrs.define(eq=False)
class _Call(Generic[T]):
    """A call and its result."""

    act: Act[T]
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    done: threading.Event = attrs.Factory(threading.Event)
    result: T | None = None
    error: BaseException | None = None


class Engine:
    """Runs a scenario in a thread until it is closed.

    Args:
        scenario: to run, with its seed.
        mode: time mode.
        level: which rows the trace has.
        runs: directory of all runs.
        listen: where guests reach nodes, in mode `live`.
    """

    def __init__(
        self,
        scenario: Scenario,
        mode: TimeMode,
        level: TraceLevel,
        runs: Path,
        listen: ListenAddresses = OWN_ADDRESSES,
    ) -> None:
        self.scenario = scenario
        self.mode = mode
        self._level = level
        self._runs = runs
        self._listen = listen
        self._thread = threading.Thread(target=self._run, name=f"cluster {scenario.name}", daemon=True)
        self._ready = threading.Event()
        self._session: Session | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._calls: trio.MemorySendChannel[_Call[object]] | None = None
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._why_ended = "it was closed"
        self._is_crash_reported = False

    @property
    def stepped(self) -> bool:
        """Whether time stops between calls."""
        return self.mode is not TimeMode.LIVE

    @property
    def ended(self) -> bool:
        """Whether its thread has ended."""
        return self._ready.is_set() and not self._thread.is_alive()

    @property
    def session(self) -> Session:
        """The session of the run; other threads may only read it."""
        assert self._session is not None
        return self._session

    @property
    def now_ms(self) -> int:
        """Emulated time in ms since the run began, whole; after the end, that of the end."""
        if self._result is not None:
            return round(float(self._result.manifest["virtual_s"]) * 1_000)
        if not self.stepped and not self.ended:
            self.call(_nothing)  # updates the time from the wall clock
        return self.reached_ms

    @property
    def reached_ms(self) -> int:
        """Emulated time in ms, read from another thread during a call."""
        return _ceil_ms(self.session.cluster.world.timeline.now_ns)

    @property
    def result(self) -> RunResult:
        """The result of the run.

        Raises:
            ClusterEndedError: the run has no result.
        """
        if self._result is None:
            raise self._ended_error()
        return self._result

    def start(self) -> None:
        """Start the cluster; returns when time has stopped at 0 (`live`: when the cluster runs).

        Raises:
            RunError: the run directory cannot be written, or the loopback network cannot be used.
        """
        self._thread.start()
        while not self._ready.wait(_LOOKS_EVERY_S):
            if not self._thread.is_alive():
                break
        if self._error is not None:
            raise self._error

    def call(self, act: Act[T], look: Look = lambda: None) -> T:
        """Execute a call, and wait for its result.

        Args:
            act: awaited in the thread of the cluster, while time is stopped.
            look: called ten times per second meanwhile.

        Raises:
            ClusterEndedError: the cluster has ended, or ended during the call.
            NodeCrashedError: a node's own code raised; the cluster has ended.
            KeyboardInterrupt: the call was interrupted; the cluster keeps running.
        """
        call = self._submit(act)
        try:
            self._wait(call, look)
        except KeyboardInterrupt:
            self._interrupt(call)
            raise
        self._end_if_crashed()
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def advance(self, duration_ms: int, look: Look = lambda: None) -> None:
        """Let emulated time pass; after an interrupt it stops where it is.

        Args:
            duration_ms: emulated ms.
            look: called ten times per second meanwhile.

        Raises:
            ClusterEndedError: as `call`.
            NodeCrashedError: as `call`.
            KeyboardInterrupt: as `call`.
        """

        async def act(session: Session) -> None:
            world = session.cluster.world
            if not self.stepped:
                await world.sleep_until_ns(world.timeline.now_ns + duration_ms * NS_PER_MS)
                return
            world.clock.limit_ns = (_ceil_ms(world.timeline.now_ns) + duration_ms) * NS_PER_MS
            await self._settle(session)

        self.call(act, look)

    def close(self) -> RunResult | None:
        """End all faults, stop every process, and write the manifest.

        Returns:
            The result of the run; None if it has none.

        Raises:
            NodeCrashedError: a node's own code raised, and no call has raised this yet.
            RunError: the trace cannot be written.
        """
        self._leave()
        while self._thread.is_alive():
            self._thread.join(_LOOKS_EVERY_S)
        if self._error is not None and not self._is_crash_reported:
            self._why_ended = str(self._error)
            raise self._error
        return self._result

    def abandon(self) -> None:
        """Close without raising anything, for a handle that was garbage-collected.

        This may happen while Python exits. Then `concurrent.futures.thread`, which pyarrow needs to write the last
        rows, cannot be imported any more; that is why this module imports it.
        """
        self._leave()
        if threading.current_thread() is not self._thread:  # the garbage collector may run in any thread
            self._thread.join()

    # --- in the thread of the caller --------------------------------------------

    def _submit(self, act: Act[T]) -> _Call[T]:
        call = _Call(act)
        if self._token is None or self._calls is None or not self._thread.is_alive():
            raise self._ended_error()
        try:
            self._token.run_sync_soon(self._calls.send_nowait, call)  # type: ignore[arg-type]
        except trio.RunFinishedError:
            raise self._ended_error() from None
        return call

    def _wait(self, call: _Call[T], look: Look) -> None:
        while not call.done.wait(_LOOKS_EVERY_S):
            if not self._thread.is_alive() and not call.done.is_set():
                raise self._ended_error()
            look()

    def _interrupt(self, call: _Call[T]) -> None:
        """Stop time where it is, and give the running call a moment to end before it is cancelled."""

        def halt() -> None:
            clock, timeline = self.session.cluster.world.clock, self.session.cluster.world.timeline
            if NEVER_NS > clock.limit_ns > timeline.now_ns:
                clock.limit_ns = _ceil_ms(timeline.now_ns) * NS_PER_MS

        self._soon(halt)
        if not call.done.wait(_GRACE_S):
            self._soon(call.scope.cancel)
            call.done.wait(_GRACE_S)

    def _leave(self) -> None:
        def leave() -> None:
            world = self.session.cluster.world
            self.session.leaving.set()
            if self.stepped:
                world.clock.limit_ns = NEVER_NS

        self._soon(leave)

    def _soon(self, act: Callable[[], None]) -> None:
        if self._token is not None:
            try:
                self._token.run_sync_soon(act)
            except trio.RunFinishedError:
                return

    def _end_if_crashed(self) -> None:
        crashes = self.session.cluster.crashes()
        if crashes:
            self._leave()
            self._thread.join()
            self._why_ended = "; ".join(crashes)
            self._is_crash_reported = isinstance(self._error, NodeCrashedError)
            raise self._error or NodeCrashedError(self._why_ended)

    def _ended_error(self) -> ClusterEndedError:
        why = self._why_ended if self._error is None or self._is_crash_reported else str(self._error)
        where = f"; its trace is in {self._session.run_directory}" if self._session is not None else ""
        return ClusterEndedError(f"the cluster has ended: {why}{where}")

    # --- in the thread of the cluster -------------------------------------------

    def _run(self) -> None:
        try:
            self._result = run_scenario(
                self.scenario,
                mode=self.mode,
                level=self._level,
                runs=self._runs,
                endless=True,
                stepped=self.stepped,
                session_tasks=(self._serve_calls,),
                listen=self._listen,
            )
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread of the caller
            self._error = error

    async def _serve_calls(self, session: Session) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._calls, calls = trio.open_memory_channel[_Call[object]](math.inf)
        self._session = session
        await self._settle(session)
        self._ready.set()
        async for call in calls:
            await self._execute(call, session)

    async def _execute(self, call: _Call[object], session: Session) -> None:
        try:
            with call.scope:
                call.result = await call.act(session)
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread of the caller
            call.error = error
        if call.scope.cancelled_caught:
            call.error = CallCancelledError("the call was interrupted")
        call.done.set()

    async def _settle(self, session: Session) -> None:
        """Wait until time has stopped."""
        if self.stepped and not session.leaving.is_set():
            await session.cluster.world.clock.standstill()

    async def let_time_pass(self, act: Callable[[], Awaitable[T]], session: Session) -> T:
        """Await a call during which emulated time passes; time stops at the whole millisecond after its end."""
        clock, timeline = session.cluster.world.clock, session.cluster.world.timeline
        if not self.stepped:
            return await act()
        clock.limit_ns = NEVER_NS
        try:
            return await act()
        finally:
            if not session.leaving.is_set():
                clock.limit_ns = _ceil_ms(timeline.now_ns) * NS_PER_MS
                with trio.CancelScope(shield=True):
                    await self._settle(session)


async def _nothing(_session: Session) -> None:
    """A call without an effect."""


def _ceil_ms(instant_ns: int) -> int:
    return -(-instant_ns // NS_PER_MS)


def flushed(engine: Engine) -> RunDirectory:
    """Write all waiting rows; returns the run up to now.

    The run of a running cluster has no manifest on disk yet; the returned manifest
    describes it as complete up to now.

    Args:
        engine: of the cluster.

    Raises:
        NotARunError: the run has ended and is not readable.
        OSError: the rows cannot be written.
    """
    if engine.ended:
        return open_run(engine.session.run_directory)

    async def act(session: Session) -> RunDirectory:
        world, scenario = session.cluster.world, session.cluster.scenario
        manifest = manifest_of(
            world,
            scenario,
            engine.mode,
            session.run_directory.name,
            ended=RunEnd.COMPLETE,
            end_ns=world.timeline.now_ns,
            wall_s=0,
            crashes=[],
            addresses=owners(scenario),
            log_checksum="",
        )
        return RunDirectory(session.run_directory.resolve(), manifest)

    return engine.call(act)
