"""What an option is made of: its name, unit, default and bounds, and what is wrong with a value.

A field is the RocketMQ option in snake_case; unit and original name stand in its metadata.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import attrs

_Choice = TypeVar("_Choice", bound=StrEnum)
_ANY_MOST = 2**63 - 1


class Unit(StrEnum):
    """What the number of an option counts."""

    MILLISECONDS = "ms"
    SECONDS = "s"
    MINUTES = "min"
    COUNT = "count"
    PORT = "port"
    NONE = ""
    """A switch or a name."""


class ConfigError(ValueError):
    """An option was given a value that it cannot have."""

    def __init__(self, option: str, expected: str) -> None:
        super().__init__(f"{option}: expected {expected}")
        self.option = option
        """Its camelCase name."""
        self.expected = expected


def option_name(field_name: str) -> str:
    """The camelCase name that RocketMQ gives the option behind a field."""
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def options(config_class: type["Config"]) -> Mapping[str, "attrs.Attribute[Any]"]:
    """All options of a configuration class: camelCase name -> field, in the order of the class."""
    return {field.metadata["option"]: field for field in attrs.fields(config_class)}


def name_options(_cls: type, fields: list["attrs.Attribute[Any]"]) -> list["attrs.Attribute[Any]"]:
    """Give each field of a configuration class the name of its option (a `field_transformer` of attrs)."""
    return [field.evolve(metadata={"option": option_name(field.name), **field.metadata}) for field in fields]


def _is_int_from(least: int, most: int) -> Any:
    def check(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            unit = field.metadata["unit"]
            counted = f" {unit}" if unit in {"ms", "s", "min"} else ""
            bounds = f">= {least}" if most == _ANY_MOST else f"from {least} to {most}"
            raise ConfigError(field.metadata["option"], f"a whole number{counted} {bounds}, not {value!r}")

    return check


def _is_bool(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(field.metadata["option"], f"true or false, not {value!r}")


def number(default: int, unit: Unit, least: int = 0, most: int = _ANY_MOST) -> int:
    """An option that is a whole number within bounds."""
    return attrs.field(default=default, validator=_is_int_from(least, most), metadata={"unit": unit})


def millis(default: int) -> int:
    """An option that is a time which may be 0."""
    return number(default, Unit.MILLISECONDS)


def period_millis(default: int) -> int:
    """An option that is the time between two rounds."""
    # A fixed-rate task with period 0 would never let virtual time pass.
    return number(default, Unit.MILLISECONDS, least=1)


def port(default: int) -> int:
    """An option that is a port."""
    return number(default, Unit.PORT, least=1, most=65535)


def flag(*, default: bool) -> bool:
    """A switch."""
    return attrs.field(default=default, validator=_is_bool, metadata={"unit": Unit.NONE})


def _is_text(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(field.metadata["option"], f"text, not {value!r}")


def text(default: str) -> str:
    """An option that is any text."""
    return attrs.field(default=default, validator=_is_text, metadata={"unit": Unit.NONE})


def choice(default: _Choice) -> _Choice:
    """An option that is one of an enum, which may be given as its text."""
    kind = type(default)
    known = [one.value for one in kind]

    def convert(value: Any) -> Any:
        # An unknown text is left for the validator, which knows the option's name.
        return kind(value) if value in known else value

    def check(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, kind):
            raise ConfigError(field.metadata["option"], f"one of {', '.join(known)}, not {value!r}")

    made: _Choice = attrs.field(default=default, converter=convert, validator=check, metadata={"unit": Unit.NONE})
    return made


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class Config:
    """What every configuration is: a frozen set of options."""
