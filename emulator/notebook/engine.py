"""A cluster in a thread of its own, which carries out calls from other threads one after the other.

The whole emulation runs in that one thread. Jumping time stands still at a
limit between calls, and only then a call is carried out: so the same calls give
the same trace, however long the callers think. `live` time passes by itself.
"""

import concurrent.futures.thread  # noqa: F401 - see `abandon`
import math
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

import attrs
import pyarrow.parquet  # noqa: F401 - as above
import trio

from emulator.cluster import NodeCrashedError
from emulator.console.session import Session
from emulator.run import RunResult, run_scenario
from emulator.run.run import Ended, manifest_of
from emulator.spec import Scenario
from emulator.spec.addresses import owners
from emulator.time.mode import TimeMode
from emulator.time.timeline import NEVER_NS
from emulator.trace.run_directory import RunDirectory, open_run

T = TypeVar("T")
Act = Callable[[Session], Awaitable[T]]
Look = Callable[[], None]
_NS_PER_MS = 1_000_000
_LOOKS_EVERY_S = 0.1
_GRACE_S = 1.0
"""After an interrupt: how long a call may go on to end by itself before it is cancelled."""


class ClusterEndedError(Exception):
    """The cluster has ended; says why, and where its trace is, in one line."""


class CallCancelledError(Exception):
    """A call was broken off."""


@attrs.define(eq=False)
class _Call(Generic[T]):
    """What somebody wants, and what came of it."""

    act: Act[T]
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    done: threading.Event = attrs.Factory(threading.Event)
    result: T | None = None
    error: BaseException | None = None


class Engine:
    """Runs a scenario in a thread until somebody leaves.

    Args:
        scenario: with the seed to use.
        mode: time mode.
        runs: directory of all runs.
    """

    def __init__(self, scenario: Scenario, mode: TimeMode, runs: Path) -> None:
        self.scenario = scenario
        self.mode = mode
        self._runs = runs
        self._thread = threading.Thread(target=self._run, name=f"cluster {scenario.name}", daemon=True)
        self._seated = threading.Event()
        self._session: Session | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._calls: trio.MemorySendChannel[_Call[object]] | None = None
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._why_ended = "it was closed"

    @property
    def stepped(self) -> bool:
        """Whether time stands still between calls."""
        return self.mode is not TimeMode.LIVE

    @property
    def ended(self) -> bool:
        """Whether its thread has ended."""
        return self._seated.is_set() and not self._thread.is_alive()

    @property
    def session(self) -> Session:
        """At which the calls are carried out; for other threads to look at only."""
        assert self._session is not None
        return self._session

    @property
    def now_ms(self) -> int:
        """Emulated time in whole milliseconds; of a cluster that has ended, when it did."""
        if self._result is not None:
            return round(float(self._result.manifest["virtual_s"]) * 1_000)
        if not self.stepped and not self.ended:
            self.call(_nothing)  # its thread looks at the wall
        return self.reached_ms

    @property
    def reached_ms(self) -> int:
        """How far its thread has come, seen from outside while it is at work."""
        return _ceil_ms(self.session.cluster.world.timeline.now_ns)

    @property
    def result(self) -> RunResult:
        """What the run has left; it must have ended in good order."""
        if self._result is None:
            raise self._ended_error()
        return self._result

    def start(self) -> None:
        """Start the cluster; returns when time stands still at its beginning (`live`: when it runs).

        Raises:
            RunError: the run directory cannot be written, or the loopback network does not carry it.
        """
        self._thread.start()
        while not self._seated.wait(_LOOKS_EVERY_S):
            if not self._thread.is_alive():
                break
        if self._error is not None:
            raise self._error

    def call(self, act: Act[T], look: Look = lambda: None) -> T:
        """Have something carried out, and wait for it.

        Args:
            act: is awaited in the thread of the cluster, while time stands still.
            look: called ten times per second meanwhile.

        Raises:
            ClusterEndedError: the cluster has ended, or ended before it was done.
            NodeCrashedError: a node's own code raised; the cluster has been ended.
            KeyboardInterrupt: while it waited; the cluster lives on.
        """
        call = self._submit(act)
        try:
            self._wait(call, look)
        except KeyboardInterrupt:
            self._break_off(call)
            raise
        self._end_if_crashed()
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def advance(self, duration_ms: int, look: Look = lambda: None) -> None:
        """Let emulated time pass; an interrupt lets it stand still where it has come to.

        Raises:
            as `call`.
        """

        async def act(session: Session) -> None:
            world = session.cluster.world
            if not self.stepped:
                await world.sleep_until_ns(world.timeline.now_ns + duration_ms * _NS_PER_MS)
                return
            world.clock.limit_ns = (_ceil_ms(world.timeline.now_ns) + duration_ms) * _NS_PER_MS
            await self._settle(session)

        self.call(act, look)

    def close(self) -> RunResult | None:
        """Heal everything, stop every process, and write what makes the directory a run.

        Returns:
            What the run has left; None if the cluster could not be waited for.

        Raises:
            NodeCrashedError: a node's own code raised, and nobody has been told so yet.
            RunError: the trace cannot be written.
        """
        self._leave()
        while self._thread.is_alive():
            self._thread.join(_LOOKS_EVERY_S)
        error, told = self._error, isinstance(self._error, NodeCrashedError) and self._why_ended == str(self._error)
        if error is not None and not told:
            self._why_ended = str(error)
            raise error
        return self._result

    def abandon(self) -> None:
        """Close without a word: nobody is left to be told.

        It may be while Python ends. Then neither pyarrow, which writes the last rows, nor the
        `concurrent.futures.thread` that it asks for could be imported any more: that is why they are above.
        """
        self._leave()
        if threading.current_thread() is not self._thread:  # the garbage collector may call from anywhere
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

    def _break_off(self, call: _Call[T]) -> None:
        """Let time stand still where it is, and a verb that is under way come to its end, if it does soon."""

        def halt() -> None:
            clock, timeline = self.session.cluster.world.clock, self.session.cluster.world.timeline
            if NEVER_NS > clock.limit_ns > timeline.now_ns:
                clock.limit_ns = _ceil_ms(timeline.now_ns) * _NS_PER_MS

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
            raise self._error or NodeCrashedError(self._why_ended)

    def _ended_error(self) -> ClusterEndedError:
        why = self._why_ended if self._error is None else str(self._error)
        where = f"; its trace is in {self._session.run_directory}" if self._session is not None else ""
        return ClusterEndedError(f"the cluster has ended: {why}{where}")

    # --- in the thread of the cluster -------------------------------------------

    def _run(self) -> None:
        try:
            self._result = run_scenario(
                self.scenario,
                mode=self.mode,
                runs=self._runs,
                endless=True,
                stepped=self.stepped,
                attendants=(self._attend,),
            )
        except BaseException as error:  # noqa: BLE001 - it is raised again where somebody waits
            self._error = error

    async def _attend(self, session: Session) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._calls, calls = trio.open_memory_channel[_Call[object]](math.inf)
        self._session = session
        await self._settle(session)
        self._seated.set()
        async for call in calls:
            await self._carry_out(call, session)

    async def _carry_out(self, call: _Call[object], session: Session) -> None:
        try:
            with call.scope:
                call.result = await call.act(session)
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread of the caller
            call.error = error
        if call.scope.cancelled_caught:
            call.error = CallCancelledError("the call was broken off")
        call.done.set()

    async def _settle(self, session: Session) -> None:
        """Wait until time stands still again."""
        if self.stepped and not session.leaving.is_set():
            await session.cluster.world.clock.standstill()

    async def let_time_pass(self, act: Callable[[], Awaitable[T]], session: Session) -> T:
        """Do what may need emulated time to pass; it stands still again at the whole millisecond after its end."""
        clock, timeline = session.cluster.world.clock, session.cluster.world.timeline
        if not self.stepped:
            return await act()
        clock.limit_ns = NEVER_NS
        try:
            return await act()
        finally:
            if not session.leaving.is_set():
                clock.limit_ns = _ceil_ms(timeline.now_ns) * _NS_PER_MS
                with trio.CancelScope(shield=True):
                    await self._settle(session)


async def _nothing(_session: Session) -> None:
    """To be asked is enough."""


def _ceil_ms(instant_ns: int) -> int:
    return -(-instant_ns // _NS_PER_MS)


_NS = 1_000_000_000


def flushed(engine: Engine) -> RunDirectory:
    """Write every row that waits; returns the run as it is by now.

    A cluster that has ended has left an ordinary run. That of one that goes on has
    no manifest on disk yet; the one returned counts it as complete up to now.

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
            ended=Ended.COMPLETE,
            end_ns=world.timeline.now_ns,
            wall_s=0,
            crashes=[],
            addresses=owners(scenario),
        )
        return RunDirectory(session.run_directory.resolve(), manifest)

    return engine.call(act)
