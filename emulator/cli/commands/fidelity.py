"""The command line of `rmqemu fidelity`."""

from typing import Annotated

import typer

from emulator.cli.arguments import JsonOption
from emulator.cli.terminal import one_line_errors


def fidelity(
    trap: Annotated[
        str | None, typer.Argument(metavar="[TRAP]", help="Id of one trap, such as M7; all.", show_default=False)
    ] = None,
    codes: Annotated[
        bool, typer.Option("--codes", help="List all request codes instead, with the nodes that answer them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List RocketMQ's traps, and whether the emulator reproduces them; or describe one, with a test that shows it."""
    if codes and trap is not None:
        raise typer.BadParameter("--codes lists request codes: leave out the trap, or the option")
    with one_line_errors():
        from emulator.cli.fidelity import show_codes, show_ledger, show_trap

        if codes:
            show_codes(as_json=as_json)
        elif trap is None:
            show_ledger(as_json=as_json)
        else:
            show_trap(trap, as_json=as_json)
