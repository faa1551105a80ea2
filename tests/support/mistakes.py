"""What a scenario was refused for."""

from emulator.spec import SpecError


def only_mistake(error: SpecError) -> str:
    """`file: key: problem` of the one mistake that there is; tests of lines look at its line."""
    assert error.further == (), error.lines
    return f"{error.source}: {error.key}: {error.problem}" if error.source else f"{error.key}: {error.problem}"
