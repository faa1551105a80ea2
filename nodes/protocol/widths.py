"""Widths of numbers: an annotation `Int32` is Java's `int`, a plain `int` is Java's `long`.

Every number of a peer is checked when it is decoded, so no number that RocketMQ could not hold is ever stored,
answered or traced.
"""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

_INT32: Final = "32 bits"

Int32 = Annotated[int, _INT32]
"""A number of 32 bits, with sign."""

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 40
"""More characters than any number has; longer ones are not converted, which would take quadratic time."""
_SHOWN_BITS_MAX: Final = 128
"""Of a number in an error."""


def limits(annotation: Any) -> tuple[int, int]:
    """Smallest and largest number of a field with this annotation, which is `int` or `Int32`."""
    return (INT32_MIN, INT32_MAX) if annotation == Int32 else (INT64_MIN, INT64_MAX)


def checked(number: int, annotation: Any) -> int:
    """The number.

    Raises:
        ValueError: it does not fit into the width.
    """
    smallest, largest = limits(annotation)
    if not smallest <= number <= largest:
        raise ValueError(_too_wide(number, annotation))
    return number


def _parser(annotation: Any) -> Callable[..., int]:
    smallest, largest = limits(annotation)
    fitting_digits = len(str(largest)) - 1
    """So many digits are always a number that fits."""

    def parse(text: str, _: Any = None) -> int:
        if len(text) <= fitting_digits and text.isdecimal():
            return int(text)
        # Python also accepts blanks around a number and underscores in it, and Java neither; digits of any script are
        # accepted by both. Nearly all numbers are plain digits.
        if len(text) > _DIGITS_MAX or not (text.isdecimal() or (text[1:].isdecimal() and text[0] in "+-")):
            raise ValueError("no number")
        number = int(text)
        if smallest <= number <= largest:
            return number
        raise ValueError(_too_wide(number, annotation))

    return parse


int32_of = _parser(Int32)
"""Converts a text as `Integer.parseInt`; raises ValueError if it is no number of 32 bits."""
int64_of = _parser(int)
"""Converts a text as `Long.parseLong`; raises ValueError if it is no number of 64 bits."""


def _too_wide(number: int, annotation: Any) -> str:
    shown = str(number) if number.bit_length() <= _SHOWN_BITS_MAX else f"a number of {number.bit_length()} bits"
    return f"{shown} does not fit into {32 if annotation == Int32 else 64} bits"


def without_none(annotation: Any) -> Any:
    """The annotation `T` of `T` or `T | None`."""
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        return next(member for member in get_args(annotation) if member is not NoneType)
    return annotation


def without_width(annotation: Any) -> Any:
    """The annotation with `int` in place of `Int32`."""
    return int if annotation == Int32 else annotation
