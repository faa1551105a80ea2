"""What really happened, out of the groups that trio's nurseries wrap around it."""


def first_cause(error: BaseException) -> BaseException:
    """The innermost first exception of a group; any other exception itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
