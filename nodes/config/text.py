"""Options as lines of `name=value`, as operators read and change them while a node runs.

Mirrors:
    `org.apache.rocketmq.common.MixAll#string2Properties`, `#properties2String`,
    `org.apache.rocketmq.remoting.Configuration`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs

from nodes.config.options import Config, options
from nodes.fields import FieldError, key_of, quoted

_Config = TypeVar("_Config", bound=Config)
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


def to_lines(values: Mapping[str, object]) -> str:
    """Write values by name, sorted."""
    return "".join(f"{name}={_text(values[name])}\n" for name in sorted(values))


def values_of(config: Config) -> dict[str, object]:
    """The options of a configuration that have a value, by their names."""
    found = {name: getattr(config, field.name) for name, field in options(type(config)).items()}
    return {name: value for name, value in found.items() if value is not None}


def from_lines(text: str) -> dict[str, str]:
    """Read lines; blank ones and comments are skipped, the last of equal names wins.

    Raises:
        ValueError: a line has no `=`.
    """
    found = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#!":
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise ValueError(f"{quoted(line)} is no line of the form name=value")
        found[name.strip()] = value.strip()
    return found


def updated(config: _Config, changes: Mapping[str, str]) -> _Config:
    """The configuration with some options changed; unknown names are ignored, as in RocketMQ.

    Raises:
        FieldError: an option cannot have this value; nothing was changed.
    """
    known = options(type(config))
    wanted = {known[name].name: _value(known[name], text) for name, text in changes.items() if name in known}
    return attrs.evolve(config, **wanted) if wanted else config


def _value(field: "attrs.Attribute[Any]", text: str) -> object:
    """The value of an option from its text; an invalid text is left to the option's validator."""
    default: object = field.default
    if isinstance(default, bool):
        return _BOOLEANS.get(text.lower(), text)
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise FieldError(key_of(field), f"expected a whole number, not {quoted(text)}") from None
    return text


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)
