"""The command line of `rmqemu shrink`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import AllowCodeOption
from emulator.cli.terminal import one_line_errors
from nodes.fields import LONG_MAX


def shrink(
    subject: Annotated[
        Path,
        typer.Argument(
            metavar="CAMPAIGN | SCENARIO", help="Directory of a campaign, or a scenario file.", show_default=False
        ),
    ],
    case: Annotated[
        str | None,
        typer.Argument(metavar="[VARIANT:SEED]", help="The run of the campaign.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LONG_MAX, help="Instead of the scenario's.", show_default=False)
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="V1",
            help="The invariant that must stay broken, any that the run breaks; may be repeated.",
            show_default=False,
        ),
    ] = None,
    max_runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Largest number of runs.")] = 300,
    timeout_s: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Wall time of a run; 300 s.", show_default=False)
    ] = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Find the smallest scenario that fails in the same way, and explain why it fails.

    Faults, durations, nodes, options and time are left out as long as the run breaks the same invariant (or crashes, or
    hangs). The scenario is written to the folder shrunk of the campaign, or here. Ctrl-C keeps the smallest so far.
    """
    with one_line_errors():
        from emulator.cli.shrink import shrink_command

        shrink_command(subject, case, seed, on or (), max_runs, timeout_s, allow_code=allow_code)
