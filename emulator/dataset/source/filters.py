"""Filters of a query that the source applies itself.

Runs are chosen by name before any of them is opened, segments by seq and time, rows while they are read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from emulator.trace.index import SegmentEntry

RUN = "run"
_COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
_TEXTS = (StringContains, StringEndsWith, StringStartsWith)
_NULLS = (IsNotNull, IsNull)


def is_applied(item: Filter) -> bool:
    """Whether the source can apply a filter; no column of a trace is ever null."""
    if isinstance(item, Not):
        return is_applied(item.child)
    if isinstance(item, In):
        return all(value is not None for value in item.value)
    if isinstance(item, _COMPARISONS):
        return item.value is not None
    return isinstance(item, (*_TEXTS, *_NULLS))


@attrs.frozen
class RowFilters:
    """The filters of a query that the source applies: a row must pass all of them."""

    filters: tuple[Filter, ...] = ()

    def has_run(self, run: str) -> bool:
        """Whether rows of a run can pass."""
        return all(_passes(item, run) for item in self.filters if _column(item) == RUN)

    def has_segment(self, entry: SegmentEntry, begins_ns: int) -> bool:
        """Whether rows of a closed segment can pass.

        Args:
            entry: the segment.
            begins_ns: emulated time before which it has no row.
        """
        bounds = {"seq": (entry.first_seq, entry.last_seq), "t_ns": (begins_ns, entry.t_ns)}
        return all(_meets(item, *bounds[_column(item)]) for item in self.filters if _column(item) in bounds)

    def expression(self) -> pc.Expression | None:
        """What rows must pass as an expression of Arrow; None: all pass."""
        found: pc.Expression | None = None
        for item in self.filters:
            if _column(item) != RUN:
                expression = _expression(item)
                found = expression if found is None else found & expression
        return found


def _column(item: Filter) -> str:
    attribute: tuple[str, ...] = item.child.attribute if isinstance(item, Not) else item.attribute  # type: ignore[attr-defined]
    return attribute[0]


_TESTS: Mapping[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: lambda value, limit: value == limit,
    EqualNullSafe: lambda value, limit: value == limit,
    GreaterThan: lambda value, limit: value > limit,
    GreaterThanOrEqual: lambda value, limit: value >= limit,
    LessThan: lambda value, limit: value < limit,
    LessThanOrEqual: lambda value, limit: value <= limit,
    In: lambda value, values: value in values,
    StringContains: lambda value, part: part in value,
    StringStartsWith: lambda value, part: value.startswith(part),
    StringEndsWith: lambda value, part: value.endswith(part),
}
_EXPRESSIONS: Mapping[type[Filter], Callable[[pc.Expression, Any], pc.Expression]] = {
    **{kind: _TESTS[kind] for kind in _COMPARISONS},
    In: lambda field, values: field.isin(list(values)),
    StringContains: pc.match_substring,
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
}


def _passes(item: Any, value: str | int) -> bool:
    if isinstance(item, Not):
        return not _passes(item.child, value)
    if isinstance(item, _NULLS):
        return isinstance(item, IsNotNull)
    return bool(_TESTS[type(item)](value, item.value))


def _meets(item: Any, first: int, last: int) -> bool:
    """Whether a number between two others, these included, can pass."""
    if isinstance(item, GreaterThan | GreaterThanOrEqual):
        return _passes(item, last)
    if isinstance(item, LessThan | LessThanOrEqual):
        return _passes(item, first)
    if isinstance(item, EqualTo | EqualNullSafe | In):
        values = item.value if isinstance(item, In) else (item.value,)
        return any(first <= value <= last for value in values)
    return True


def _expression(value: Any) -> pc.Expression:
    if isinstance(value, Not):
        return ~_expression(value.child)
    if isinstance(value, _NULLS):
        return pc.scalar(isinstance(value, IsNotNull))
    return _EXPRESSIONS[type(value)](pc.field(_column(value)), value.value)


def applied(filters: Sequence[Filter]) -> RowFilters:
    """Those among the filters of a query that the source applies."""
    return RowFilters(tuple(item for item in filters if is_applied(item)))
