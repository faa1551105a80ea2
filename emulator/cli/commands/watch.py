"""The command line of `rmqemu watch`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import RunArgument, require_here
from emulator.cli.terminal import one_line_errors


def watch(
    run: RunArgument,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder that keeps how far the run was followed, to go on there.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="A line for each queue and group, also where many change at once.")
    ] = False,
) -> None:
    """Follow a run that is under way: print a line whenever views diverge, queues have two owners or none, groups lag.

    It begins with the first row of the run, or where the checkpoint ends, and ends with the run. What happens to many
    queues within half a second is one line, with their number and an example; repeats are counted.
    """
    with one_line_errors():
        from emulator.cli.watch import watch_run

        require_here("--checkpoint", checkpoint or Path())
        watch_run(run, checkpoint, every=every)
