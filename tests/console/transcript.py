"""Transcripts: what is typed, and what is reported, with `...` for what differs from time to time."""

import re
from pathlib import Path

import attrs


@attrs.frozen
class Exchange:
    """One line that is typed, and what is reported."""

    typed: str
    reported: tuple[str, ...]

    def is_reported(self, lines: tuple[str, ...]) -> bool:
        """Whether these lines are what the transcript says; a line that is `...` stands for any number of them."""
        pattern = "\n".join(map(_pattern, self.reported)).replace(f"\n{_ANY_LINES}", f"(\n{_ANY_LINES})?")
        return re.fullmatch(pattern, "\n".join(lines)) is not None


_ANY_LINES = r"(?s:.*)"


def _pattern(line: str) -> str:
    return _ANY_LINES if line == "..." else ".*?".join(map(re.escape, line.split("...")))


def read(text: str) -> tuple[Exchange, ...]:
    """The exchanges of a transcript; empty lines and comments are for readers."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        elif line and not line.startswith("#"):
            found[-1][1].append(line)
    return tuple(Exchange(typed, tuple(reported)) for typed, reported in found)


def example(name: str) -> Path:
    """A file of `examples`."""
    return Path(__file__).parents[2] / "examples" / name
