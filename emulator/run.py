"""One run: a scenario in a world, its trace in a directory, its manifest at the end."""

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import attrs

from emulator.cluster import Cluster
from emulator.host import World
from emulator.log import open_log
from emulator.network.loopback import LoopbackError
from emulator.operator import Operator
from emulator.spec import Scenario, to_dict
from emulator.trace.manifest import versions, write_manifest
from emulator.trace.recorder import Recorder, RowListener
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.segments import SegmentWriter
from emulator.world import TimeMode, run_world

_NS = 1_000_000_000
_NS_PER_MS = 1_000_000
_PROGRESS_STEPS = 200
Progress = Callable[[float], None]
"""Called with the share of emulated time that is over, 0..1."""


class RunError(Exception):
    """A run could not begin, or could not write its trace; says where and why in one line."""


class Ended(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"


@attrs.frozen
class RunResult:
    """What a run has left."""

    path: Path
    manifest: dict[str, Any]


def run_scenario(
    scenario: Scenario,
    *,
    mode: TimeMode = TimeMode.SIM,
    runs: Path = Path("runs"),
    endless: bool = False,
    progress: Progress | None = None,
    listeners: tuple[RowListener, ...] = (),
) -> RunResult:
    """Run a scenario and keep its trace.

    Args:
        scenario: with the seed to use.
        mode: time mode.
        runs: directory of all runs; the new one is created in it.
        endless: go on after the scenario's end until Ctrl-C (`live`).
        progress: told how far the run is.
        listeners: told every row but those of rpc and causes, as it is recorded.

    Raises:
        RunError: the run directory cannot be written.
        NodeCrashedError: a node's own code raised.
        KeyboardInterrupt: Ctrl-C, after what was traced has been written, unless `endless`.
    """
    path = create_run_directory(runs, f"{scenario.name}-{mode}-seed{scenario.seed}")
    begin = time.perf_counter()
    outcome = _Outcome()
    try:
        with open_log(path / "log.jsonl"):
            writer = SegmentWriter(path / "trace")
            try:
                run_world(
                    lambda world: _main(world, scenario, outcome, progress, listeners, endless=endless),
                    mode=mode,
                    seed=scenario.seed,
                    delay_ms=scenario.network.delay_ms,
                    jitter_ms=scenario.network.jitter_ms,
                    writer=writer,
                )
            except KeyboardInterrupt:
                outcome.ended = Ended.INTERRUPTED
                if not endless:
                    raise
            finally:
                if outcome.recorder is not None:
                    manifest = _manifest(path.name, scenario, mode, outcome, time.perf_counter() - begin)
                    write_manifest(path, manifest)
    except LoopbackError as error:
        raise RunError(str(error)) from error
    except OSError as error:
        msg = f"{path}: the trace cannot be written: {error.strerror or error}"
        raise RunError(msg) from error
    return RunResult(path, manifest)


def create_run_directory(runs: Path, stem: str) -> Path:
    """A new directory `<stem>-<n>` with the first free n.

    Raises:
        RunError: `runs` cannot be written.
    """
    try:
        runs.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            path = runs / f"{stem}-{number}"
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
            else:
                return path
    except OSError as error:
        msg = f"{runs}: no run directory can be created: {error.strerror or error}"
        raise RunError(msg) from error


@attrs.define
class _Outcome:
    """What is known of a run while it is under way."""

    recorder: Recorder | None = None
    world: World | None = None
    ended: Ended = Ended.INTERRUPTED
    crashes: list[str] = attrs.Factory(list)


async def _main(
    world: World,
    scenario: Scenario,
    outcome: _Outcome,
    progress: Progress | None,
    listeners: tuple[RowListener, ...],
    *,
    endless: bool,
) -> None:
    outcome.recorder, outcome.world = world.recorder, world
    world.recorder.listeners.extend(listeners)
    end_ns = scenario.run_for_ms * _NS_PER_MS
    if progress is not None:
        _report_progress(world, end_ns, progress)
    cluster = Cluster(world, scenario)
    try:
        async with cluster:
            operator = Operator(cluster)
            await operator.follow(scenario.faults, scenario.run_for_ms)
            await world.sleep_until_ns(end_ns)
            while endless:
                await world.sleep_until_ns(world.timeline.now_ns + 3_600 * _NS)
            for sender, command, sent_ns in world.fabric.hub.in_flight():
                if command is not None:
                    world.recorder.frame("in_flight", sender, command, sent_ns)
            outcome.ended = Ended.COMPLETE
    finally:
        outcome.crashes = cluster.crashes()


def _report_progress(world: World, end_ns: int, progress: Progress) -> None:
    def tick(step: int) -> None:
        progress(step / _PROGRESS_STEPS)
        if step < _PROGRESS_STEPS:
            due_ns = end_ns * (step + 1) // _PROGRESS_STEPS
            world.timeline.call_at(due_ns, lambda: tick(step + 1))

    tick(0)


def _manifest(run_id: str, scenario: Scenario, mode: TimeMode, outcome: _Outcome, wall_s: float) -> dict[str, Any]:
    assert outcome.recorder is not None
    assert outcome.world is not None
    return {
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        "ended": outcome.ended,
        "digest": outcome.recorder.digest(),
        "seed": scenario.seed,
        "mode": mode,
        "rows": outcome.recorder.counts,
        "virtual_s": outcome.world.timeline.now_ns / _NS,
        "wall_s": round(wall_s, 3),
        "crashes": outcome.crashes,
        "versions": versions(),
        "scenario": to_dict(scenario),
    }


__all__ = ["Ended", "Progress", "RunError", "RunResult", "create_run_directory", "run_scenario"]
