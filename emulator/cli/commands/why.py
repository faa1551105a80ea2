"""The command line of `rmqemu why`."""

from typing import Annotated

import typer

from emulator.base.printing import print_line
from emulator.cli.arguments import AllowCodeOption, RemediesOption, RunArgument, VerifyOption
from emulator.cli.repeating import repeat_run
from emulator.cli.terminal import complain, one_line_errors
from emulator.why.forms import FORMS


def why(
    run: RunArgument,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORDS...]",
            help=f"{FORMS}; without words, what was most severe in the run.",
            show_default=False,
        ),
    ] = None,
    verify: VerifyOption = False,
    remedies: RemediesOption = False,
    allow_code: AllowCodeOption = False,
) -> None:
    """Explain what happened in a run: the chain of causes up to a fault, a timer or an administrator.

    Without words: why the most severe symptoms came, and why invariants were violated. Then causes can be confirmed by
    leaving them out, and remedies tried, each on this very run.
    """
    with one_line_errors():
        from emulator.cli.why import why_lines
        from emulator.trace.run_directory import open_run

        opened = open_run(run)
        again = repeat_run(verify=verify, remedies=remedies, allow_code=allow_code)
        for line in why_lines(words or (), opened, again):
            print_line(line)
        if opened.broken_off():
            complain(opened.broken_off())
