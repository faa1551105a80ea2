"""SQL92 expressions: their parts, the rules of their composition, comparisons of values.

Properties are texts, and are converted to the type that they are compared with.

Mirrors:
    `org.apache.rocketmq.filter.expression.*`.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, cast

from nodes.filter.sql_tokens import SqlError, Token
from nodes.values import frozen

Value = str | int | float | bool | None
"""Texts, numbers, truth values, and None for a missing property."""
Truth = bool | None
"""True, false, or unknown."""
Evaluate = Callable[[Mapping[str, str]], Value]
"""Properties of a message -> value."""

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_INT_BITS, _LONG_BITS = 31, 63


class EvaluationError(ValueError):
    """Two values cannot be compared: the message does not match, whatever the rest of the expression is."""


def is_equal(left: Value, right: Value) -> Truth:
    """`=`; missing properties are equal; one on the left alone makes the result unknown, one on the right false."""
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
    """`-`; only for numbers, and a property is no number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return -value if is_number else None  # type: ignore[operator]


def _compare(left: str | float | bool, right: str | float | bool) -> int:  # noqa: FBT001 - they are values
    """Below, at or above zero; values without order compare as below."""
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
    """A text, converted to the type of another value."""
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


_LONG_MAX = 2**63 - 1
ORDERS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class Kind(Enum):
    """The kind of an expression, which decides where it is allowed."""

    CONSTANT = "constant"
    PROPERTY = "property"
    NUMBER = "number"
    TRUTH = "truth"


@frozen
class Expression:
    """A part of an expression, and its evaluation for a message."""

    kind: Kind
    evaluate: Evaluate
    value: Value = None
    """Value of a constant."""


def constant(value: Value) -> Expression:
    """A constant."""
    return Expression(Kind.CONSTANT, lambda _properties: value, value)


def integer(token: Token) -> int:
    """A whole number.

    Raises:
        SqlError: it has more than 64 bits.
    """
    value = int(token.text.rstrip("lL"))
    if value > _LONG_MAX:
        raise SqlError(f"{token} is larger than {_LONG_MAX}")
    return value


def floating(token: Token) -> float:
    """A number with a point or an exponent.

    Raises:
        SqlError: it is too large, or 0.
    """
    value = float(token.text)
    if value == float("inf") or value <= 0.0:  # also 0.0: RocketMQ's lower bound is the smallest positive number
        raise SqlError(f"{token} is no number that is greater than 0 and has 64 bits")
    return value


def as_truth(expression: Expression) -> Expression:
    """The expression as a truth value; a property is a text, and so never true."""
    if expression.kind is Kind.TRUTH or (expression.kind is Kind.CONSTANT and _is_truth(expression.value)):
        return expression
    if expression.kind is not Kind.PROPERTY:
        raise SqlError("an expression that is neither true nor false stands where one is wanted")

    def never_true(properties: Mapping[str, str]) -> Truth:
        return None if expression.evaluate(properties) is None else False

    return Expression(Kind.TRUTH, never_true)


def _is_truth(value: Value) -> bool:
    return value is None or isinstance(value, bool)


def _truth_of(expression: Expression, properties: Mapping[str, str]) -> Truth:
    return cast("Truth", expression.evaluate(properties))


def joined(join: Callable[[Truth, Truth], Truth], left: Expression, right: Expression) -> Expression:
    """AND or OR."""
    first, second = as_truth(left), as_truth(right)
    decides = join is either

    def evaluate(properties: Mapping[str, str]) -> Truth:
        known = _truth_of(first, properties)
        # The right side is not evaluated if the left one decides, so it may contain values that cannot be compared.
        return known if known is decides else join(known, _truth_of(second, properties))

    return Expression(Kind.TRUTH, evaluate)


def negation(expression: Expression) -> Expression:
    """NOT."""
    return Expression(Kind.TRUTH, lambda properties: is_not(_truth_of(expression, properties)))


def null_test(left: Expression) -> Expression:
    """IS NULL."""
    return Expression(Kind.TRUTH, lambda properties: is_equal(left.evaluate(properties), None))


def equal(left: Expression, right: Expression) -> Expression:
    """`=`.

    Raises:
        SqlError: a side is NULL, or a truth value is compared with another constant.
    """
    constants = [item for item in (left, right) if item.kind is Kind.CONSTANT]
    if any(item.value is None for item in constants):
        raise SqlError("NULL cannot be compared; write IS NULL or IS NOT NULL")
    if len(constants) == 2 and isinstance(left.value, bool) and not isinstance(right.value, bool):
        raise SqlError(f"{left.value} cannot be compared with {right.value!r}")
    return Expression(Kind.TRUTH, lambda properties: is_equal(left.evaluate(properties), right.evaluate(properties)))


def ordered(sign: str, left: Expression, right: Expression) -> Expression:
    """`<`, `<=`, `>` or `>=`.

    Raises:
        SqlError: a side is a constant other than a number, or a truth value.
    """
    for item in (left, right):
        is_number = isinstance(item.value, int | float) and not isinstance(item.value, bool)
        if item.kind is Kind.TRUTH or (item.kind is Kind.CONSTANT and not is_number):
            raise SqlError(f"what stands next to {sign} is no number")
    accepts = ORDERS[sign]
    return Expression(
        Kind.TRUTH, lambda properties: is_ordered(left.evaluate(properties), right.evaluate(properties), accepts)
    )


def between(value: Expression, low: Expression, high: Expression, *, negate: bool) -> Expression:
    """[NOT] BETWEEN, its ends included.

    Raises:
        SqlError: as `ordered`, or its ends are in the wrong order.
    """
    if negate:
        return joined(either, ordered("<", value, low), ordered(">", value, high))
    inside = joined(both, ordered(">=", value, low), ordered("<=", value, high))
    if low.kind is Kind.CONSTANT and high.kind is Kind.CONSTANT and is_ordered(high.value, low.value, ORDERS["<"]):
        raise SqlError(f"BETWEEN begins with {low.value}, which is more than {high.value}")
    return inside


def within(left: Expression, wanted: tuple[str, ...], *, negate: bool) -> Expression:
    """[NOT] IN.

    Raises:
        SqlError: the left side is no property.
    """
    if left.kind is not Kind.PROPERTY:
        raise SqlError("a property was expected before IN")

    def evaluate(properties: Mapping[str, str]) -> Truth:
        value = left.evaluate(properties)
        return None if value is None else (value in wanted) is not negate

    return Expression(Kind.TRUTH, evaluate)


def text_test(left: Expression, part: str, test: Callable[[str, str], bool], *, negate: bool) -> Expression:
    """[NOT] CONTAINS, STARTSWITH or ENDSWITH."""

    def evaluate(properties: Mapping[str, str]) -> Truth:
        value = left.evaluate(properties)
        # With and without NOT the result is false for a missing property, and for an empty text.
        return bool(part) and isinstance(value, str) and test(value, part) is not negate

    return Expression(Kind.TRUTH, evaluate)
