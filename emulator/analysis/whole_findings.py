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

from emulator.analysis.findings.table import Findings
from emulator.analysis.report import TABLES_OF_REPORT

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_CLASSES: Mapping[str, Any] = {table.name: table.row_class for table in TABLES_OF_REPORT}


@attrs.frozen
class _PlainForm:
    """How values of a type are as plain values."""

    type: Any
    """Of Arrow."""
    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any], Any]


def schema_of_findings() -> "pa.Schema":
    """Columns of what was found in a run: run, agreed_ns, and one per table of a report, a list of its rows.

    A row is a struct with all fields of its class.
    """
    import pyarrow as pa

    tables = [(name, pa.list_(_form(row_class).type)) for name, row_class in _ROW_CLASSES.items()]
    return pa.schema([("run", pa.string()), ("agreed_ns", pa.int64()), *tables])


def plain_findings(run: str, found: Findings) -> dict[str, Any]:
    """What was found in a run, as a row with the columns of `schema_of_findings`."""
    rows = {name: list(map(_form(row_class).to_plain, found[name])) for name, row_class in _ROW_CLASSES.items()}
    return {"run": run, "agreed_ns": found.agreed_ns, **rows}


def findings_from(plain: Mapping[str, Any]) -> Findings:
    """What was found in a run, from a row with the columns of `schema_of_findings`."""
    rows = {name: tuple(map(_form(row_class).from_plain, plain[name])) for name, row_class in _ROW_CLASSES.items()}
    return Findings(rows=rows, agreed_ns=plain["agreed_ns"])


@cache
def _form(hint: Any) -> _PlainForm:
    """The form of a type; one of several types becomes a struct with a field for each."""
    import pyarrow as pa

    if get_origin(hint) is tuple:
        return _of_items(_form(get_args(hint)[0]))
    if isinstance(hint, UnionType):
        some = [item for item in get_args(hint) if item is not NoneType]
        return _or_none(_form(some[0])) if len(some) == 1 else _one_of({item: _form(item) for item in some})
    if attrs.has(hint):
        hints = get_type_hints(hint)
        return _of_fields(hint, {field.name: _form(hints[field.name]) for field in attrs.fields(hint)})
    if issubclass(hint, StrEnum):
        return _PlainForm(pa.string(), str, hint)
    return _PlainForm({int: pa.int64(), str: pa.string(), bool: pa.bool_(), float: pa.float64()}[hint], _same, _same)


def _of_items(of: _PlainForm) -> _PlainForm:
    import pyarrow as pa

    if of.to_plain is _same:
        return _PlainForm(pa.list_(of.type), list, tuple)
    return _PlainForm(
        pa.list_(of.type),
        lambda value: list(map(of.to_plain, value)),
        lambda plain: tuple(map(of.from_plain, plain)),
    )


def _or_none(of: _PlainForm) -> _PlainForm:
    if of.to_plain is _same:
        return of
    return _PlainForm(
        of.type,
        lambda value: None if value is None else of.to_plain(value),
        lambda plain: None if plain is None else of.from_plain(plain),
    )


def _one_of(forms: Mapping[type[Any], _PlainForm]) -> _PlainForm:
    import pyarrow as pa

    return _PlainForm(
        pa.struct([(item.__name__, of.type) for item, of in forms.items()]),
        lambda value: None if value is None else {type(value).__name__: forms[type(value)].to_plain(value)},
        lambda plain: (
            plain
            and next(
                of.from_plain(plain[item.__name__]) for item, of in forms.items() if plain[item.__name__] is not None
            )
        ),
    )


def _of_fields(row_class: type[Any], forms: Mapping[str, _PlainForm]) -> _PlainForm:
    import pyarrow as pa

    return _PlainForm(
        pa.struct([(name, of.type) for name, of in forms.items()]),
        lambda value: {name: of.to_plain(getattr(value, name)) for name, of in forms.items()},
        lambda plain: row_class(**{name: of.from_plain(plain[name]) for name, of in forms.items()}),
    )


def _same(value: Any) -> Any:
    return value
