"""The parts of an SQL92 expression, and which of them go together.

Mirrors:
    `org.apache.rocketmq.filter.expression.*`.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import cast

import attrs

from nodes.protocol.sql_tokens import SqlError, Token
from nodes.protocol.sql_values import Evaluate, Truth, Value, both, either, is_equal, is_not, is_ordered

_LONG_MAX = 2**63 - 1
ORDERS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class Kind(Enum):
    """What an expression is, as far as that decides where it may stand."""

    CONSTANT = "constant"
    PROPERTY = "property"
    NUMBER = "number"
    TRUTH = "truth"


@attrs.frozen
class Expression:
    """A part of an expression, with what it comes to for a message."""

    kind: Kind
    evaluate: Evaluate
    value: Value = None
    """Of a constant."""


def constant(value: Value) -> Expression:
    """A value that stands there."""
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
    if value == float("inf") or value <= 0.0:  # also 0.0: the real one takes the smallest positive number for a bound
        raise SqlError(f"{token} is no number that is greater than 0 and has 64 bits")
    return value


def as_truth(expression: Expression) -> Expression:
    """The expression where a truth value is wanted; a property is a text, and so never true."""
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
        # What is decided is not looked at further: what cannot be compared there does no harm.
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
        SqlError: NULL stands there, or a truth value beside another constant.
    """
    constants = [one for one in (left, right) if one.kind is Kind.CONSTANT]
    if any(one.value is None for one in constants):
        raise SqlError("NULL cannot be compared; write IS NULL or IS NOT NULL")
    if len(constants) == 2 and isinstance(left.value, bool) and not isinstance(right.value, bool):
        raise SqlError(f"{left.value} cannot be compared with {right.value!r}")
    return Expression(Kind.TRUTH, lambda properties: is_equal(left.evaluate(properties), right.evaluate(properties)))


def ordered(sign: str, left: Expression, right: Expression) -> Expression:
    """`<`, `<=`, `>` or `>=`.

    Raises:
        SqlError: a constant that is no number stands there, or a truth value.
    """
    for one in (left, right):
        is_number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        if one.kind is Kind.TRUTH or (one.kind is Kind.CONSTANT and not is_number):
            raise SqlError(f"what stands beside {sign} is no number")
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
        SqlError: what is looked for is no property.
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
        # Neither holds of what is not there, nor with an empty part.
        return bool(part) and isinstance(value, str) and test(value, part) is not negate

    return Expression(Kind.TRUTH, evaluate)
