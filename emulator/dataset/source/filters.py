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


def is_applied(one: Filter) -> bool:
    """Whether the source can apply a filter; no column of a trace is ever null."""
    if isinstance(one, Not):
        return is_applied(one.child)
    if isinstance(one, In):
        return all(value is not None for value in one.value)
    if isinstance(one, _COMPARISONS):
        return one.value is not None
    return isinstance(one, (*_TEXTS, *_NULLS))


@attrs.frozen
class RowFilters:
    """The filters of a query that the source applies: a row must pass all of them."""

    filters: tuple[Filter, ...] = ()

    def has_run(self, run: str) -> bool:
        """Whether rows of a run can pass."""
        return all(_passes(one, run) for one in self.filters if _column(one) == RUN)

    def has_segment(self, entry: SegmentEntry, begins_ns: int) -> bool:
        """Whether rows of a closed segment can pass.

        Args:
            entry: the segment.
            begins_ns: emulated time before which it has no row.
        """
        bounds = {"seq": (entry.first_seq, entry.last_seq), "t_ns": (begins_ns, entry.t_ns)}
        return all(_meets(one, *bounds[_column(one)]) for one in self.filters if _column(one) in bounds)

    def expression(self) -> pc.Expression | None:
        """What rows must pass as an expression of Arrow; None: all pass."""
        found: pc.Expression | None = None
        for one in self.filters:
            if _column(one) != RUN:
                expression = _expression(one)
                found = expression if found is None else found & expression
        return found


def _column(one: Filter) -> str:
    attribute: tuple[str, ...] = one.child.attribute if isinstance(one, Not) else one.attribute  # type: ignore[attr-defined]
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


def _passes(one: Any, value: str | int) -> bool:
    if isinstance(one, Not):
        return not _passes(one.child, value)
    if isinstance(one, _NULLS):
        return isinstance(one, IsNotNull)
    return bool(_TESTS[type(one)](value, one.value))


def _meets(one: Any, first: int, last: int) -> bool:
    """Whether a number between two others, these included, can pass."""
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return _passes(one, last)
    if isinstance(one, LessThan | LessThanOrEqual):
        return _passes(one, first)
    if isinstance(one, EqualTo | EqualNullSafe | In):
        values = one.value if isinstance(one, In) else (one.value,)
        return any(first <= value <= last for value in values)
    return True


def _expression(one: Any) -> pc.Expression:
    if isinstance(one, Not):
        return ~_expression(one.child)
    if isinstance(one, _NULLS):
        return pc.scalar(isinstance(one, IsNotNull))
    return _EXPRESSIONS[type(one)](pc.field(_column(one)), one.value)


def applied(filters: Sequence[Filter]) -> RowFilters:
    """Those among the filters of a query that the source applies."""
    return RowFilters(tuple(one for one in filters if is_applied(one)))
