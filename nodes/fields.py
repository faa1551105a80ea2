"""Fields of values that people write: options of nodes, parameters of faults, keys of scenario files.

What a field may hold stands in its metadata: a `Rule`, the key under which people write it, and its unit. One check
reads the rule and one error says what was expected, so a bound is written once and
reported in the same words everywhere.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from reprlib import Repr
from typing import Any, TypeVar, cast

import attrs

from nodes.values import frozen
from nodes.visible import visible

_Choice = TypeVar("_Choice", bound=StrEnum)
SHOWN_MAX = 80
"""Most characters of a value in a message."""
INT_MAX = 2**31 - 1
"""Largest int of Java, which most options of RocketMQ are."""
LONG_MAX = 2**63 - 1
"""Largest whole number of a trace."""
TIME_MAX_MS = 365 * 24 * 3_600_000
"""Longest time that people may write, a year."""

_repr = Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = SHOWN_MAX
_repr.maxdict = _repr.maxlist = _repr.maxtuple = 6
_repr.fillvalue = "…"


def quoted(value: object) -> str:
    """A value as Python writes it, for a message; a long one is shortened visibly."""
    try:
        return shown(_repr.repr(value))
    except ValueError:  # Python writes no number of more than 4,300 digits in decimal
        return "a number of too many digits"


def shown(text: str, maximum: int = SHOWN_MAX) -> str:
    """A text for a message: a long one is shortened visibly, and control characters are escaped."""
    return visible(text if len(text) <= maximum else text[: maximum - 1] + "…")


class FieldError(ValueError):
    """A field was given a value that it cannot have."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        """As people write it."""
        self.problem = problem
        """`expected a whole number of milliseconds >= 1, not 0`."""


@frozen
class Rule:
    """What a field may hold."""

    expected: str
    """`a whole number of milliseconds >= 1`."""
    holds: Callable[[Any], bool]
    limit: int | None = None
    """The largest number, where `expected` does not say it."""

    def check(self, key: str, value: object) -> None:
        """Refuse what does not fit.

        Raises:
            FieldError: with the key.
        """
        if not self.holds(value):
            raise FieldError(key, self.problem(value))

    def problem(self, value: object) -> str:
        """What is wrong with a value that does not fit: `expected true or false, not 3`."""
        if self.limit is not None and isinstance(value, int) and value > self.limit:
            return f"expected {self.expected} and at most {self.limit}, not {quoted(value)}"
        return f"expected {self.expected}, not {quoted(value)}"


@frozen
class Usual:
    """The numbers that one expects of a field; others are possible, but most likely written in the wrong unit."""

    minimum: int
    maximum: int


def usual_of(field: "attrs.Attribute[Any]") -> Usual | None:
    """The numbers that one expects of a field; None: any that its rule allows."""
    usual: Usual | None = field.metadata.get("usual")
    return usual


def key_of(field: "attrs.Attribute[Any]") -> str:
    """How people write a field: its key, else its name."""
    key: str = field.metadata.get("key", field.name)
    return key


def rule_of(field: "attrs.Attribute[Any]") -> Rule:
    """What a field may hold; of a field without a rule, anything."""
    rule: Rule = field.metadata.get("rule", _ANYTHING)
    return rule


def unit_of(field: "attrs.Attribute[Any]") -> str:
    """What the number of a field counts: `milliseconds`; empty where it is no number, or counts things."""
    unit: str = field.metadata.get("unit", "")
    return unit


def checked(
    rule: Rule,
    default: Any = attrs.NOTHING,
    *,
    key: str = "",
    unit: str = "",
    usual: Usual | None = None,
    converter: Callable[[Any], Any] | None = None,
) -> Any:
    """A field that obeys a rule; None is allowed where it is the default.

    Args:
        key: as people write it, where that is not its name.
    """
    metadata: dict[str, Any] = {"rule": rule, "unit": unit, "usual": usual} | ({"key": key} if key else {})
    return attrs.field(default=default, validator=check_rule, converter=converter, metadata=metadata)


def check_rule(_owner: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse a value that its rule does not allow; a validator of attrs."""
    if value is not None or field.default is not None:
        rule_of(field).check(key_of(field), value)


def check_value(field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse what a field cannot hold, whatever stands with it, before its class is built.

    Raises:
        FieldError: with the key of the field.
    """
    convert = cast("Callable[[Any], Any] | None", field.converter)
    check_rule(None, field, value if convert is None else convert(value))


def whole_rule(
    unit: str = "", minimum: int | None = None, maximum: int | None = None, limit: int | None = None
) -> Rule:
    """A whole number of something, within bounds.

    Args:
        unit: what it counts.
        minimum: smallest number.
        maximum: largest number.
        limit: largest number that is reported only to who exceeds it; by default that of an int of Java, or a year.
    """
    counted = f" of {unit}" if unit else ""
    limit = limit or (TIME_MAX_MS if unit == "milliseconds" else INT_MAX)
    low, high = -limit if minimum is None else minimum, limit if maximum is None else maximum
    if maximum is not None and minimum is not None:
        bounds = f" from {minimum} to {maximum}"
    else:
        bounds = "" if minimum is None else f" >= {minimum}"
    return Rule(
        f"a whole number{counted}{bounds}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        None if maximum is not None else limit,
    )


def whole(
    default: Any = attrs.NOTHING,
    *,
    unit: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
    limit: int | None = None,
    key: str = "",
    usual: Usual | None = None,
) -> Any:
    """A whole number; for its bounds see `whole_rule`.

    Args:
        usual: what one expects of it, in its unit.
    """
    return checked(whole_rule(unit, minimum, maximum, limit), default, key=key, unit=unit, usual=usual)


def percent(default: Any = attrs.NOTHING, *, key: str = "") -> Any:
    """A part of a hundred, with or without a fraction; one without is an int, however it is written."""
    return checked(_PERCENT, default, key=key, unit="percent", converter=_without_fraction)


def _is_percent(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


def _without_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_PERCENT = Rule("a number of percent from 0 to 100", _is_percent)


def flag(*, default: bool, key: str = "") -> Any:
    """A switch."""
    return checked(SWITCH, default, key=key)


SWITCH = Rule("true or false", lambda value: isinstance(value, bool))
TEXT_MAX = 255
"""Most characters of a text that names something; RocketMQ's own limit for a group."""


def _is_text(value: object, *, empty: bool = False) -> bool:
    return isinstance(value, str) and (empty or bool(value)) and len(value) <= TEXT_MAX and value.isprintable()


TEXT = Rule("a text", _is_text)
TEXTS = Rule("a list of texts", lambda value: isinstance(value, tuple) and all(map(_is_text, value)))
NAMES = Rule("a list of one text or more", lambda value: TEXTS.holds(value) and bool(value))
TEXT_MAP = Rule(
    "a table of texts",
    lambda value: isinstance(value, Mapping) and all(_is_text(item, empty=True) for item in value.values()),
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IP = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}", re.ASCII)
IP = Rule("an IPv4 address", lambda value: isinstance(value, str) and _IP.fullmatch(value) is not None)
_ANYTHING = Rule("a value", lambda _value: True)


def text(default: Any = attrs.NOTHING, *, key: str = "", empty: bool = False) -> Any:
    """A text.

    Args:
        empty: whether it may be empty.
    """
    rule = Rule("text", lambda value: _is_text(value, empty=True)) if empty else TEXT
    return checked(rule, default, key=key)


def span(default: Any = attrs.NOTHING, *, minimum: int = 0) -> Any:
    """A time that people may also write in seconds: `run_for_ms`, or `run_for_s`."""
    rule = whole_rule("milliseconds", minimum)
    return attrs.field(
        default=default, validator=check_rule, metadata={"rule": rule, "unit": "milliseconds", "span": True}
    )


def choice(kind: type[_Choice], default: Any = attrs.NOTHING) -> Any:
    """One of an enum, which may be given as its text."""
    known = [item.value for item in kind]

    def convert(value: Any) -> Any:
        # An unknown text is left for the check, which knows the key.
        return kind(value) if isinstance(value, str) and value in known else value

    # A file is checked before its texts are converted.
    rule = Rule(f"one of {', '.join(known)}", lambda value: isinstance(convert(value), kind))
    return checked(rule, default, converter=convert)


def one_of(noun: str, values: Mapping[int, str]) -> Any:
    """One of some numbers.

    Args:
        values: each with what it means.
    """
    expected = " or ".join(f"{value} ({meaning})" for value, meaning in values.items())
    return checked(Rule(f"a {noun} of {expected}", lambda value: type(value) is int and value in values))
