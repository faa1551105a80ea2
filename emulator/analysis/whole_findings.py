"""Findings with all their fields as values of Arrow's types, and back again.

Tables for people name nodes in place of addresses, and leave out what no column is. Here nothing is lost, so a report
can be made of what another process has found.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import attrs

from emulator.analysis.findings.found import Findings
from emulator.analysis.report import TABLES_OF_REPORT

if TYPE_CHECKING:
    import pyarrow as pa

_Convert = Callable[[Any], Any]
_ROW_CLASSES: Mapping[str, Any] = {table.name: table.row_class for table in TABLES_OF_REPORT}


def schema_of_findings() -> "pa.Schema":
    """Columns of what was found in a run: run, agreed_ns, and one per table of a report, a list of its rows.

    A row is a struct with all fields of its class.
    """
    import pyarrow as pa

    tables = [(name, pa.list_(_type(row_class))) for name, row_class in _ROW_CLASSES.items()]
    return pa.schema([("run", pa.string()), ("agreed_ns", pa.int64()), *tables])


def plain_findings(run: str, found: Findings) -> dict[str, Any]:
    """What was found in a run, as a row with the columns of `schema_of_findings`."""
    rows = {name: list(map(_to_plain(row_class), found[name])) for name, row_class in _ROW_CLASSES.items()}
    return {"run": run, "agreed_ns": found.agreed_ns, **rows}


def findings_from(plain: Mapping[str, Any]) -> Findings:
    """What was found in a run, from a row with the columns of `schema_of_findings`."""
    rows = {name: tuple(map(_from_plain(row_class), plain[name])) for name, row_class in _ROW_CLASSES.items()}
    return Findings(rows=rows, agreed_ns=plain["agreed_ns"])


def _type(hint: Any) -> Any:
    import pyarrow as pa

    if get_origin(hint) is tuple:
        return pa.list_(_type(get_args(hint)[0]))
    if isinstance(hint, UnionType):
        some = _without_none(hint)
        return _type(some[0]) if len(some) == 1 else pa.struct([(item.__name__, _type(item)) for item in some])
    if attrs.has(hint):
        return pa.struct([(name, _type(of)) for name, of in _fields(hint).items()])
    if issubclass(hint, StrEnum):
        return pa.string()
    return {int: pa.int64(), str: pa.string(), bool: pa.bool_(), float: pa.float64()}[hint]


@cache
def _to_plain(hint: Any) -> _Convert:
    """What makes plain values of those of a type; one of several types becomes a struct with a field for each."""
    if get_origin(hint) is tuple:
        of = _to_plain(get_args(hint)[0])
        return list if of is _same else lambda value: list(map(of, value))
    if isinstance(hint, UnionType):
        some = _without_none(hint)
        if len(some) == 1:
            of = _to_plain(some[0])
            return _same if of is _same else lambda value: None if value is None else of(value)
        of_each = {item: _to_plain(item) for item in some}
        return lambda value: None if value is None else {type(value).__name__: of_each[type(value)](value)}
    if attrs.has(hint):
        fields = [(name, _to_plain(of)) for name, of in _fields(hint).items()]
        return lambda value: {name: of(getattr(value, name)) for name, of in fields}
    return str if issubclass(hint, StrEnum) else _same


@cache
def _from_plain(hint: Any) -> _Convert:
    """What makes values of a type of plain ones."""
    if get_origin(hint) is tuple:
        of = _from_plain(get_args(hint)[0])
        return tuple if of is _same else lambda value: tuple(map(of, value))
    if isinstance(hint, UnionType):
        some = _without_none(hint)
        if len(some) == 1:
            of = _from_plain(some[0])
            return _same if of is _same else lambda value: None if value is None else of(value)
        of_each = [(item.__name__, _from_plain(item)) for item in some]
        return lambda value: value and next(of(value[name]) for name, of in of_each if value[name] is not None)
    if attrs.has(hint):
        fields = [(name, _from_plain(of)) for name, of in _fields(hint).items()]
        return lambda value: hint(**{name: of(value[name]) for name, of in fields})
    return hint if issubclass(hint, StrEnum) else _same


def _same(value: Any) -> Any:
    return value


def _without_none(hint: Any) -> list[Any]:
    return [item for item in get_args(hint) if item is not NoneType]


def _fields(row_class: type[Any]) -> dict[str, Any]:
    """Mapping field -> its type."""
    hints = get_type_hints(row_class)
    return {field.name: hints[field.name] for field in attrs.fields(row_class)}
