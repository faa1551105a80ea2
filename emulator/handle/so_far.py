"""What a cluster has traced so far, as a run that the analysis can read."""

from emulator.addressing import owners
from emulator.handle.engine import Engine
from emulator.spec import to_dict
from emulator.trace.reader import RunDirectory, open_run
from emulator.trace.schema import SCHEMA_VERSION
from emulator.verbs.desk import Desk

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
        return open_run(engine.desk.run_directory)

    async def act(desk: Desk) -> RunDirectory:
        world, scenario = desk.cluster.world, desk.cluster.scenario
        manifest = {
            "run_id": desk.run_directory.name,
            "schema_version": SCHEMA_VERSION,
            "ended": "complete",
            "digest": world.recorder.digest(),
            "seed": scenario.seed,
            "mode": engine.mode,
            "rows": dict(world.recorder.counts),
            "virtual_s": world.timeline.now_ns / _NS,
            "wall_s": 0.0,
            "crashes": [],
            "addresses": owners(scenario),
            "scenario": to_dict(scenario),
        }
        return RunDirectory(desk.run_directory.resolve(), manifest)

    return engine.call(act)
