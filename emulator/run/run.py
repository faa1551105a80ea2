"""Running a scenario: its world, its run directory, its log and its manifest."""

import os
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import trio

from emulator.base.errors import UserError
from emulator.cluster import Cluster, NodeCrashedError
from emulator.cluster.operator import Operator, asks_for_owner
from emulator.cluster.schedule import Schedule
from emulator.console.session import Session
from emulator.console.verbs import VERBS, scenario_by_hand
from emulator.guest_views.views import GuestViews
from emulator.machine.world import DeadlockError, World, rare_garbage_collection, run_world
from emulator.network.guests.address_book import AddressBook, ListenAddress
from emulator.network.guests.budget import GuestBudget
from emulator.network.guests.doors import ListeningDoors
from emulator.network.loopback import LoopbackError
from emulator.run.log import LOG_FILE, RunLog
from emulator.spec import Scenario, to_dict
from emulator.spec.addresses import node_ports, owners
from emulator.spec.targets import GUEST
from emulator.state.live import LiveState
from emulator.time.mode import TimeMode
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.recorder import RowListener
from emulator.trace.run_directory import Ended, being_written, versions, write_manifest
from emulator.trace.schema import SCHEMA_VERSION, TraceLevel
from emulator.trace.segments import SegmentWriter
from faults.plan import Plan

BY_HAND_FILE = "by_hand.toml"
"""File in a run directory: a scenario that repeats the faults begun by hand."""
_FILES = RunFiles()
_NS = 1_000_000_000
_NS_PER_MS = 1_000_000
_PROGRESS_STEPS = 200
SessionTask = Callable[[Session], Awaitable[None]]
"""A task beside a run that uses its session; it is started before the cluster and cancelled at the end."""
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
    listen: ListenAddress | None = None,
    files: RunFiles = _FILES,
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
        session_tasks: run beside the cluster; faults that they begin are saved in `by_hand.toml`.
        listen: where guests reach all nodes, in mode `live`; None: at loopback addresses of their own.
        files: what the run directory is written with.

    Raises:
        ListenError: guests cannot be listened to there; nothing has begun.
        RunError: the run directory cannot be written.
        NodeCrashedError: a node's own code raised; the trace is whole.
        EmulatorBugError: other code of the emulator raised; the trace so far has been written.
        RunInterrupted: Ctrl-C; the trace so far has been written.
    """
    if scenario.guests and mode is not TimeMode.LIVE:
        raise RunError(f"{scenario.name}: its guests live in real time: it runs in mode live only, not in {mode}")
    if listen is not None and mode is not TimeMode.LIVE:
        raise RunError(f"{scenario.name}: it listens for guests in mode live only, not in {mode}")
    with _doors_at(listen, scenario) as doors:
        path = create_run_directory(runs, f"{scenario.name}-{mode}-seed{scenario.seed}", files)
        try:
            log_file = RunLog(path / LOG_FILE, files)
            writer = SegmentWriter(path, _head(scenario, mode, level, path.name), files)
            outcome = _Outcome(path, scenario, mode, files, writer, log_file, time.perf_counter())
            with being_written(path), _ended_in_order(outcome):
                run_world(
                    lambda world: _main(world, outcome, progress, listeners, session_tasks, endless=endless),
                    mode=mode,
                    seed=scenario.seed,
                    delay_ms=scenario.network.delay_ms,
                    jitter_ms=scenario.network.jitter_ms,
                    writer=writer,
                    level=level,
                    stepped=stepped,
                    log=log_file.logger,
                    guests=scenario.guests,
                    doors=doors,
                )
                return RunResult(path, outcome.close())
        except (LoopbackError, DeadlockError) as error:
            raise RunError(f"{path}: {error}") from error
        except OSError as error:
            raise RunError(f"{path}: the trace cannot be written: {_why(error)}") from error


@contextmanager
def _doors_at(listen: ListenAddress | None, scenario: Scenario) -> Iterator[ListeningDoors | None]:
    """The doors at an address of this machine while the run lasts; None for no address."""
    if listen is None:
        yield None
        return
    doors = ListeningDoors(AddressBook(listen, scenario.guests or (GUEST,), node_ports(scenario)))
    try:
        yield doors
    finally:
        doors.release()


@contextmanager
def _ended_in_order(outcome: "_Outcome") -> Iterator[None]:
    """Write the manifest of a run that ends with an exception, too, if the disk takes it."""
    path = outcome.path
    try:
        yield
    except KeyboardInterrupt:
        outcome.close()
        raise RunInterrupted(path) from None
    except NodeCrashedError as error:
        outcome.close()
        raise NodeCrashedError(f"{error}; this is a bug: its traceback is in {path / LOG_FILE}") from error
    except OSError as error:
        with suppress(OSError):
            outcome.log_failure(error)
        raise
    except (UserError, LoopbackError, DeadlockError) as error:
        outcome.fail(error, bug=False)
        raise
    except Exception as error:
        outcome.fail(error, bug=True)
        what = f"{type(error).__name__}: {error}"
        raise EmulatorBugError(f"{path}: {what}; this is a bug: its traceback is in {path / LOG_FILE}") from error


def _head(scenario: Scenario, mode: TimeMode, level: TraceLevel, run_id: str) -> dict[str, Any]:
    """What the index says of a run before it begins."""
    return {
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        "seed": scenario.seed,
        "mode": mode,
        "trace": level,
        "addresses": owners(scenario),
        "versions": versions(),
        "scenario": to_dict(scenario),
    }


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


def manifest_of(
    world: World,
    scenario: Scenario,
    mode: TimeMode,
    run_id: str,
    *,
    ended: Ended,
    end_ns: int,
    wall_s: float,
    crashes: list[str],
    addresses: dict[str, str],
) -> dict[str, Any]:
    """The manifest of a run, finished or under way; writes all waiting rows, so that digest and counts match the disk.

    Args:
        world: of the run.
        scenario: of the run.
        mode: time mode.
        run_id: name of the run directory.
        ended: how it ended.
        end_ns: end of the run, in emulated ns.
        wall_s: its duration in wall seconds.
        crashes: nodes that raised, one line each.
        addresses: mapping IP address -> node.

    Raises:
        OSError: the rows cannot be written.
    """
    recorder = world.recorder
    return {
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        "ended": ended,
        "digest": recorder.digest(),
        "seed": scenario.seed,
        "mode": mode,
        "trace": recorder.level,
        "rows": dict(recorder.counts),
        "virtual_s": end_ns / _NS,
        "wall_s": round(wall_s, 3),
        "crashes": crashes,
        "measured": {
            name: {"times": watch.times, "cpu_ms": round(watch.cpu_ns / 1e6, 3)}
            for name, watch in sorted(world.stopwatches.items())
        },
        "addresses": addresses,
        "versions": versions(),
        "scenario": to_dict(scenario),
    }


@attrs.define
class _Outcome:
    """Collects what the manifest of a run needs."""

    path: Path
    scenario: Scenario
    mode: TimeMode
    files: RunFiles
    writer: SegmentWriter
    log: RunLog
    begin: float
    world: World | None = None
    session: Session | None = None
    end_ns: int = 0
    ended: Ended = Ended.INTERRUPTED
    crashes: list[str] = attrs.Factory(list)
    addresses: dict[str, str] = attrs.Factory(dict)

    def close(self) -> dict[str, Any]:
        """Write the waiting rows, `by_hand.toml`, and at last the manifest; returns the manifest.

        Raises:
            OSError: something could not be written; there is no manifest.
        """
        if self.world is None:
            return {}
        self.world.recorder.end()
        manifest = manifest_of(
            self.world,
            self.scenario,
            self.mode,
            self.path.name,
            ended=self.ended,
            end_ns=self.end_ns,
            wall_s=time.perf_counter() - self.begin,
            crashes=self.crashes,
            addresses=self.addresses,
        )
        self._save_faults_by_hand()
        write_manifest(self.path, manifest, self.files)
        self.writer.remove_journal()
        return manifest

    def fail(self, error: Exception, *, bug: bool) -> None:
        """Log the traceback of an error that ended the run, and write what can be written."""
        self.ended = Ended.FAILED
        if bug:
            self.crashes = [*self.crashes, f"{type(error).__name__}: {error}"]
        with suppress(OSError):
            self.log_failure(error)
        # The same bug may keep the last rows from being written; index and journal have those before.
        with suppress(Exception):
            self.close()

    def log_failure(self, error: Exception) -> None:
        """Log the traceback of an error that ended the run."""
        self.log.on_error = None
        text = "".join(traceback.format_exception(error))
        self.log.logger.error("the run failed", error=f"{type(error).__name__}: {error}", traceback=text)

    def _save_faults_by_hand(self) -> None:
        by_hand = self.session.by_hand() if self.session is not None else Plan()
        if by_hand.faults:
            replay = scenario_by_hand(self.scenario, by_hand, self.end_ns // _NS_PER_MS)
            put_in_place(self.files, self.path / BY_HAND_FILE, replay.encode())


async def _main(
    world: World,
    outcome: _Outcome,
    progress: Progress | None,
    listeners: tuple[RowListener, ...],
    session_tasks: tuple[SessionTask, ...],
    *,
    endless: bool,
) -> None:
    outcome.world = world
    outcome.log.now = lambda: (world.timeline.now_ns, world.recorder.last_seq)
    world.fabric.guest_budget = GuestBudget(outcome.scenario.guest_limits)
    # A full disk ends the run; raised where a row is recorded, it would look like a crash of the recording node.
    outcome.writer.on_error = outcome.log.on_error = world.fabric.hub.fail
    world.recorder.listeners.extend(listeners)
    scenario = outcome.scenario
    if progress is not None:
        _report_progress(world, scenario.run_for_ms * _NS_PER_MS, progress)
    cluster = Cluster(world, scenario)
    outcome.writer.names = cluster.names
    broker_names = {spec.name: spec.broker_name for spec in scenario.brokers}
    world.fabric.watch_guest = GuestViews(world, broker_names, cluster.names).watch
    plan = scenario.plan()
    state = LiveState(scenario)
    operator = Operator(cluster, state.owners)
    session = Session(cluster, operator, state, outcome.path, VERBS)
    outcome.session = session
    if session_tasks:
        world.recorder.listeners.append(state.note)
    elif any(asks_for_owner(timed.fault) for timed in plan.faults):
        world.recorder.listeners.append(state.owners.note)
    until_over = trio.CancelScope()
    at_end = None if endless else until_over.cancel
    schedule = Schedule(world, operator, plan, scenario.run_for_ms, at_end)
    schedule.begin()
    for task in session_tasks:
        world.nursery.start_soon(task, session)
    if session_tasks:
        await trio.lowlevel.checkpoint()  # session tasks begin before the first node starts
    try:
        async with cluster:
            with until_over:
                world.nursery.start_soon(_leave, session, until_over)
                await cluster.start()
                schedule.on_started()
                while True:
                    await world.sleep_until_ns(world.timeline.now_ns + 3_600 * _NS)
            schedule.stop()
            await _end(world, operator, outcome)
    finally:
        outcome.crashes = cluster.crashes()
        outcome.addresses = cluster.names
        # Tasks that are cancelled after this take no part in the run.
        outcome.end_ns = world.timeline.now_ns


async def _end(world: World, operator: Operator, outcome: _Outcome) -> None:
    await operator.heal_all()
    for sender, command, sent_ns in world.fabric.in_flight():
        if command is not None:
            world.recorder.frame("in_flight", sender, command, sent_ns)
    outcome.ended = Ended.COMPLETE


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
    "manifest_of",
    "run_scenario",
]
