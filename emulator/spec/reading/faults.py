"""The `[[fault]]` and `[[nemesis]]` tables of a scenario file: reading and writing.

The keys of a table are the fields of the fault's class and of its scope, so a new kind needs no code here.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import attrs

from emulator.spec.tables.mistakes import SpecError, require_known
from emulator.spec.tables.section import Section, keys_of
from faults.catalogue import CHAOS_NAMES, FAULTS, fault_of, fields_of, scope_of
from faults.fault import Fault
from faults.nemesis import Nemesis
from faults.plan import Plan, TimedFault, conflicts
from faults.scope import KEYS
from faults.target import ANY
from faults.words import WordsError
from nodes.fields import (
    SWITCH,
    TEXT,
    TIME_MAX_MS,
    FieldError,
    Rule,
    check_rule,
    check_value,
    checked,
    flag,
    span,
    text,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.secret import without_secrets

_LINE = Rule("a text", lambda value: isinstance(value, str) and bool(value))


@attrs.frozen
class FaultKeys:
    """What a `[[fault]]` and a `[[nemesis]]` say first; the other keys are those of the kind."""

    kind: str | None = text(None)
    """The kind of fault, or its name in OpenMessaging-Chaos; needed without `do`."""
    do: str | None = checked(_LINE, None)
    """The whole fault as one types it at the console, `kill broker-a`, in place of `kind` and its keys."""
    id: str | None = text(None)
    """Its name in the trace; if none is given, its kind and its number in the file."""


@attrs.frozen
class FaultTimes:
    """When a `[[fault]]` is there."""

    at_ms: int = span()
    """Begin, since the run began; the nodes may still be starting."""
    for_ms: int | None = span(None, minimum=1)
    """Duration; if none is given, until the run ends."""


@attrs.frozen
class NemesisTimes:
    """When the faults of a `[[nemesis]]` are there."""

    every_ms: int = span(minimum=1)
    """Mean time from one begin to the next; if periodic, each time."""
    min_ms: int = span(minimum=1)
    """Shortest duration of a fault."""
    max_ms: int | None = span(None, minimum=1)
    """Longest duration of a fault; if none is given, the shortest."""
    from_ms: int = span(0)
    """Begin of the first time between two faults, since the run began; if periodic, of the first fault."""
    until_ms: int | None = span(None, minimum=1)
    """No fault begins later; if none is given, the end of the run."""
    periodic: bool = flag(default=False)
    """Faults begin at even times, not at random ones."""


_WHICH, _TIMES, _RATES = keys_of(FaultKeys), keys_of(FaultTimes), keys_of(NemesisTimes)
_EVERYBODY = {"src": ANY, "dst": ANY}
_CODES: Mapping[str, tuple[str, type[IntEnum]]] = {
    "code": ("request code", RequestCode),
    "response": ("response code", ResponseCode),
}
"""Keys whose values may be written as names of codes."""


def read_plan(root: Section, first: int = 1) -> Plan:
    """All faults of a scenario file, in the order of the file.

    Args:
        root: the table that has the array `fault`.
        first: number of the first fault in ids that are made up.

    Raises:
        SpecError: a table describes no fault, or two faults have one id.
    """
    tables = root.tables("fault", (*_WHICH, *_TIMES, *_ALL_KEYS))
    read = root.parts(tables, lambda section: _read_timed(section, _number(section, first)))
    return _plan_of(root, tuple(read))


def _number(section: Section, first: int) -> int:
    """The number of a table in ids that are made up: its place in the file decides, whatever else could be read."""
    return first + int(section.path.rpartition("[")[2].removesuffix("]"))


def _plan_of(root: Section, timed: tuple[TimedFault, ...]) -> Plan:
    paths = root.retained("fault")
    refused = {error.index: error for error in conflicts(timed)}
    for index, error in refused.items():
        root.add(SpecError(f"{paths[index]}.{error.field}", error.expected))
        root.lose(paths[index])
    return Plan(tuple(item for index, item in enumerate(timed) if index not in refused))


def read_nemeses(root: Section, first: int = 1) -> tuple[Nemesis, ...]:
    """All nemeses of a scenario file, in the order of the file.

    Args:
        root: the table that has the array `nemesis`.
        first: number of the first nemesis in ids that are made up.

    Raises:
        SpecError: a table describes no nemesis.
    """
    tables = root.tables("nemesis", (*_WHICH, *_RATES, *_ALL_KEYS))
    return tuple(root.parts(tables, lambda section: _read_nemesis(section, _number(section, first))))


def _read_timed(section: Section, number: int) -> TimedFault:
    at_ms = section.attempt(lambda: section.needed_span_ms("at"), 0)
    for_ms = section.attempt(lambda: _for_ms(section), None)
    given = section.get("id", TEXT, "")
    fault = _read_fault(section, _TIMES)
    try:
        return TimedFault(given or f"{_called(section, fault)}-{number}", fault, at_ms, for_ms)
    except FieldError as error:
        raise SpecError(section.at(error.field), error.problem) from None


def _for_ms(section: Section) -> int | None:
    for_ms = section.span_ms("for")
    try:
        check_rule(None, attrs.fields(FaultTimes).for_ms, for_ms)
    except FieldError as error:
        raise SpecError(section.at(error.field), error.problem) from None
    return for_ms


def _read_nemesis(section: Section, number: int) -> Nemesis:
    every_ms = section.attempt(lambda: section.needed_span_ms("every"), TIME_MAX_MS)
    min_ms = section.attempt(lambda: section.needed_span_ms("min"), 1)
    max_ms = section.attempt(lambda: section.span_ms("max"), None)
    if max_ms is not None and max_ms < min_ms:
        section.add(SpecError(section.at("max_ms"), f"expected at least the shortest time, {min_ms} ms"))
    from_ms = section.attempt(lambda: section.span_ms("from"), 0) or 0
    until_ms = section.attempt(lambda: section.span_ms("until"), None)
    if until_ms is not None and until_ms <= from_ms:
        section.add(SpecError(section.at("until_ms"), f"expected an instant after the begin, {from_ms} ms"))
    given = section.get("id", TEXT, "")
    periodic = section.get("periodic", SWITCH, default=False)
    fault = _read_fault(section, _RATES)
    try:
        return Nemesis(
            given or f"nemesis-{_called(section, fault)}-{number}",
            fault,
            every_ms,
            min_ms,
            min_ms if max_ms is None else max_ms,
            from_ms,
            until_ms,
            periodic,
        )
    except FieldError as error:
        raise SpecError(section.at(error.field), error.problem) from None


def _called(section: Section, fault: Fault) -> str:
    return str(section.values.get("kind", fault.kind))


def _read_fault(section: Section, other_keys: tuple[str, ...]) -> Fault:
    if "do" in section.values:
        return _read_words(Section.of(section.path, section.values, ("do", "id", *other_keys), section.reading))
    name = section.get("kind", TEXT)
    require_known(section.at("kind"), "kind of fault", name, [*FAULTS, *CHAOS_NAMES])
    kind, defaults = CHAOS_NAMES.get(name, (name, {}))
    # Check the keys again, now that the kind is known: `percent` is a mistake in a cut.
    known = ("kind", "id", *other_keys, *_keys_of(FAULTS[kind]))
    section = Section.of(section.path, section.values, known, section.reading)
    return _build(FAULTS[kind], section, defaults)


def _read_words(section: Section) -> Fault:
    try:
        return fault_of(section.get("do", _LINE))
    except WordsError as error:
        raise SpecError(section.at("do"), str(error)) from None


def _keys_of(fault: type[Fault]) -> tuple[str, ...]:
    return tuple(_key(field) for part in (scope_of(fault), fault) for field in fields_of(part))


def _key(field: "attrs.Attribute[Any]") -> str:
    return KEYS.get(field.name, field.name)


def _build(fault: type[Fault], section: Section, defaults: Mapping[str, Any]) -> Fault:
    of_scope = _values(scope_of(fault), section, {**_EVERYBODY, **defaults})
    of_fault = _values(fault, section, defaults)
    for part, values in ((scope_of(fault), of_scope), (fault, of_fault)):
        for field in (item for item in fields_of(part) if item.name in values and "rule" in item.metadata):
            try:
                check_value(field, values[field.name])
            except FieldError as error:
                section.add(_mistake(section, error))
    try:
        return fault(scope=scope_of(fault)(**of_scope), **of_fault)
    except FieldError as error:
        raise _mistake(section, error) from None


def _mistake(section: Section, error: FieldError) -> SpecError:
    """What is wrong with a field, at its key."""
    key = KEYS.get(error.field, error.field)
    is_there = key in section.values
    return SpecError(
        section.at(key), error.problem if is_there else f"missing; {error.problem.removesuffix(', not None')}"
    )


def _values(part: type, section: Section, defaults: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields_of(part):
        key = _key(field)
        if key in section.values:
            values[field.name] = _value(section, key)
        elif field.name in defaults:
            values[field.name] = defaults[field.name]
        elif field.default is attrs.NOTHING:
            values[field.name] = None  # the class refuses it and says what was expected
    return values


def _value(section: Section, key: str) -> Any:
    value = section.values[key]
    if key in _CODES and isinstance(value, str):
        subject, codes = _CODES[key]
        require_known(section.at(key), subject, value, list(codes.__members__))
        return int(codes[value])
    return value


def write_plan(plan: Plan) -> list[dict[str, Any]]:
    """The tables from which `read_plan` reads an equal plan."""
    return [_write_timed(timed) for timed in plan.faults]


def _write_timed(timed: TimedFault) -> dict[str, Any]:
    lasting = {} if timed.for_ms is None else {"for_ms": timed.for_ms}
    return {"id": timed.id, **_write_fault(timed.fault), "at_ms": timed.at_ms, **lasting}


def write_nemeses(nemeses: tuple[Nemesis, ...]) -> list[dict[str, Any]]:
    """The tables from which `read_nemeses` reads equal nemeses."""
    return [
        {
            "id": nemese.id,
            **_write_fault(nemese.fault),
            "every_ms": nemese.every_ms,
            "min_ms": nemese.min_ms,
            "max_ms": nemese.max_ms,
            "from_ms": nemese.from_ms,
            **({} if nemese.until_ms is None else {"until_ms": nemese.until_ms}),
            **({"periodic": True} if nemese.periodic else {}),
        }
        for nemese in nemeses
    ]


def _write_fault(fault: Fault) -> dict[str, Any]:
    table: dict[str, Any] = {"kind": fault.kind}
    for part in (fault.scope, fault):
        for field in fields_of(type(part)):
            value = getattr(part, field.name)
            if value is not None and (field.default is attrs.NOTHING or value != field.default):
                table[_key(field)] = without_secrets(value)
    return table


_ALL_KEYS = tuple(dict.fromkeys(key for fault in FAULTS.values() for key in _keys_of(fault)))
