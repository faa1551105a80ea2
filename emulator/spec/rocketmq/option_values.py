"""Values of options as RocketMQ reads them from text: what does not parse leaves the default, without a word.

Mirrors:
    `org.apache.rocketmq.common.MixAll#properties2Object`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from emulator.spec.rocketmq.known_options import KnownOption
from nodes.config.java_values import (
    JavaValue,
    UnreadValueError,
    read_boolean,
    read_double,
    read_text,
    read_whole,
)
from nodes.fields import INT_MAX, LONG_MAX

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
