"""Fields of values that people write: options of nodes, parameters of faults, keys of scenario files.

What a field may hold stands in its metadata: a `Rule`, the key under which people write it, and its unit. One check
reads the rule and one error says what was expected, so a bound is written once and told in the same words everywhere.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import attrs

_Choice = TypeVar("_Choice", bound=StrEnum)
ANY_MOST = 2**63 - 1


class FieldError(ValueError):
    """A field was given a value that it cannot have."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        """As people write it."""
        self.problem = problem
        """`expected a whole number of milliseconds >= 1, not 0`."""


@attrs.frozen
class Rule:
    """What a field may hold."""

    expected: str
    """`a whole number of milliseconds >= 1`."""
    holds: Callable[[Any], bool]

    def check(self, key: str, value: object) -> None:
        """Refuse what does not fit.

        Raises:
            FieldError: with the key.
        """
        if not self.holds(value):
            raise FieldError(key, f"expected {self.expected}, not {value!r}")


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
    converter: Callable[[Any], Any] | None = None,
) -> Any:
    """A field that obeys a rule; None is allowed where it is the default.

    Args:
        key: as people write it, where that is not its name.
    """
    metadata: dict[str, Any] = {"rule": rule, "unit": unit} | ({"key": key} if key else {})
    return attrs.field(default=default, validator=check_rule, converter=converter, metadata=metadata)


def check_rule(_owner: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse a value that its rule does not allow; a validator of attrs."""
    if value is not None or field.default is not None:
        rule_of(field).check(key_of(field), value)


def whole_rule(unit: str = "", least: int | None = None, most: int | None = None) -> Rule:
    """A whole number of something, within bounds."""
    counted = f" of {unit}" if unit else ""
    low, high = -ANY_MOST if least is None else least, ANY_MOST if most is None else most
    if most is not None and least is not None:
        bounds = f" from {least} to {most}"
    else:
        bounds = "" if least is None else f" >= {least}"
    return Rule(
        f"a whole number{counted}{bounds}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def whole(
    default: Any = attrs.NOTHING,
    *,
    unit: str = "",
    least: int | None = None,
    most: int | None = None,
    key: str = "",
) -> Any:
    """A whole number."""
    return checked(whole_rule(unit, least, most), default, key=key, unit=unit)


def flag(*, default: bool, key: str = "") -> Any:
    """A switch."""
    return checked(SWITCH, default, key=key)


SWITCH = Rule("true or false", lambda value: isinstance(value, bool))
TEXT = Rule("a text", lambda value: isinstance(value, str) and bool(value))
TEXTS = Rule(
    "a list of texts",
    lambda value: isinstance(value, tuple) and all(isinstance(item, str) and item for item in value),
)
NAMES = Rule("a list of one text or more", lambda value: TEXTS.holds(value) and bool(value))
TEXT_MAP = Rule(
    "a table of texts",
    lambda value: isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()),
)
_ANYTHING = Rule("a value", lambda _value: True)


def text(default: Any = attrs.NOTHING, *, key: str = "", empty: bool = False) -> Any:
    """A text.

    Args:
        empty: whether it may be empty.
    """
    rule = Rule("text", lambda value: isinstance(value, str)) if empty else TEXT
    return checked(rule, default, key=key)


def span(default: Any = attrs.NOTHING, *, least: int = 0) -> Any:
    """A time that people may also write in seconds: `run_for_ms`, or `run_for_s`."""
    rule = whole_rule("milliseconds", least)
    return attrs.field(
        default=default, validator=check_rule, metadata={"rule": rule, "unit": "milliseconds", "span": True}
    )


def choice(kind: type[_Choice], default: Any = attrs.NOTHING) -> Any:
    """One of an enum, which may be given as its text."""
    known = [one.value for one in kind]

    def convert(value: Any) -> Any:
        # An unknown text is left for the check, which knows the key.
        return kind(value) if value in known else value

    rule = Rule(f"one of {', '.join(known)}", lambda value: isinstance(value, kind))
    return checked(rule, default, converter=convert)


def one_of(noun: str, values: Mapping[int, str]) -> Any:
    """One of some numbers.

    Args:
        values: each with what it means.
    """
    expected = " or ".join(f"{value} ({meaning})" for value, meaning in values.items())
    return checked(Rule(f"a {noun} of {expected}", lambda value: not isinstance(value, bool) and value in values))
