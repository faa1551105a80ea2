"""The command line of `rmqemu examples`."""

from emulator.cli.arguments import JsonOption
from emulator.cli.terminal import one_line_errors


def examples(as_json: JsonOption = False) -> None:
    """List the scenarios and campaigns of the package, whose names stand for their files."""
    with one_line_errors():
        from emulator.cli.examples import show_examples

        show_examples(as_json=as_json)
