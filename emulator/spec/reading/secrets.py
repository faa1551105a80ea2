"""The secrets of a scenario: where they are, where their values come from, and what stands for them in what is written.

Nothing that is written has the value of a secret. A reference stays a reference. A text becomes a mark, `***`; two
secrets of a scenario have one mark exactly if they have one value, since that is all that emulated nodes compare.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import attrs

from emulator.base.files import UnreadableError, read_text
from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import SpecError
from faults.nemesis import Nemesis
from faults.plan import Plan, TimedFault
from nodes.fields import FieldError, key_of, rule_of
from nodes.secret import MASK, Secret, is_secret

_SECTIONS = {
    "accounts": "account",
    "nameservers": "nameserver",
    "controllers": "controller",
    "brokers": "broker",
    "proxies": "proxy",
    "consumers": "consumer",
    "producers": "producer",
    "statefulsets": "statefulset",
}
"""Mapping field of a scenario -> section: all that may have a secret, or options."""
_BYTES_MAX = 64 * 1024
_HOW = 'give it as { env = "NAME" } or { file = "PATH" }'
_Change = Callable[[str, Secret], Secret]
_Part = TypeVar("_Part", bound=attrs.AttrsInstance)


def secrets_of(scenario: Scenario) -> Iterator[tuple[str, Secret]]:
    """The secrets of a scenario in the order of scenario files, each with the path of its key."""
    found: list[tuple[str, Secret]] = []

    def collect(key: str, secret: Secret) -> Secret:
        found.append((key, secret))
        return secret

    _changed(scenario, collect)
    yield from found


def resolved(scenario: Scenario) -> Scenario:
    """The scenario with the values of all secrets.

    Raises:
        SpecError: a variable is not set, a file cannot be read, or a secret was masked when the scenario was written.
    """
    mistakes: list[SpecError] = []

    def value_of(key: str, secret: Secret) -> Secret:
        try:
            return resolved_secret(key, secret)
        except SpecError as error:
            mistakes.append(error)
            return secret

    changed = _changed(scenario, value_of)
    if mistakes:
        raise SpecError.of(mistakes)
    return changed


def resolved_secret(key: str, secret: Secret) -> Secret:
    """A secret with its value.

    Args:
        key: its path, for messages.
        secret: it.

    Raises:
        SpecError: there is no value.
    """
    if secret.is_known:
        return secret
    if secret.env:
        value = os.environ.get(secret.env, "")
        missing = f"the environment variable {secret.env} is not set"
    elif secret.file:
        value, missing = _content(secret.file)
    else:
        value, missing = "", f"it was masked as {secret.mark} when this was written: {_HOW}"
    if not value:
        raise SpecError(key, f"a secret is missing: {missing}")
    return secret.with_value(value)


def _content(file: str) -> tuple[str, str]:
    """The secret in a file, and what is wrong if there is none."""
    try:
        return read_text(Path(file).expanduser(), _BYTES_MAX).strip(), f"{file} is empty"
    except UnreadableError as error:
        return "", f"{file} cannot be read: {error}"


def resolved_config(config: _Part, key: str) -> _Part:
    """The options of a node with the values of all secrets.

    Raises:
        SpecError: there is no value.
    """
    return _changed_fields(config, key, resolved_secret)


def marked(scenario: Scenario) -> Scenario:
    """The scenario in which secrets with one value, and no others, have one mark: `***`, `***2`, ..."""
    every = [secret for _, secret in secrets_of(scenario) if secret]
    if not every:
        return scenario
    taken = dict.fromkeys(secret.mark for secret in every if not secret.is_known and not secret.reference)
    free = (mark for mark in _marks() if mark not in taken)
    marks: dict[str, str] = {}
    for secret in every:
        if secret.is_known and secret.reveal() not in marks:
            marks[secret.reveal()] = next(free)
    return _changed(scenario, lambda _, item: item.with_mark(marks[item.reveal()]) if item and item.is_known else item)


def _marks() -> Iterator[str]:
    yield MASK
    number = 2
    while True:
        yield f"{MASK}{number}"
        number += 1


def marks_of_references(scenario: Scenario) -> dict[str, str]:
    """Mapping reference -> the mark of its value, for references of a resolved scenario: equal values have one mark."""
    every = (secret for _, secret in secrets_of(marked(scenario)))
    return {secret.reference: secret.mark for secret in every if secret.reference and secret.is_known}


def with_stand_ins(scenario: Scenario, marks: Mapping[str, str]) -> Scenario:
    """The scenario with another value for each secret that is not known: emulated nodes do the same with it.

    Args:
        scenario: as it was written.
        marks: see `marks_of_references`.
    """

    def stand_in(_: str, secret: Secret) -> Secret:
        if secret.is_known:
            return secret
        mark = marks.get(secret.reference, secret.reference) or secret.mark
        return secret.with_value(f"stand-in for {mark}")

    return _changed(scenario, stand_in)


def stood_in(scenario: Scenario) -> Scenario:
    """A resolved scenario with stand-ins for all its secrets: what it becomes when it is written and read again."""
    marks = marks_of_references(scenario)
    return with_stand_ins(_changed(marked(scenario), lambda _, secret: secret.without_value()), marks)


def _changed(scenario: Scenario, change: _Change) -> Scenario:
    parts: dict[str, Any] = {}
    for field, section in _SECTIONS.items():
        before = getattr(scenario, field)
        after = tuple(_changed_part(part, f"{section}[{i}]", change) for i, part in enumerate(before))
        if not _is_same(before, after):
            parts[field] = after
    faults = tuple(_changed_fault(fault, f"fault[{i}]", change) for i, fault in enumerate(scenario.faults.faults))
    if not _is_same(scenario.faults.faults, faults):
        parts["faults"] = Plan(faults)
    nemeses = tuple(_changed_fault(nemese, f"nemesis[{i}]", change) for i, nemese in enumerate(scenario.nemeses))
    if not _is_same(scenario.nemeses, nemeses):
        parts["nemeses"] = nemeses
    return attrs.evolve(scenario, **parts) if parts else scenario


def _is_same(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    return all(item is other for item, other in zip(before, after, strict=True))


def _changed_part(part: Any, key: str, change: _Change) -> Any:
    if not hasattr(part, "config"):
        return _changed_fields(part, key, change)
    changed = {}
    for name in ("config", "config5"):
        before = getattr(part, name, None)
        after = None if before is None else _changed_fields(before, f"{key}.options", change)
        if after is not before:
            changed[name] = after
    return attrs.evolve(part, **changed) if changed else part


def _changed_fields(part: _Part, key: str, change: _Change) -> _Part:
    values: dict[str, Secret] = {}
    for field in _secret_fields(type(part)):
        before = getattr(part, field.name)
        if before:
            path = f"{key}.{key_of(field)}"
            after = change(path, before)
            if after is not before:
                _require(field, path, after)
                values[field.name] = after
    # mypy knows no evolve of a type variable.
    return attrs.evolve(part, **values) if values else part  # type: ignore[misc]


@cache
def _secret_fields(kind: type) -> tuple["attrs.Attribute[Any]", ...]:
    return tuple(field for field in attrs.fields(kind) if is_secret(field))


def _require(field: "attrs.Attribute[Any]", path: str, secret: Secret) -> None:
    try:
        rule_of(field).check(path, secret)
    except FieldError as error:
        where = f"; it comes from {secret.reference}" if secret.reference else ""
        raise SpecError(path, f"{error.problem}{where}") from None


_Faulty = TypeVar("_Faulty", TimedFault, Nemesis)


def _changed_fault(timed: _Faulty, key: str, change: _Change) -> _Faulty:
    options = getattr(timed.fault, "options", None)
    if not isinstance(options, Mapping):
        return timed
    after = changed_options(options, partial(_at, f"{key}.options", change))
    changed: Any = timed.fault
    return timed if after is options else attrs.evolve(timed, fault=attrs.evolve(changed, options=after))


def _at(path: str, change: _Change, name: str, secret: Secret) -> Secret:
    return change(f"{path}.{name}", secret)


def changed_options(options: Mapping[str, Any], change: _Change) -> Mapping[str, Any]:
    """Options of a fault with changed secrets; the same mapping if none changes."""
    after = {
        name: change(name, option) if isinstance(option, Secret) and option else option
        for name, option in options.items()
    }
    return after if any(after[name] is not options[name] for name in options) else options
