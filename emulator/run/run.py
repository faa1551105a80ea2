"""Running a scenario: its world, its run directory, its log and its manifest."""

import os
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import trio

from emulator.base.errors import UserError
from emulator.cluster.cluster import Cluster, NodeCrashedError
from emulator.cluster.operator import Operator, asks_for_owner
from emulator.cluster.schedule import Schedule
from emulator.console.by_hand import ByHand, scenario_by_hand
from emulator.console.guest_acts import GuestActs
from emulator.console.session import Session
from emulator.console.verbs import VERBS
from emulator.guests.address_book import OWN_ADDRESSES, AddressBook, ListenAddresses, address_books
from emulator.guests.guests import GuestAccess
from emulator.guests.listeners import SocketGuestListeners
from emulator.guests.views.guest_views import GuestViews
from emulator.machine.garbage import rare_garbage_collection
from emulator.machine.world import DeadlockError, World, run_world
from emulator.network.loopback import LoopbackError
from emulator.run.log import RunLog
from emulator.run.manifest import head_of, manifest_of
from emulator.spec import Scenario
from emulator.spec.model.addresses import grpc_ports, node_ports, owners
from emulator.spec.model.scenario import GUEST
from emulator.spec.reading.secrets import resolved
from emulator.spec.reading.user_functions import sources
from emulator.spec.refusals.violations import fitting
from emulator.state.live import LiveState
from emulator.time.failure import Failure
from emulator.time.mode import TimeMode
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.recorder import RowListener
from emulator.trace.run_directory import BY_HAND_FILE, LOG_FILE, RunEnd, being_written, write_manifest
from emulator.trace.schema import TraceLevel
from emulator.trace.segments import SegmentWriter
from nodes.units import NS_PER_MS, NS_PER_S

_FILES = RunFiles()
_PROGRESS_STEPS = 200
SessionTask = Callable[[Session], Awaitable[None]]
"""A task next to a run that uses its session; it is started before the cluster and cancelled at the end."""
Progress = Callable[[float], None]
"""Called with the elapsed share of the emulated time, 0..1."""


class RunError(UserError):
    """A run could not start, or could not write its trace; the text says where and why in one line."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C interrupted a run; its trace so far is in `path`."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"interrupted; what was traced is in {path}")
        self.path = path


class EmulatorBugError(UserError):
    """Code of the emulator raised, outside a node; the text says what, and where the traceback is."""


@attrs.frozen
class RunResult:
    """The run directory and the manifest of a run."""

    path: Path
    manifest: dict[str, Any]


@rare_garbage_collection()
def run_scenario(
    scenario: Scenario,
    *,
    mode: TimeMode = TimeMode.SIM,
    level: TraceLevel = TraceLevel.FULL,
    runs: Path = Path("runs"),
    endless: bool = False,
    stepped: bool = False,
    progress: Progress | None = None,
    listeners: tuple[RowListener, ...] = (),
    session_tasks: tuple[SessionTask, ...] = (),
    listen: ListenAddresses = OWN_ADDRESSES,
    files: RunFiles = _FILES,
    campaign: str = "",
) -> RunResult:
    """Run a scenario and write its trace.

    Args:
        scenario: to run, with its seed.
        mode: time mode.
        level: which rows the trace has.
        runs: directory of all runs; the new one is created in it.
        endless: continue after the scenario's end until Ctrl-C, or until a session task ends the run.
        stepped: virtual time starts with the limit 0, and session tasks move the limit.
        progress: called as emulated time passes.
        listeners: called with every row as it is recorded, except rows of `rpc` and `causes`.
        session_tasks: run next to the cluster; faults that they begin are saved in `by_hand.toml`.
        listen: where guests reach nodes, in mode `live`.
        files: what the run directory is written with.
        campaign: digest of the campaign to which the run belongs; empty: to none.

    Raises:
        ListenError: guests cannot be listened to there; nothing has begun.
        SpecError: parts of the scenario do not fit together, or the value of a secret is missing; nothing has begun.
        RunError: the run directory cannot be written.
        NodeCrashedError: a node's own code raised; the trace is whole.
        EmulatorBugError: other code of the emulator raised; the trace so far has been written.
        RunInterrupted: Ctrl-C; the trace so far has been written.
    """
    if scenario.guests and mode is not TimeMode.LIVE:
        raise RunError(f"{scenario.name}: its guests live in real time: it runs in mode live only, not in {mode}")
    if listen != OWN_ADDRESSES and mode is not TimeMode.LIVE:
        raise RunError(f"{scenario.name}: it listens for guests in mode live only, not in {mode}")
    scenario = resolved(fitting(scenario))
    with _guest_listeners_at(listen, scenario) as (guest_listeners, grpc_listeners):
        path = create_run_directory(runs, f"{scenario.name}-{mode}-seed{scenario.seed}", files)
        try:
            _save_code(scenario, path, files)
            run = _RunUnderWay(
                scenario, mode, path, files, level, session_tasks, progress, endless=endless, campaign=campaign
            )
            with being_written(path), _ended_in_order(run):
                run_world(
                    run.main,
                    mode=mode,
                    seed=scenario.seed,
                    delay_ms=scenario.network.delay_ms,
                    jitter_ms=scenario.network.jitter_ms,
                    writer=run.writer,
                    level=level,
                    stepped=stepped,
                    make_log=run.log.logger,
                    listeners=(*listeners, *run.listeners()),
                    guests=run.guests(guest_listeners, grpc_listeners),
                    failure=run.failure,
                )
                return RunResult(path, run.close())
        except (LoopbackError, DeadlockError) as error:
            raise RunError(f"{path}: {error}") from error
        except OSError as error:
            raise RunError(f"{path}: the trace cannot be written: {_why(error)}") from error


def _save_code(scenario: Scenario, path: Path, files: RunFiles) -> None:
    """Save the modules that a scenario names next to the manifest, which holds the scenario."""
    for relative_path, content in sources(scenario).items():
        files.make_directory((path / relative_path).parent)
        put_in_place(files, path / relative_path, content)


@contextmanager
def _guest_listeners_at(
    listen: ListenAddresses, scenario: Scenario
) -> Iterator[tuple[SocketGuestListeners | None, SocketGuestListeners | None]]:
    """The guest listeners for all nodes and for gRPC while the run lasts; None for an address that is not chosen."""
    books = address_books(listen, scenario.guests or (GUEST,), node_ports(scenario), grpc_ports(scenario))
    with ExitStack() as stack:

        def opened(book: AddressBook | None) -> SocketGuestListeners | None:
            if book is None:
                return None
            guest_listeners = SocketGuestListeners(book)
            stack.callback(guest_listeners.release)
            return guest_listeners

        of_nodes, of_grpc = map(opened, books)
        yield of_nodes, of_grpc


@contextmanager
def _ended_in_order(run: "_RunUnderWay") -> Iterator[None]:
    """Write the manifest of a run that ends with an exception, too, if the disk takes it."""
    path = run.path
    try:
        yield
    except KeyboardInterrupt:
        run.close()
        raise RunInterrupted(path) from None
    except NodeCrashedError as error:
        run.close()
        raise NodeCrashedError(f"{error}; this is a bug: its traceback is in {path / LOG_FILE}") from error
    except OSError as error:
        run.log_failure(error)
        raise
    except (UserError, LoopbackError, DeadlockError) as error:
        run.fail(error, bug=False)
        raise
    except Exception as error:
        run.fail(error, bug=True)
        subject = f"{type(error).__name__}: {error}"
        raise EmulatorBugError(f"{path}: {subject}; this is a bug: its traceback is in {path / LOG_FILE}") from error


def create_run_directory(runs: Path, stem: str, files: RunFiles = _FILES) -> Path:
    """Create a directory `<stem>-<n>` with the first free n, from 1.

    Raises:
        RunError: the directory cannot be created.
    """
    try:
        files.make_directory(runs)
        number = 1
        while True:
            path = runs / f"{stem}-{number}"
            try:
                files.make_new_directory(path)
            except FileExistsError:
                number += 1
            else:
                return path
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise RunError(f"{runs}: no run directory can be created: {_why(error)}") from error


def _why(error: OSError | ValueError) -> str:
    # The texts of Arrow's errors are long, but they have the error number.
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


class _RunUnderWay:
    """One run: its parts that outlive its world, what happens in the world, and what is left of it.

    Args:
        scenario: to run.
        mode: time mode.
        path: the run directory.
        files: what the run directory is written with.
        level: which rows the trace has.
        session_tasks: run next to the cluster.
        progress: called as emulated time passes.
        endless: whether the run goes on after the scenario's end.
        campaign: digest of the campaign to which the run belongs.

    Raises:
        OSError: the run directory cannot be written.
    """

    def __init__(
        self,
        scenario: Scenario,
        mode: TimeMode,
        path: Path,
        files: RunFiles,
        level: TraceLevel,
        session_tasks: tuple[SessionTask, ...],
        progress: Progress | None,
        *,
        endless: bool,
        campaign: str = "",
    ) -> None:
        self.path = path
        self._campaign = campaign
        self.ended = RunEnd.INTERRUPTED
        self.crashes: list[str] = []
        # A full disk ends the run; raised where a row is recorded, it would look like a crash of the recording node.
        self.failure = Failure()
        self.log = RunLog(path / LOG_FILE, files, self.failure.report)
        self._names = owners(scenario)
        head = head_of(scenario, mode, level, path.name, campaign)
        self.writer = SegmentWriter(path, head, files, names=self._names, on_error=self.failure.report)
        self._scenario = scenario
        self._mode = mode
        self._files = files
        self._session_tasks = session_tasks
        self._progress = progress
        self._endless = endless
        self._begin_s = time.perf_counter()
        self._plan = scenario.plan()
        self._state = LiveState(scenario)
        self._guest_acts = GuestActs(self._names)
        self._world: World | None = None
        self._session: Session | None = None
        self._end_ns = 0

    def listeners(self) -> tuple[RowListener, ...]:
        """Those that a session, guests or a fault need."""
        if self._session_tasks:
            return (self._state.note, self._guest_acts.note)
        if self._mode is TimeMode.LIVE:
            return (self._state.owners.note, self._guest_acts.note)
        if any(asks_for_owner(timed.fault) for timed in self._plan.faults):
            return (self._state.owners.note,)
        return ()

    def guests(
        self, guest_listeners: SocketGuestListeners | None, grpc_listeners: SocketGuestListeners | None
    ) -> GuestAccess:
        """How guests join."""
        scenario = self._scenario
        broker_names = {spec.name: spec.broker_name for spec in scenario.brokers}
        return GuestAccess(
            scenario.guests,
            guest_listeners,
            grpc_listeners,
            scenario.guest_limits,
            lambda fabric: GuestViews(fabric, broker_names, self._names).watch,
        )

    async def main(self, world: World) -> None:
        """Run the scenario in its world; called once."""
        self._world = world
        if self._progress is not None:
            _report_progress(world, self._scenario.run_for_ms * NS_PER_MS, self._progress)
        cluster = Cluster(world, self._scenario, self._names)
        operator = Operator(cluster, self._state.owners)
        session = self._session = Session(cluster, operator, self._state, self.path, VERBS, self._guest_acts)
        until_over = trio.CancelScope()
        at_end = None if self._endless else until_over.cancel
        schedule = Schedule(world, operator, self._plan, self._scenario.run_for_ms, at_end, self._scenario.acts)
        schedule.begin()
        for task in self._session_tasks:
            world.nursery.start_soon(task, session)
        if self._session_tasks:
            await trio.lowlevel.checkpoint()  # session tasks begin before the first node starts
        try:
            async with cluster:
                with until_over:
                    world.nursery.start_soon(_leave, session, until_over)
                    await cluster.start()
                    schedule.on_started()
                    while True:
                        await world.sleep_until_ns(world.timeline.now_ns + 3_600 * NS_PER_S)
                schedule.stop()
                await operator.heal_all()
                if not session.leaving.is_set():
                    await schedule.until_done()
                _record_in_flight(world)
                self.ended = RunEnd.COMPLETE
        finally:
            self.crashes = cluster.crashes()
            # Tasks that are cancelled after this take no part in the run.
            self._end_ns = world.timeline.now_ns

    def close(self) -> dict[str, Any]:
        """Write the waiting rows, `by_hand.toml`, and at last the manifest; returns the manifest.

        Raises:
            OSError: something could not be written; there is no manifest.
        """
        if self._world is None:
            return {}
        self._world.recorder.end()
        manifest = manifest_of(
            self._world,
            self._scenario,
            self._mode,
            self.path.name,
            ended=self.ended,
            end_ns=self._end_ns,
            wall_s=time.perf_counter() - self._begin_s,
            crashes=self.crashes,
            addresses=self._names,
            campaign=self._campaign,
            log_checksum=self.log.checksum,
        )
        self._save_faults_by_hand()
        write_manifest(self.path, manifest, self._files)
        self.writer.remove_journal()
        return manifest

    def fail(self, error: Exception, *, bug: bool) -> None:
        """Log the traceback of an error that ended the run, and write what can be written."""
        self.ended = RunEnd.FAILED
        if bug:
            self.crashes = [*self.crashes, f"{type(error).__name__}: {error}"]
        self.log_failure(error)
        # The same bug may keep the last rows from being written; index and journal have those before.
        with suppress(Exception):
            self.close()

    def log_failure(self, error: Exception) -> None:
        """Log the traceback of an error that ended the run."""
        text = "".join(traceback.format_exception(error))
        log = self.log.logger() if self._world is None else self._world.log
        log.error("the run failed", error=f"{type(error).__name__}: {error}", traceback=text)

    def _save_faults_by_hand(self) -> None:
        by_hand = self._session.by_hand() if self._session is not None else ByHand()
        if by_hand:
            replay = scenario_by_hand(self._scenario, by_hand, self._end_ns // NS_PER_MS)
            put_in_place(self._files, self.path / BY_HAND_FILE, replay.encode())


def _record_in_flight(world: World) -> None:
    """Record the frames that have been sent and have not arrived."""
    for sender, command, sent_ns in world.fabric.in_flight():
        if command is not None:
            world.recorder.frame("in_flight", sender, command, sent_ns)


async def _leave(session: Session, until_over: trio.CancelScope) -> None:
    """End the run when the session is to be left."""
    await session.leaving.wait()
    until_over.cancel()


def _report_progress(world: World, end_ns: int, progress: Progress) -> None:
    def tick(step: int) -> None:
        progress(step / _PROGRESS_STEPS)
        if step < _PROGRESS_STEPS:
            due_ns = end_ns * (step + 1) // _PROGRESS_STEPS
            world.timeline.call_at(due_ns, lambda: tick(step + 1))

    tick(0)


__all__ = [
    "BY_HAND_FILE",
    "EmulatorBugError",
    "Progress",
    "RunError",
    "RunInterrupted",
    "RunResult",
    "create_run_directory",
    "run_scenario",
]
