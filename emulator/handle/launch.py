"""`emulator.launch`: a cluster from a scenario, for notebooks and other synchronous code."""

from pathlib import Path

import attrs

from emulator.handle.cluster_handle import ClusterHandle
from emulator.handle.engine import Engine
from emulator.spec import Scenario, load
from emulator.world import TimeMode


def launch(
    spec: Scenario | str | Path,
    *,
    mode: TimeMode | str = TimeMode.SIM,
    seed: int | None = None,
    runs: Path | str = "runs",
) -> ClusterHandle:
    """Start a cluster.

    In `sim` and `fast` time stands still at 0 until `advance` lets it pass; the
    scenario's own faults happen at their instants, and its end ends nothing. In
    `live` time passes by itself.

    Args:
        spec: a scenario, or the path of a scenario file.
        mode: `sim`, `fast` or `live`.
        seed: instead of the scenario's.
        runs: directory of all runs.

    Returns:
        The handle of the cluster; several may run at a time.

    Raises:
        SpecError: the scenario file cannot be read, or says what cannot be.
        ValueError: there is no such mode.
        RunError: the run directory cannot be written.
    """
    scenario = spec if isinstance(spec, Scenario) else load(spec)
    if seed is not None:
        scenario = attrs.evolve(scenario, seed=seed)
    try:
        time_mode = TimeMode(mode)
    except ValueError:
        raise ValueError(f"mode: expected {', '.join(TimeMode)}, not {mode!r}") from None
    engine = Engine(scenario, time_mode, Path(runs))
    engine.start()
    return ClusterHandle(engine)
