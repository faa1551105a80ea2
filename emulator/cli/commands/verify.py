"""The command line of `rmqemu verify`."""

import typer

from emulator.cli.arguments import AllowCodeOption, VerifiedArgument
from emulator.cli.terminal import one_line_errors


def verify(path: VerifiedArgument, allow_code: AllowCodeOption = False) -> None:
    """Repeat a run and compare the two traces row by row; or check that all of a campaign belongs to it."""
    with one_line_errors():
        from emulator.cli.verify import verify_command

        raise typer.Exit(verify_command(path, allow_code=allow_code))
