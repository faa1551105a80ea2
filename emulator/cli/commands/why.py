"""The command line of `rmqemu why`."""

from typing import Annotated

import typer

from emulator.base.printing import print_line
from emulator.cli.arguments import RunArgument
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
) -> None:
    """Explain what happened in a run: the chain of causes up to a fault, a timer or an administrator.

    Without words: why the most severe symptoms came, and why invariants were violated.
    """
    with one_line_errors():
        from emulator.analysis.judge import judge_run
        from emulator.trace.run_directory import open_run
        from emulator.why.answer import answer_of_run
        from emulator.why.worst import worst_of_run

        opened = open_run(run)
        lines = answer_of_run(words, opened) if words else worst_of_run(judge_run(opened), opened)
        for line in lines:
            print_line(line)
        if opened.broken_off():
            complain(opened.broken_off())
