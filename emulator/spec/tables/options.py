"""The options of nodes in scenario files: reading, changing and writing them."""

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import attrs

from emulator.spec.rocketmq.explained import explained
from emulator.spec.tables.mistakes import SpecError, UnknownKeyError
from emulator.spec.tables.releases import RELEASE, with_release
from emulator.spec.tables.section import Section
from nodes.config import STATEFUL, Config, ConsumerConfig, options
from nodes.fields import FieldError, check_value, quoted
from nodes.secret import without_secrets

_AnyConfig = TypeVar("_AnyConfig", bound=Config)
_NOTHING: Mapping[str, Any] = {}


def read_options(section: Section, config_class: type[_AnyConfig], preset: Mapping[str, Any] = _NOTHING) -> _AnyConfig:
    """The configuration in the `options` of a node's table.

    Args:
        preset: mapping field -> value, for options that the table does not set.

    Raises:
        SpecError: an option is unknown, is given twice, or has an invalid value.
    """
    config = config_class(**preset)
    return section.attempt(lambda: with_options(section, "options", config), config)


def with_options(section: Section, key: str, config: _AnyConfig) -> _AnyConfig:
    """A configuration with the options in the table at `key` instead of its own.

    Raises:
        SpecError: an option or a release is unknown, an option is given twice, or has an invalid value.
    """
    known = options(type(config))
    fields = {field.name: field for field in known.values()}
    given = Section(section.at(key), section.values.get(key, {}), section.reading)
    if not isinstance(given.values, Mapping):
        raise SpecError(given.path, f"expected a table, not {quoted(given.values)}")
    taken: dict[str, str] = {}
    values: dict[str, Any] = {}
    if RELEASE in given.values:
        config = given.attempt(partial(with_release, given, config), config)
    for option, value in given.values.items():
        if option == RELEASE:
            continue
        field = known.get(option) or fields.get(option)
        if field is None:
            given.add(UnknownKeyError(given.at(option), "option", option, list(known), explained(type(config), option)))
        elif field.name in taken:
            given.add(SpecError(given.at(option), f"expected once, but {taken[field.name]} is there, too"))
        else:
            taken[field.name] = option
            values[field.name] = value
    single = {name: value for name, value in values.items() if _is_possible(given, taken[name], fields[name], value)}
    return _together(given, config, single, taken, reported=len(single) < len(values))


def _is_possible(given: Section, option: str, field: "attrs.Attribute[Any]", value: Any) -> bool:
    """Whether an option may have a value, whatever stands with it."""
    try:
        check_value(field, value)
    except FieldError as error:
        given.add(SpecError(given.at(option), error.problem))
        return False
    return True


def _together(
    given: Section, config: _AnyConfig, values: Mapping[str, Any], taken: Mapping[str, str], *, reported: bool
) -> _AnyConfig:
    """A configuration with all these values, or with those that can stand together if mistakes are collected.

    Args:
        given: the table of options.
        config: to change.
        values: mapping field -> value.
        taken: mapping field -> option as the table has it.
        reported: whether a mistake of the table was reported, from which this one may only follow.
    """
    try:
        return attrs.evolve(config, **values)  # at once: an option may need another one with it
    except FieldError as error:
        field = options(type(config)).get(error.field)
        name = error.field if field is None else field.name
        mistake = SpecError(given.at(taken.get(name, error.field)), error.problem)
    if not reported:
        given.add(mistake)
    others = {other: value for other, value in values.items() if other != name}
    return config if name not in values else _together(given, config, others, taken, reported=reported)


def write_options(config: Config) -> dict[str, Any]:
    """The options that differ from the shipped defaults, under RocketMQ's names."""
    # TOML and JSON know texts, not enums; str() of a StrEnum is its plain text.
    changed: dict[str, Any] = {}
    for option, field in options(type(config)).items():
        value = getattr(config, field.name)
        if value != field.default:
            changed[option] = str(value) if isinstance(value, str) else without_secrets(value)
    return changed


def require_supported(key: str, config: Config) -> None:
    """Refuse options that no client of this emulator has together.

    Raises:
        SpecError: at `key`, the path of the options.
    """
    if isinstance(config, ConsumerConfig) and config.client_rebalance:
        strategy = config.allocate_message_queue_strategy
        if strategy in STATEFUL:
            problem = f"expected clientRebalance = false with it: {strategy} is not supported by clients"
            raise SpecError(f"{key}.allocateMessageQueueStrategy", problem)
