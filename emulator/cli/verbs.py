"""`rmqemu verbs`: everything that can be said to a cluster."""

from emulator.console.registry import VERBS, explained


def print_verbs() -> None:
    """Two lines for each verb."""
    for line in explained(tuple(VERBS.values())):
        print(line)
