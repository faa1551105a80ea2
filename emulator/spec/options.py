"""The options of nodes in scenario files: reading, changing and writing them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from emulator.spec.releases import RELEASE, with_release
from emulator.spec.section import Section, SpecError, suggestion
from nodes.config import STATEFUL, Config, ConsumerConfig, options
from nodes.fields import FieldError, quoted

_AnyConfig = TypeVar("_AnyConfig", bound=Config)
_NOTHING: Mapping[str, Any] = {}


def read_options(section: Section, config_class: type[_AnyConfig], preset: Mapping[str, Any] = _NOTHING) -> _AnyConfig:
    """The configuration in the `options` of a node's table.

    Args:
        preset: mapping field -> value, for options that the table does not set.

    Raises:
        SpecError: an option is unknown, is given twice, or has an invalid value.
    """
    return with_options(section, "options", config_class(**preset))


def with_options(section: Section, key: str, config: _AnyConfig) -> _AnyConfig:
    """A configuration with the options in the table at `key` instead of its own.

    Raises:
        SpecError: an option or a release is unknown, an option is given twice, or has an invalid value.
    """
    known = options(type(config))
    fields = {field.name: field for field in known.values()}
    given = Section(section.at(key), section.values.get(key, {}))
    if not isinstance(given.values, Mapping):
        raise SpecError(given.path, f"expected a table, not {quoted(given.values)}")
    taken: dict[str, str] = {}
    values: dict[str, Any] = {}
    if RELEASE in given.values:
        config = with_release(given, config)
    for option, value in given.values.items():
        if option == RELEASE:
            continue
        field = known.get(option) or fields.get(option)
        if field is None:
            raise SpecError(given.at(option), f"unknown option; {suggestion(option, list(known))}")
        if field.name in taken:
            raise SpecError(given.at(option), f"expected once, but {taken[field.name]} is there, too")
        taken[field.name] = option
        values[field.name] = value
    try:
        return attrs.evolve(config, **values)  # at once: an option may need another one beside it
    except FieldError as error:
        field = known.get(error.field)
        option = taken.get(error.field if field is None else field.name, error.field)
        raise SpecError(given.at(option), error.problem) from None


def write_options(config: Config) -> dict[str, Any]:
    """The options that differ from the shipped defaults, under RocketMQ's names."""
    # TOML and JSON know texts, not enums; str() of a StrEnum is its plain text.
    changed: dict[str, Any] = {}
    for option, field in options(type(config)).items():
        value = getattr(config, field.name)
        if value != field.default:
            changed[option] = str(value) if isinstance(value, str) else value
    return changed


def expect_supported(key: str, config: Config) -> None:
    """Refuse options that no client of this emulator has together.

    Raises:
        SpecError: at `key`, the path of the options.
    """
    if isinstance(config, ConsumerConfig) and config.client_rebalance:
        strategy = config.allocate_message_queue_strategy
        if strategy in STATEFUL:
            problem = f"expected clientRebalance = false beside it: {strategy} is not supported by clients"
            raise SpecError(f"{key}.allocateMessageQueueStrategy", problem)
