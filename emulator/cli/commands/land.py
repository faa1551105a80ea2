"""The command line of `rmqemu land`."""

import typer

from emulator.cli.arguments import LandedPaths, LandToOption
from emulator.cli.terminal import one_line_errors


def land(paths: LandedPaths, to: LandToOption) -> None:
    """Land runs in a dataset, which Spark reads at once however many runs it has.

    A run lands once: what is there is skipped. The last line printed is the URI of the dataset.
    """
    with one_line_errors():
        from emulator.cli.land import land_command

        raise typer.Exit(land_command(paths, to))
