"""Errors that a user can correct, and the first error inside an exception group."""

from nodes.visible import visible

LINE_MAX = 1_000
"""Most characters of a message; more is a mistake of its author, who should have shortened what he quotes."""


def one_line(text: str) -> str:
    """A message as one line of at most `LINE_MAX` characters in which control characters are escaped."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= LINE_MAX else line[: LINE_MAX - 1] + "…"


class UserError(Exception):
    """A mistake that a user can correct; its text is one line that says what is wrong, where, and what was expected."""

    def __init__(self, text: str = "") -> None:
        super().__init__(one_line(text))

    @property
    def lines(self) -> tuple[str, ...]:
        """What a command prints: the text, or one line for each thing that is wrong."""
        return (str(self),)


def unwrap_group(error: BaseException) -> BaseException:
    """The innermost first exception of a group; any other exception itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
