"""Functions of the user's own that a scenario names: found before it runs, where the user allows it."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from emulator.spec.code.user_code import UserCode
from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import SpecError
from nodes.config import Config, options
from nodes.config.user_functions import FunctionKind, FunctionRule, UserFunctionError, named_functions
from nodes.fields import key_of

_SECTIONS = {"faults": "", "nemeses": "nemesis"}
"""Fields of a scenario that are no plurals of their tables."""


@attrs.frozen
class NamedCode:
    """Code that a scenario names."""

    key: str
    """Path of the value."""
    kind: FunctionKind
    name: str


def with_user_functions(scenario: Scenario) -> Scenario:
    """The scenario, when all functions that it names have been found.

    Reading the scenario of an old run needs none of them, so this is a step of its own.

    Raises:
        SpecError: a function is not allowed, cannot be imported, or is none.
    """
    for mistake in violations_of_functions(scenario):
        raise mistake
    return scenario


def violations_of_functions(scenario: Scenario) -> Iterator[SpecError]:
    """The functions of a scenario that are not allowed, cannot be imported, or are none."""
    for code in named_code(scenario):
        try:
            scenario.code.find(code.kind, code.name)
        except UserFunctionError as error:
            yield SpecError(code.key, str(error))


def require_functions(key: str, config: Config, code: UserCode) -> None:
    """Find the functions that options name.

    Args:
        key: path of the options.
        config: the options.
        code: what the scenario may run.

    Raises:
        SpecError: a function is not allowed, cannot be imported, or is none.
    """
    for option, kind, name in named_functions(config):
        try:
            code.find(kind, name)
        except UserFunctionError as error:
            raise SpecError(f"{key}.{option}", str(error)) from None


def named_code(scenario: Scenario) -> Iterator[NamedCode]:
    """All code that a scenario names, in the options of its nodes, of its faults, or anywhere else."""
    for field in attrs.fields(type(scenario)):
        section = _SECTIONS.get(field.name, field.name.removesuffix("s"))
        yield from _named_in(section, getattr(scenario, field.name))


def sources(scenario: Scenario) -> Mapping[Path, bytes]:
    """The modules whose functions a scenario names: mapping path next to its file -> content.

    Raises:
        UserFunctionError: one of them is gone.
    """
    found = (scenario.code.source(code.name) for code in named_code(scenario))
    return dict(item for item in found if item is not None)


def _named_in(key: str, value: Any) -> Iterator[NamedCode]:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            if item.__class__ is not str:
                yield from _named_in(f"{key}[{index}]", item)
    elif isinstance(value, Mapping):
        yield from _named_in_options(key, value)
    else:
        for name, below, rule in _fields_of(value.__class__):
            held = getattr(value, name)
            if rule is not None and rule.names_code(held):
                yield NamedCode(f"{key}.{below}", rule.kind, str(held))
            elif held and held.__class__ not in _PLAIN:
                yield from _named_in(_path(key, below), held)


_PLAIN = (bool, int, str)


@cache
def _fields_of(kind: type) -> tuple[tuple[str, str, FunctionRule | None], ...]:
    """(name, key, rule if it can name code) of each field of a class; of what is no class of attrs none."""
    fields = attrs.fields(kind) if attrs.has(kind) else ()
    rules = [(field, field.metadata.get("rule")) for field in fields]
    return tuple((field.name, key_of(field), rule if isinstance(rule, FunctionRule) else None) for field, rule in rules)


def _path(key: str, field: str) -> str:
    """The path of a field: options stand in a table of their own, a fault in that of its instants."""
    if not key:  # a plan is the list of its faults
        return "fault" if field == "faults" else field
    if field == "fault":
        return key
    return f"{key}.{'options' if field == 'config' else field}"


def _named_in_options(key: str, given: Mapping[Any, Any]) -> Iterator[NamedCode]:
    """What options name that nodes get with a restart; of which role is decided when it comes."""
    rules = _code_options()
    for option, value in given.items():
        rule = rules.get(option)
        if rule is not None and isinstance(value, str) and rule.names_code(value):
            yield NamedCode(f"{key}.{option}", rule.kind, value)


def _code_options() -> dict[str, FunctionRule]:
    """Mapping option, under both of its names -> its rule, of all options that can name code."""
    found: dict[str, FunctionRule] = {}
    classes = [Config]
    for config in classes:
        classes += config.__subclasses__()
        for name, field in options(config).items():
            rule = field.metadata.get("rule")
            if isinstance(rule, FunctionRule):
                found |= {name: rule, field.name: rule}
    return found
