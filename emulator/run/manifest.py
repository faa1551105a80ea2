"""What a run directory says of its run: at the beginning in the head of the index, in the end in the manifest."""

from typing import Any

from emulator.base.commit import commit
from emulator.machine.world import World
from emulator.spec import Scenario, to_dict
from emulator.spec.model.addresses import owners
from emulator.spec.reading.secrets import marks_of_references
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import COMMIT, LOG_SUM, RunEnd, versions
from emulator.trace.schema import SCHEMA_VERSION, TraceLevel
from nodes.units import NS_PER_S


def head_of(scenario: Scenario, mode: TimeMode, level: TraceLevel, run_id: str, campaign: str = "") -> dict[str, Any]:
    """What the index says of a run before it begins.

    Args:
        scenario: of the run.
        mode: time mode.
        level: which rows the trace has.
        run_id: name of the run directory.
        campaign: digest of the campaign to which the run belongs; empty: to none.
    """
    return {
        **_of_campaign(campaign),
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        "seed": scenario.seed,
        "mode": mode,
        "trace": level,
        "addresses": owners(scenario),
        "versions": versions(),
        COMMIT: commit(),
        **_of_scenario(scenario),
    }


def manifest_of(
    world: World,
    scenario: Scenario,
    mode: TimeMode,
    run_id: str,
    *,
    ended: RunEnd,
    end_ns: int,
    wall_s: float,
    crashes: list[str],
    addresses: dict[str, str],
    log_checksum: str,
    campaign: str = "",
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
        log_checksum: of the log; empty: it is not whole.
        campaign: digest of the campaign to which the run belongs; empty: to none.

    Raises:
        OSError: the rows cannot be written.
    """
    recorder = world.recorder
    return {
        **_of_campaign(campaign),
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        "ended": ended,
        "digest": recorder.digest(),
        "seed": scenario.seed,
        "mode": mode,
        "trace": recorder.level,
        "rows": dict(recorder.counts),
        "virtual_s": end_ns / NS_PER_S,
        "wall_s": round(wall_s, 3),
        "crashes": crashes,
        "measured": {
            name: {"times": watch.times, "cpu_ms": round(watch.cpu_ns / 1e6, 3)}
            for name, watch in sorted(world.stopwatches.items())
        },
        "addresses": addresses,
        LOG_SUM: log_checksum,
        "versions": versions(),
        COMMIT: commit(),
        **_of_scenario(scenario),
    }


def _of_campaign(campaign: str) -> dict[str, str]:
    return {"campaign": campaign} if campaign else {}


def _of_scenario(scenario: Scenario) -> dict[str, Any]:
    """The scenario without secrets, and which references in it have equal values: all that repeating a run needs."""
    marks = marks_of_references(scenario)
    return {"scenario": to_dict(scenario), **({"secrets": marks} if marks else {})}
