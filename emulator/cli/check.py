"""`rmqemu check`: settings that RocketMQ accepts although they do harm."""

from pathlib import Path

from emulator.spec import load
from emulator.spec.checks import check


def print_warnings(spec: Path) -> None:
    """One line for each harmful setting of a scenario file."""
    found = check(load(spec))
    for setting in found:
        print(f"warning: {setting.line()}")
    if not found:
        print("no warnings")
