"""The command line of `rmqemu examples`."""

from typing import Annotated

import typer

from emulator.cli.arguments import JsonOption
from emulator.cli.terminal import one_line_errors


def examples(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print the file of this one.", show_default=False)
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the scenarios and campaigns of the package, whose names stand for their files; or print one."""
    with one_line_errors():
        from emulator.cli.examples import print_example, show_examples

        if name is None:
            show_examples(as_json=as_json)
        else:
            print_example(name)
