"""Values of options as RocketMQ reads them from text: what does not parse leaves the default, without a word.

Mirrors:
    `org.apache.rocketmq.common.MixAll#properties2Object`, with `Integer#parseInt`, `Long#parseLong`,
    `Double#parseDouble`, `Boolean#parseBoolean` and `String#trim` of Java.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from emulator.spec.rocketmq.known_options import KnownOption
from nodes.fields import INT_MAX, LONG_MAX

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
    """RocketMQ cannot read a text as the value of an option, and leaves the default; the text says what it reads."""


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


_READERS: Mapping[str, Callable[[str], JavaValue]] = MappingProxyType(
    {
        "int": lambda text: read_whole(text, INT_MAX),
        "long": lambda text: read_whole(text, LONG_MAX),
        "double": read_double,
        "float": read_double,
        "boolean": read_boolean,
        "string": read_text,
    }
)
"""Mapping type of a setter, in small letters -> what reads its value."""


def read_value(option: KnownOption, text: str) -> JavaValue:
    """The value of an option from the text behind its name in a file.

    Args:
        option: that RocketMQ reads from a file.
        text: as `java.util.Properties` returns it.

    Raises:
        UnreadValueError: RocketMQ leaves the default.
    """
    if option.values:
        return _read_enum(option, text)
    setter = next(setter for setter in option.setters if _kind(setter) in _READERS)
    return _READERS[_kind(setter)](text)


def _read_enum(option: KnownOption, text: str) -> str:
    """A value of an enum by its name, or, where a setter takes a number, by its number."""
    name = read_text(text)
    if name in option.values:
        return name
    if "int" in option.setters:
        try:
            number = read_whole(text, INT_MAX)
        except UnreadValueError:
            pass
        else:
            return option.values[number if 0 <= number < len(option.values) else 0]
    raise UnreadValueError(f"expected one of {', '.join(option.values)}")


def _kind(setter: str) -> str:
    return {"integer": "int"}.get(setter.lower(), setter.lower())
