"""Options as lines of `name=value`, as operators read and change them while a node runs.

Mirrors:
    `org.apache.rocketmq.common.MixAll#string2Properties`, `#properties2String`,
    `org.apache.rocketmq.remoting.Configuration`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs

from nodes.config.java_properties import read_properties
from nodes.config.java_values import UnreadValueError, read_boolean, read_text, read_whole
from nodes.config.options import Config, options
from nodes.fields import INT_MAX, LONG_MAX, rule_of

_Config = TypeVar("_Config", bound=Config)


def to_lines(values: Mapping[str, object]) -> str:
    """Write values by name, sorted."""
    return "".join(f"{name}={_text(values[name])}\n" for name in sorted(values))


def values_of(config: Config) -> dict[str, object]:
    """The options of a configuration that have a value, by their names."""
    found = {name: getattr(config, field.name) for name, field in options(type(config)).items()}
    return {name: value for name, value in found.items() if value is not None}


def from_lines(text: str) -> dict[str, str]:
    """Read lines as Java does; blank ones and comments are skipped, the last of equal names wins.

    Raises:
        MalformedPropertiesError: Java refuses the text.
    """
    return read_properties(text)


def updated(config: _Config, changes: Mapping[str, str]) -> _Config:
    """The configuration with some options changed; names that are unknown and texts that do not parse change nothing.

    Raises:
        FieldError: a text is a value of Java that the option cannot have here; nothing was changed.
    """
    wanted = parsed(type(config), changes) if changes else {}
    if not wanted:
        return config
    known = options(type(config))
    return attrs.evolve(config, **{known[name].name: value for name, value in wanted.items()})


def parsed(config_class: type[Config], changes: Mapping[str, str]) -> dict[str, object]:
    """The values that Java reads in texts of options, by option; others leave an option as it is, without an error.

    Mirrors:
        `org.apache.rocketmq.common.MixAll#properties2Object`.
    """
    known = options(config_class)
    values = {name: _value(known[name], text) for name, text in changes.items() if name in known}
    return {name: value for name, value in values.items() if value is not None}


def _value(field: "attrs.Attribute[Any]", text: str) -> object | None:
    """The value of an option; None if the text is none: of a switch every text but `true` is false."""
    default: object = field.default
    if isinstance(default, bool):
        return read_boolean(text)
    if isinstance(default, int):
        try:
            return read_whole(text, INT_MAX if rule_of(field).limit == INT_MAX else LONG_MAX)
        except UnreadValueError:
            return None
    value = read_text(text)
    return value if not isinstance(default, Enum) or value in [item.value for item in type(default)] else None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)
