"""Errors that a user can correct, and the first error inside an exception group."""


class UserError(Exception):
    """A mistake that a user can correct; its text is one line that says what is wrong, where, and what was expected."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What a command prints: the text, or one line for each thing that is wrong."""
        return (str(self),)


def unwrap_group(error: BaseException) -> BaseException:
    """The innermost first exception of a group; any other exception itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
