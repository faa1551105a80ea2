"""The command line of `rmqemu run`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import AllowCodeOption, ScenarioArgument, TraceOption, require_here
from emulator.cli.terminal import one_line_errors, refuse_together, refuse_without
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceLevel
from nodes.fields import LONG_MAX


def run(
    scenario: ScenarioArgument,
    mode: Annotated[TimeMode, typer.Option(help="How time passes and what carries frames.")] = TimeMode.SIM,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LONG_MAX, help="Instead of the scenario's.", show_default=False)
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Verbs to execute when all nodes are ready, a line each.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS",
            help='Many runs, kept as a campaign: "1-100", "1-10, 50"; see rmqemu campaign.',
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="DIR", help="Directory of all runs, runs; with --seeds, campaigns."),
    ] = None,
    trace: TraceOption = None,
    *,
    service: Annotated[
        bool, typer.Option("--service", help="With --seeds: exit status 1 also if the service of a run is paging.")
    ] = False,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run a scenario; the last line printed is the run directory."""
    with one_line_errors():
        from emulator.cli.run import run_file

        require_here("--runs", runs or Path())
        if seeds is None:
            refuse_without("--service", "--seeds", given=service)
            level, folder = trace or TraceLevel.FULL, runs or Path("runs")
            run_file(scenario, mode, level, seed, script, folder, allow_code=allow_code)
        else:
            refuse_together(
                "--seeds",
                {"--seed": seed, "--script": script, "--mode": mode.value if mode is not TimeMode.SIM else None},
            )
            from emulator.cli.campaign import execute_seeds

            level = trace or TraceLevel.FINDINGS
            execute_seeds(scenario, seeds, level, runs, service=service, allow_code=allow_code)
