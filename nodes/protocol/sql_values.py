"""How the values of an SQL92 expression compare: properties are texts, and become what they are compared with.

Mirrors:
    `org.apache.rocketmq.filter.expression.ComparisonExpression`, `LogicExpression`, `UnaryExpression`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

Value = str | int | float | bool | None
"""Texts, numbers, truth values, and None for what is not there."""
Truth = bool | None
"""True, false, or unknown."""
Evaluate = Callable[[Mapping[str, str]], Value]
"""Properties of a message -> value."""

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_INT_BITS, _LONG_BITS = 31, 63


class EvaluationError(ValueError):
    """Two values cannot be compared: the message does not match, whatever else the expression says."""


def is_equal(left: Value, right: Value) -> Truth:
    """`=`; what is not there equals nothing if it stands on the left, and is not equal if it stands on the right."""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    return _compare(left, right) == 0


def is_ordered(left: Value, right: Value, accepts: Callable[[int], bool]) -> Truth:
    """`<`, `<=`, `>` or `>=`; two texts are compared as numbers."""
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return accepts(_compare(_real(left), _real(right)))
    return accepts(_compare(left, right))


def both(left: Truth, right: Truth) -> Truth:
    """`AND`."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    """`OR`."""
    if left or right:
        return True
    return None if left is None or right is None else False


def is_not(value: Truth) -> Truth:
    """`NOT`."""
    return None if value is None else not value


def negated(value: Value) -> Value:
    """`-`; only numbers have a negative, and a property is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return -value if is_number else None  # type: ignore[operator]


def _compare(left: str | float | bool, right: str | float | bool) -> int:  # noqa: FBT001 - they are values
    """Below, at or above zero; what has no order at all comes before."""
    if isinstance(left, bool) or isinstance(right, bool):
        return _compare_truths(left, right)
    if isinstance(left, str) and not isinstance(right, str):
        left = _like(left, right)
    elif isinstance(right, str) and not isinstance(left, str):
        right = _like(right, left)
    return (left > right) - (left < right)  # type: ignore[operator]


def _compare_truths(left: object, right: object) -> int:
    if isinstance(left, str):
        left = left.lower() == "true"
    elif isinstance(right, str):
        raise EvaluationError(f"{left} cannot be compared with the text {right!r}")
    return left - right if isinstance(left, bool) and isinstance(right, bool) else -1


def _like(text: str, other: float) -> float:
    """A text as a number of the kind of another."""
    if not isinstance(other, int):
        return _real(text)
    number = int(text) if _WHOLE.fullmatch(text) else None
    bits = _INT_BITS if -(2**_INT_BITS) <= other < 2**_INT_BITS else _LONG_BITS
    if number is None or not -(2**bits) <= number < 2**bits:
        raise EvaluationError(f"{text!r} is no whole number of {bits + 1} bits")
    return number


def _real(text: str) -> float:
    if not _REAL.fullmatch(text.strip()):
        raise EvaluationError(f"{text!r} is no number")
    return float(text.strip().rstrip("fFdD"))
