"""Tables of findings: one row class each, whose fields are its columns, for JSON, Arrow, Parquet and Spark.

A queue becomes the columns group, topic, broker_name and queue_id; the holders of values are JSON; nodes have their
names in place of addresses and client ids.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_args, get_origin, get_type_hints

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.finding import Explained, JudgedFinding
from emulator.history.rows.queues import GroupQueue
from emulator.state.event_lines import with_names

if TYPE_CHECKING:
    import pyarrow as pa

F = TypeVar("F")


@attrs.frozen
class FindingTable(Generic[F]):
    """One kind of finding."""

    name: str
    """Of the table, in snake case."""
    row_class: type[F]
    """Its fields are the columns, but those with `NO_COLUMN`."""
    doc: str
    """A row, in a few words, for people."""

    def columns(self) -> Iterator["attrs.Attribute[Any]"]:
        """The fields that are columns: first those of the finding itself, then what all findings have."""
        yield from _columns(self.row_class)

    def schema(self) -> "pa.Schema":
        """The columns and their types."""
        import pyarrow as pa

        return pa.schema(list(_types(self.row_class)))

    def arrow(self, rows: Iterable[F], names: Mapping[str, str]) -> "pa.Table":
        """Rows as an Arrow table.

        Args:
            rows: of the class.
            names: mapping address, or client id of a guest -> node.
        """
        import pyarrow as pa

        return pa.Table.from_pylist([dict(_cells(row, names)) for row in rows], schema=self.schema())

    def plain(self, rows: Iterable[F]) -> list[dict[str, Any]]:
        """Rows as plain values, ready for JSON."""
        return [{column.name: _plain(getattr(row, column.name)) for column in _columns(self.row_class)} for row in rows]


@attrs.frozen(kw_only=True)
class Findings:
    """Everything that was found in the rows of a run."""

    rows: Mapping[str, tuple[Any, ...]]
    """Mapping name of a table -> its rows, in order of time, or of what they are about."""
    agreed_ns: int | None
    """First instant at which all agreed; None: they never did."""

    def of(self, table: FindingTable[F]) -> tuple[F, ...]:
        """The rows of a table."""
        return self.rows[table.name]

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        """The rows of the table with this name."""
        return self.rows[name]

    def only(self, changed: Mapping[FindingTable[Any], tuple[Any, ...]]) -> Self:
        """The same with other rows in some tables."""
        named = {table.name: rows for table, rows in changed.items()}
        return attrs.evolve(self, rows={**self.rows, **named})


def _columns(row_class: type[Any]) -> Iterator["attrs.Attribute[Any]"]:
    every = [field for field in attrs.fields(row_class) if field.metadata.get("column", True)]
    common = [
        field.name for base in (Explained, JudgedFinding) if issubclass(row_class, base) for field in attrs.fields(base)
    ]
    yield from (item for item in every if item.name not in common)
    yield from (item for item in every if item.name in common)


def _types(row_class: type[Any]) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(row_class)
    for column in _columns(row_class):
        hint = hints[column.name]
        if hint is GroupQueue:
            yield from _types(GroupQueue)
        else:
            yield column.name, _arrow_type(hint)


def _arrow_type(hint: Any) -> Any:
    import pyarrow as pa

    if get_origin(hint) is tuple:
        of = get_args(hint)[0]
        if of is CauseShare:
            return pa.list_(pa.struct(list(_types(of))))
        return pa.string() if attrs.has(of) else pa.list_(_arrow_type(of))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    return {int: pa.int64(), str: pa.string(), bool: pa.bool_(), float: pa.float64()}[hint]


def _cells(row: Any, names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for column in _columns(type(row)):
        value = getattr(row, column.name)
        if isinstance(value, GroupQueue):
            yield from attrs.asdict(value).items()
        elif isinstance(value, StrEnum):
            yield column.name, value.value
        elif isinstance(value, tuple):
            yield column.name, _of_tuple(value, column, names)
        elif column.metadata.get("names"):
            yield column.name, with_names(value, names)
        else:
            yield column.name, value


def _of_tuple(value: tuple[Any, ...], field: "attrs.Attribute[Any]", names: Mapping[str, str]) -> Any:
    if field.name != "holders":
        return [attrs.asdict(item) if attrs.has(type(item)) else item for item in value]
    held = [{"nodes": list(item.nodes), "value": json.loads(with_names(item.value, names))} for item in value]
    return json.dumps(held)


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return attrs.asdict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
