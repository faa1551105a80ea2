"""Filters that the source applies mean what they mean in SQL, and leave out no segment that has a row that passes."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
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

from emulator.dataset.source.filters import applied, is_applied
from emulator.trace.index import SegmentEntry

NUMBERS, TEXTS = st.integers(0, 9), st.text("ab%_", max_size=3)
MEANINGS = {
    EqualTo: lambda value, other: value == other,
    EqualNullSafe: lambda value, other: value == other,
    GreaterThan: lambda value, other: value > other,
    GreaterThanOrEqual: lambda value, other: value >= other,
    LessThan: lambda value, other: value < other,
    LessThanOrEqual: lambda value, other: value <= other,
    In: lambda value, others: any(value == other for other in others),
    StringContains: lambda value, other: value.find(other) >= 0,
    StringStartsWith: lambda value, other: value[: len(other)] == other,
    StringEndsWith: lambda value, other: not other or value[-len(other) :] == other,
}
COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def filters_on(column, values, kinds):
    single = st.builds(lambda kind, value: kind((column,), value), st.sampled_from(kinds), values)
    several = st.builds(lambda some: In((column,), tuple(some)), st.lists(values, min_size=1, max_size=3))
    nulls = st.sampled_from([IsNull((column,)), IsNotNull((column,))])
    plain = single | several | nulls
    return plain | plain.map(Not)


FILTERS = st.lists(
    filters_on("run", TEXTS, (*COMPARISONS, StringContains, StringStartsWith, StringEndsWith))
    | filters_on("node", TEXTS, (*COMPARISONS, StringContains, StringStartsWith, StringEndsWith))
    | filters_on("seq", NUMBERS, COMPARISONS)
    | filters_on("t_ns", NUMBERS, COMPARISONS),
    max_size=4,
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, TEXTS), min_size=1, max_size=6)


def means(item, row):
    if isinstance(item, Not):
        return not means(item.child, row)
    if isinstance(item, IsNull | IsNotNull):
        return isinstance(item, IsNotNull)
    return MEANINGS[type(item)](row[item.attribute[0]], item.value)


@settings(max_examples=400)
@given(TEXTS, ROWS, FILTERS)
def test_rows_pass_as_in_sql_and_no_segment_with_such_a_row_is_left_out(run, rows, filters):
    rows = [dict(zip(("seq", "t_ns", "node"), row, strict=True), run=run) for row in sorted(rows)]
    assert all(map(is_applied, filters))
    found = applied(filters)
    table = pa.Table.from_pylist(rows)
    expression = found.expression()
    passing = (table if expression is None else table.filter(expression)).to_pylist() if found.has_run(run) else []
    assert passing == [row for row in rows if all(means(item, row) for item in filters)]
    times = [row["t_ns"] for row in rows]
    entry = SegmentEntry("beliefs", "f", len(rows), rows[0]["seq"], rows[-1]["seq"], max(times), 0, "")
    assert not passing or found.has_segment(entry, min(times))


def test_a_comparison_with_null_is_left_to_spark():
    assert not is_applied(EqualTo(("node",), None))
    assert not is_applied(Not(In(("node",), ("a", None))))
