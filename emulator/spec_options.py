"""The `options` tables of a scenario file, and configurations written back as such tables."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from emulator.spec_section import Section, SpecError, suggestion
from nodes.config import Config, ConfigError, options

_AnyConfig = TypeVar("_AnyConfig", bound=Config)
_NOTHING: Mapping[str, Any] = {}


def read_options(section: Section, config_class: type[_AnyConfig], preset: Mapping[str, Any] = _NOTHING) -> _AnyConfig:
    """The configuration that a node's table describes.

    Args:
        preset: field -> value of what holds where the table says nothing.

    Raises:
        SpecError: there is an option that does not exist, is there twice, or has a value that it cannot have.
    """
    known = options(config_class)
    fields = {field.name: field for field in known.values()}
    given = Section(section.at("options"), section.values.get("options", {}))
    if not isinstance(given.values, Mapping):
        raise SpecError(given.path, f"expected a table, not {given.values!r}")
    config = config_class(**preset)
    taken: dict[str, str] = {}
    for key, value in given.values.items():
        field = known.get(key) or fields.get(key)
        if field is None:
            raise SpecError(given.at(key), f"unknown option; {suggestion(key, list(known))}")
        if field.name in taken:
            raise SpecError(given.at(key), f"expected once, but {taken[field.name]} is there, too")
        taken[field.name] = key
        try:
            config = attrs.evolve(config, **{field.name: value})
        except ConfigError as error:
            raise SpecError(given.at(key), f"expected {error.expected}") from None
    return config


def write_options(config: Config) -> dict[str, Any]:
    """The options that differ from the shipped defaults, under RocketMQ's names."""
    # TOML and JSON know texts, not enums; str() of a StrEnum is its plain text.
    changed: dict[str, Any] = {}
    for option, field in options(type(config)).items():
        value = getattr(config, field.name)
        if value != field.default:
            changed[option] = str(value) if isinstance(value, str) else value
    return changed
