"""The command line of `rmqemu verbs`."""

from emulator.base.printing import print_line


def verbs() -> None:
    """List the verbs of a running cluster, for its prompt, ctl, scripts and notebooks."""
    from emulator.console.verbs import VERBS, help_lines

    for line in help_lines(tuple(VERBS.values())):
        print_line(line)
