"""`rmqemu verify`: the same run once more."""

from pathlib import Path

import typer

from emulator.cli.terminal import VIOLATED
from emulator.run.verify import describe, repeat
from emulator.trace.run_directory import open_run


def print_difference(run: Path) -> None:
    """Say that the repetition is identical, or show the first row in which it differs."""
    difference = repeat(open_run(run))
    if difference is None:
        print("identical")
        return
    print(describe(difference))
    raise typer.Exit(VIOLATED)
