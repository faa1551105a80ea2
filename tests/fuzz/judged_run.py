"""One run of a scenario, watched and judged."""

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import trio

from emulator.cluster.cluster import NodeCrashedError
from emulator.console.session import Session
from emulator.network.endpoint import Endpoint
from emulator.network.fabric import Fabric
from emulator.run import EmulatorBugError, RunError, run_scenario
from emulator.spec import Scenario
from emulator.time.mode import TimeMode
from emulator.trace.schema import TABLES
from faults.plan import TimedFault
from fuzz.oracles import Evidence, Problem, Sent, problems_of
from nodes.protocol.command import Command
from nodes.rpc.client import RpcClient
from support.run_rows import table_rows

STUCK_AFTER_S = 120
_BY_FORCE_AFTER_S = 10


class StuckError(Exception):
    """A run does not end."""


@attrs.frozen
class Judged:
    """What a run was found to be."""

    problems: tuple[Problem, ...]
    digest: str = ""
    rows: int = 0
    emulated_s: float = 0.0


class _Noted(dict[str, TimedFault]):
    """The active faults of an operator, which also keeps all that were ever active, with their resolved targets."""

    def __init__(self, ever: dict[str, TimedFault]) -> None:
        super().__init__()
        self._ever = ever

    def __setitem__(self, fault_id: str, timed: TimedFault) -> None:
        self._ever[fault_id] = timed
        super().__setitem__(fault_id, timed)


def judge(scenario: Scenario, mode: TimeMode = TimeMode.SIM) -> Judged:
    """Run a scenario to its end, and apply all oracles; nothing of the run is left on disk."""
    folder = Path(tempfile.mkdtemp(prefix="rmqemu-fuzz-"))
    try:
        return _judged(scenario, mode, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _judged(scenario: Scenario, mode: TimeMode, folder: Path) -> Judged:
    ever: dict[str, TimedFault] = {}
    sessions: list[Session] = []
    fails: list[Callable[[Exception], None]] = []

    async def watch(session: Session) -> None:
        sessions.append(session)
        token, fail = trio.lowlevel.current_trio_token(), session.cluster.world.failure.report
        fails.append(lambda error: token.run_sync_soon(fail, error))
        session.operator.active = _Noted(ever)
        await trio.sleep_forever()

    try:
        with _stuck_after(STUCK_AFTER_S, fails), _every_sent_frame() as sent, _every_call() as calls:
            result = run_scenario(scenario, mode=mode, runs=folder, session_tasks=(watch,))
    except (RunError, NodeCrashedError) as error:
        return Judged((Problem("crash", str(error).replace(str(folder), "")),))
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a finding
        raised = error.__cause__ if isinstance(error, EmulatorBugError) and error.__cause__ is not None else error
        if isinstance(raised, StuckError):
            return Judged((Problem("stuck", str(raised)),))
        return Judged((Problem("exception", f"{type(raised).__name__}: {raised}"),))
    cluster = sessions[0].cluster
    rows = _rows(result.path)
    evidence = Evidence(scenario, result.manifest, rows, ever, tuple(sent), calls, cluster)
    return Judged(
        tuple(problems_of(evidence)), result.manifest["digest"], sum(map(len, rows.values())), scenario.run_for_ms / 1e3
    )


def _rows(run: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows on disk, by table."""
    return {table.name: list(table_rows(run, table)) for table in TABLES}


@contextmanager
def _every_sent_frame() -> Iterator[list[Sent]]:
    """The frames that nodes gave to the network meanwhile, whatever it does with them."""
    sent: list[Sent] = []
    send_each = Fabric.send_each

    def noting(self: Fabric, ends: Iterable[Endpoint], command: Command) -> None:
        noted = list(ends)
        sent.extend(Sent(end.id, end.node, command.is_response, command.opaque) for end in noted)
        send_each(self, noted, command)

    Fabric.send_each = noting  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Fabric.send_each = send_each  # type: ignore[method-assign]


@contextmanager
def _every_call() -> Iterator[dict[tuple[str, int], list[int]]]:
    """The instants at which calls began meanwhile; a call without a connection is in no row before it times out."""
    begun: dict[tuple[str, int], list[int]] = {}
    begin = RpcClient._begin

    def noting(self: RpcClient, opaque: int, pending: Any, ext_fields: Any, body: Any, timeout_ms: int) -> None:
        process: Any = self._host
        begun.setdefault((process.node, opaque), []).append(process.clock.monotonic_ns())
        begin(self, opaque, pending, ext_fields, body, timeout_ms)

    RpcClient._begin = noting  # type: ignore[method-assign]
    try:
        yield begun
    finally:
        RpcClient._begin = begin  # type: ignore[method-assign]


@contextmanager
def _stuck_after(seconds: int, fails: list[Callable[[Exception], None]]) -> Iterator[None]:
    """End a run that takes too long: as the network does when it fails, or by force if no task runs any more.

    Args:
        fails: how the network is asked to fail, once there is one. A signal may come while trio takes tasks from its
            queue, and a task that is woken there by hand is lost; so trio is asked to call it.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        error = StuckError(f"no end after {seconds} s of real time")
        signal.alarm(_BY_FORCE_AFTER_S)
        signal.signal(signal.SIGALRM, force)
        if not fails:
            raise error
        fails[0](error)

    def force(_signal: int, _frame: FrameType | None) -> None:
        signal.alarm(1)  # again and again: code of a node may catch it
        raise StuckError(f"no end after {seconds} s of real time, and no task runs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
