"""What the fields of faults may hold; each check tells what it expected in one line."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from faults.whom import FaultError

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def whole(unit: str, least: int | None = None, most: int | None = None, *, optional: bool = False) -> Check:
    """A whole number of something, within bounds."""
    bounds = _bounds(least, most)

    def check(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if value is None and optional:
            return
        fits = isinstance(value, int) and not isinstance(value, bool)
        if not fits or (least is not None and value < least) or (most is not None and value > most):  # type: ignore[operator]
            raise FaultError(field.name, f"expected a whole number of {unit}{bounds}, not {value!r}")

    return check


def _bounds(least: int | None, most: int | None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    return "" if least is None else f" >= {least}"


def one_of(noun: str, values: Mapping[int, str]) -> Check:
    """One of some numbers.

    Args:
        values: each with what it means.
    """
    expected = " or ".join(f"{value} ({meaning})" for value, meaning in values.items())

    def check(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if isinstance(value, bool) or value not in values:
            raise FaultError(field.name, f"expected a {noun} of {expected}, not {value}")

    return check


def other_than_zero(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """What would do nothing is a mistake."""
    if value == 0:
        raise FaultError(field.name, "expected another number than 0, which would do nothing")


def a_text(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """A text that is not empty, or None."""
    if value is not None and (not isinstance(value, str) or not value):
        raise FaultError(field.name, f"expected a text, not {value!r}")
