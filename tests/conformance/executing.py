"""Run a sequence against an adapter, and compare every step with what the real class answered."""

import copy
import keyword
import re
from collections.abc import Iterator
from typing import Any

from conformance.vectors import Case

Json = Any
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MISSING = object()
NOT_RECORDED = "not recorded"
"""What a case writes in place of an answer that it does not give."""


class Adapter:
    """How the sequences of one family are fed to our tables.

    An operation is a method of its name in snake_case, its inputs are the method's arguments (`from` is `from_`), the
    case's configuration is what the constructor takes: a name that an adapter does not know fails the case. The method
    returns what the case calls `out`, the state aside; what it leaves out counts as null.
    """

    partly_recorded: tuple[str, ...] = ()
    """Tables that count only in cases that mention them."""
    begins_empty = True
    """Whether a case reports the whole state from nothing on, or only what changed since the construction."""
    sets_base_line: tuple[str, ...] = ()
    """Operations whose changes a case does not report."""
    at_ms = 0
    """Pretended time since the case began; set before each step."""
    case = ""
    """Name of the case."""

    def tables(self) -> dict[str, dict[str, Json]]:
        """What the case calls `state`, whole: table -> row -> value."""
        return {}

    def ordered(self, op: str, out: dict[str, Json]) -> dict[str, Json]:
        """An answer, expected or ours, in which lists whose real order is that of a hash are sorted."""
        return out


def execute_case(case: Case, adapter_class: type[Adapter]) -> None:
    """Run a case.

    Raises:
        AssertionError: a step differs; says which, where in its answer, what was expected and what came.
    """
    adapter = adapter_class(**_arguments(case.config))
    adapter.case = case.name
    expected_tables: dict[str, dict[str, Json]] = {} if adapter.begins_empty else copy.deepcopy(adapter.tables())
    mentioned = dict.fromkeys(table for step in case.steps for table in step["out"].get("state", {}))
    left_out = [table for table in adapter.partly_recorded if table not in mentioned]
    for number, step in enumerate(case.steps, 1):
        adapter.at_ms = step["at_ms"]
        out = dict(step["out"])
        _apply(out.pop("state", {}), expected_tables)
        got = getattr(adapter, _snake(step["op"]))(**_arguments(step["in"])) or {}
        if step["op"] in adapter.sets_base_line:
            expected_tables = copy.deepcopy(adapter.tables())
        tables = {table: rows for table, rows in adapter.tables().items() if rows and table not in left_out}
        expected = {table: rows for table, rows in expected_tables.items() if rows}
        out, got = adapter.ordered(step["op"], out), adapter.ordered(step["op"], got)
        differences = [*_compare("out", out, got), *_compare("state", expected, tables)]
        if differences:
            where = f"{case}, step {number} of {len(case.steps)} at {step['at_ms']} ms: {step['op']} {step['in']}"
            raise AssertionError("\n  ".join([where, *differences]))


def _apply(delta: dict[str, dict[str, Json]], tables: dict[str, dict[str, Json]]) -> None:
    for table, rows in delta.items():
        known = tables.setdefault(table, {})
        for row, value in rows.items():
            if value is None:
                known.pop(row, None)
            else:
                known[row] = value


def _compare(place: str, expected: Json, got: Json) -> Iterator[str]:
    """The differences, each at the innermost place where values differ; absent, null and (at the top) empty are one."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from _compare(f"{place}.{key}", expected.get(key, _MISSING), got.get(key, _MISSING))
    elif expected == NOT_RECORDED or (_is_nothing(place, expected) and _is_nothing(place, got)):
        return
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield f"{place}: expected {_shown(expected)}, got {_shown(got)}"


def _is_nothing(place: str, value: Json) -> bool:
    absent = value is _MISSING
    return absent or (place.startswith("out.") and place.count(".") == 1 and value is None)


def _shown(value: Json) -> str:
    return "nothing" if value is _MISSING else repr(value)


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower().lstrip("_")


def _arguments(named: dict[str, Json]) -> dict[str, Json]:
    names = {name: _snake(name) for name in named}
    return {f"{own}_" if keyword.iskeyword(own) else own: named[name] for name, own in names.items()}
