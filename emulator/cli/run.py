"""`rmqemu run`: a scenario as fast as it goes, or at the pace of a script."""

from pathlib import Path

import attrs
import typer

from emulator.cli.terminal import BAD_INPUT, complain, progress_bar
from emulator.console.scripts import ScriptedRun
from emulator.run import run_scenario
from emulator.spec import Scenario, load
from emulator.time.mode import TimeMode


def run_file(path: Path, mode: TimeMode, seed: int | None, script: Path | None, runs: Path) -> None:
    """Run a scenario file; the last line printed is the run directory.

    Args:
        seed: instead of the scenario's.
        script: verbs to do once all is ready.
    """
    scenario = load(path)
    if seed is not None:
        scenario = attrs.evolve(scenario, seed=seed)
    if script is not None:
        _run_script(script, scenario, mode, runs)
        return
    with progress_bar(f"{scenario.name} ({mode})") as progress:
        result = run_scenario(scenario, mode=mode, runs=runs, progress=progress)
    print(result.path)


def _run_script(script: Path, scenario: Scenario, mode: TimeMode, runs: Path) -> None:
    """What is told takes the place of a bar."""
    scripted = ScriptedRun(script, print)
    result = run_scenario(scenario, mode=mode, runs=runs, endless=True, attendants=(scripted.attend,))
    if scripted.error is not None:
        complain(str(scripted.error))
    print(result.path)
    if scripted.error is not None:
        raise typer.Exit(BAD_INPUT)
