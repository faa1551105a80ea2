"""The command line of `rmqemu fidelity`."""

from typing import Annotated

import typer

from emulator.cli.arguments import JsonOption
from emulator.cli.terminal import one_line_errors


def fidelity(
    trap: Annotated[
        str | None, typer.Argument(metavar="[TRAP]", help="Id of one trap, such as M7; all.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List RocketMQ's traps, and whether the emulator reproduces them; or describe one, with a test that shows it."""
    with one_line_errors():
        from emulator.cli.fidelity import show_ledger, show_trap

        if trap is None:
            show_ledger(as_json=as_json)
        else:
            show_trap(trap, as_json=as_json)
