"""What a manifest says of a run, whether it has ended or goes on."""

from typing import Any

from emulator.machine.world import World
from emulator.spec import Scenario, to_dict
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import versions
from emulator.trace.schema import SCHEMA_VERSION

_NS = 1_000_000_000


def manifest_of(
    world: World,
    scenario: Scenario,
    mode: TimeMode,
    run_id: str,
    *,
    ended: str,
    end_ns: int,
    wall_s: float,
    crashes: list[str],
    addresses: dict[str, str],
) -> dict[str, Any]:
    """The manifest; writes every row that waits, so that the digest and the counts are those of the rows on disk.

    Args:
        run_id: name of the run directory.
        ended: `complete` or `interrupted`.
        end_ns: emulated instant until which it counts.
        wall_s: how long it took.
        crashes: nodes that raised, one line each.
        addresses: IP address -> node.

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
        "rows": dict(recorder.counts),
        "virtual_s": end_ns / _NS,
        "wall_s": round(wall_s, 3),
        "crashes": crashes,
        "addresses": addresses,
        "versions": versions(),
        "scenario": to_dict(scenario),
    }
