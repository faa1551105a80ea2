"""Values as Java reads them from text.

Mirrors:
    `Integer#parseInt`, `Long#parseLong`, `Double#parseDouble`, `Boolean#parseBoolean` and `String#trim` of Java.
"""

import re

from nodes.fields import INT_MAX

JavaValue = str | int | float | bool
_CONTROLS = "".join(map(chr, range(0x21)))
"""What `String#trim` removes at both ends."""
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_NOT_FINITE = re.compile(r"[+-]?(?:NaN|Infinity)")
_DIGITS_MAX = 400
"""More make no number that Java has, and Python needs long for them."""


class UnreadValueError(ValueError):
    """Java cannot read a text as such a value, so RocketMQ leaves an option as it is; the text names what it reads."""


def read_whole(text: str, limit: int) -> int:
    """A whole number as `parseInt` and `parseLong` read it: a sign and digits, and no space at either end.

    Args:
        text: of the value.
        limit: the largest number; the smallest one is one below its negative.

    Raises:
        UnreadValueError: it is none.
    """
    kind = "an int" if limit == INT_MAX else "a long"
    if not _WHOLE.fullmatch(text) or max(text) > "\uffff":
        raise UnreadValueError(f"expected {kind}: digits only, without spaces")
    value = int(text) if len(text) <= _DIGITS_MAX else limit + 1
    if not -limit - 1 <= value <= limit:
        raise UnreadValueError(f"expected {kind}, which is at most {limit}")
    return value


def read_double(text: str) -> float:
    """A number as `parseDouble` reads it.

    Raises:
        UnreadValueError: it is none.
    """
    trimmed = text.strip(_CONTROLS)
    if _NOT_FINITE.fullmatch(trimmed):
        return float(trimmed)
    if _DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    if _HEXADECIMAL.fullmatch(trimmed):
        mantissa, exponent = re.split("[pP]", trimmed)
        return float.fromhex(f"{mantissa}p{exponent.rstrip('fFdD')}")
    raise UnreadValueError("expected a number")


def read_boolean(text: str) -> bool:
    """True for `true` in any case, and false for everything else, as `parseBoolean`."""
    return text.lower() == "true"


def read_text(text: str) -> str:
    """The text without spaces and control characters at its ends."""
    return text.strip(_CONTROLS)
