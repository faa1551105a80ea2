"""`rmqemu run`: runs a scenario, with a script if there is one."""

from pathlib import Path

import attrs
import typer

from emulator.base.printing import print_line
from emulator.cli.terminal import BAD_INPUT, complain, progress_bar
from emulator.console.scripts import ScriptedRun
from emulator.run import run_scenario
from emulator.spec import Scenario, load
from emulator.spec.reading.secrets import resolved
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceLevel


def run_file(
    path: Path,
    mode: TimeMode,
    level: TraceLevel,
    seed: int | None,
    script: Path | None,
    runs: Path,
    *,
    allow_code: bool = False,
) -> None:
    """Run a scenario file; the last line printed is the run directory.

    Args:
        path: of the scenario file.
        mode: time mode.
        level: which rows the trace has.
        seed: replaces the scenario's seed.
        script: file with verbs to execute once all nodes are ready.
        runs: directory of all runs.
        allow_code: whether the scenario may run code that it names.
    """
    scenario = load(path, allow_code=allow_code)
    if seed is not None:
        scenario = attrs.evolve(scenario, seed=seed)
    scenario = resolved(scenario)  # what is missing is reported before anything begins
    if script is not None:
        _run_script(script, scenario, mode, level, runs)
        return
    with progress_bar(f"{scenario.name} ({mode})") as progress:
        result = run_scenario(scenario, mode=mode, level=level, runs=runs, progress=progress)
    print_line(result.path)


def _run_script(script: Path, scenario: Scenario, mode: TimeMode, level: TraceLevel, runs: Path) -> None:
    """Run with a script; its output is printed instead of a progress bar."""
    scripted = ScriptedRun(script, print)
    result = run_scenario(scenario, mode=mode, level=level, runs=runs, endless=True, session_tasks=(scripted.run,))
    if scripted.error is not None:
        complain(str(scripted.error))
    print_line(result.path)
    if scripted.error is not None:
        raise typer.Exit(BAD_INPUT)
