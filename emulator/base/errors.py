"""Errors: what a user can mend, and what really happened inside trio's groups."""


class UserError(Exception):
    """Something that a user can mend; its text is one line that says what, where, and what was expected."""


def unwrap_group(error: BaseException) -> BaseException:
    """The innermost first exception of a group; any other exception itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
