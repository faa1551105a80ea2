"""Errors of ours as the answers report those of Java."""


def throwing(kinds, call, *arguments, quoting=()):
    """What a call returns, or the simple name of the Java exception that stands for what it raised.

    Args:
        kinds: error of ours -> its name in Java; the first that fits.
        report: errors whose texts are Java's, so that they are compared.
    """
    try:
        return call(*arguments)
    except tuple(kinds) as error:
        kind = next(name for ours, name in kinds.items() if isinstance(error, ours))
        return {"error": kind} | ({"message": str(error)} if quoting and isinstance(error, quoting) else {})
