"""The first row in which two traces differ, wherever their segments end."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.comparison.rows import first_difference
from emulator.trace.batches import batch_of
from emulator.trace.schema import CAUSES, LIFECYCLE
from emulator.trace.segments import SegmentWriter
from emulator.trace.stored import stored_trace


def stored(folder, rows, segment_rows=1_000, *, journal=False):
    """A trace of rows (table, text); the position of a row gives its seq and its instant."""
    writer = SegmentWriter(folder)
    by_table = {CAUSES: [], LIFECYCLE: []}
    for seq, (table, text) in enumerate(rows, start=1):
        fields = ("c1", text) if table is CAUSES else ("c1", "consumer", 1, text, "", 0)
        by_table[table].append((seq, seq * 1_000, *fields))
    for table, of_table in by_table.items():
        for begin in range(0, len(of_table), segment_rows):
            writer.write(batch_of(table, of_table[begin : begin + segment_rows]))
            if not journal:
                writer.close_segments()
    writer.save()
    return stored_trace(folder)


def difference(tmp_path, first, second, **how):
    return first_difference(stored(tmp_path / "a", first), stored(tmp_path / "b", second, **how))


ROWS = [(CAUSES, "x"), (LIFECYCLE, "started"), (CAUSES, "y"), (CAUSES, "z"), (LIFECYCLE, "ready")]


def test_equal_traces_do_not_differ_wherever_their_segments_end(tmp_path):
    assert difference(tmp_path, ROWS, ROWS, segment_rows=2) is None


def test_rows_that_wait_in_the_journal_are_rows(tmp_path):
    assert difference(tmp_path, ROWS, ROWS, journal=True) is None


def test_the_first_of_several_rows_that_differ_is_found(tmp_path):
    other = [*ROWS[:2], (CAUSES, "Y"), (CAUSES, "Z"), (LIFECYCLE, "stopped")]
    found = difference(tmp_path, ROWS, other, segment_rows=1)

    assert (found.seq, found.t_ns) == (3, 3_000)
    assert (found.first.table, found.first.fields["name"]) == ("causes", "y")
    assert (found.second.table, found.second.fields["name"]) == ("causes", "Y")


def test_rows_of_two_tables_may_stand_at_the_same_place(tmp_path):
    found = difference(tmp_path, ROWS, [*ROWS[:2], (LIFECYCLE, "ready")])

    assert (found.seq, found.first.table, found.second.table) == (3, "causes", "lifecycle")


def test_a_trace_that_ends_before_the_other_differs_where_it_ends(tmp_path):
    found = difference(tmp_path, ROWS[:3], ROWS)

    assert (found.seq, found.first) == (4, None)
    assert found.second.fields["name"] == "z"


def test_an_empty_trace_differs_from_the_first_row_on(tmp_path):
    assert difference(tmp_path, [], ROWS).seq == 1
    assert first_difference(stored(tmp_path / "c", []), stored(tmp_path / "d", [])) is None


SOME_ROWS = st.lists(st.tuples(st.sampled_from([CAUSES, LIFECYCLE]), st.sampled_from("xy")), max_size=12)


@given(SOME_ROWS, SOME_ROWS, st.integers(0, 12), st.integers(1, 5), st.integers(1, 5))
def test_it_is_what_a_comparison_row_by_row_finds(first, second, common, item, other):
    second = first[:common] + second
    with tempfile.TemporaryDirectory() as folder:
        found = first_difference(stored(Path(folder, "a"), first, item), stored(Path(folder, "b"), second, other))
    same = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    place = min(len(first), len(second)) if same is None else same
    if first == second:
        assert found is None
    else:
        assert found.seq == place + 1
        for row, rows in ((found.first, first), (found.second, second)):
            assert (row and row.table) == (rows[place][0].name if place < len(rows) else None)


def test_a_segment_that_is_not_readable_raises(tmp_path):
    a, b = stored(tmp_path / "a", ROWS), stored(tmp_path / "b", ROWS)
    a.paths(CAUSES)[0].unlink()

    with pytest.raises(FileNotFoundError):
        first_difference(a, b)
