"""Whoever follows a trace gets each row once, in the order in which they were recorded, whenever he looks."""

import random

import pytest

from emulator.trace import segments
from emulator.trace.journal import JOURNAL
from emulator.trace.run_directory import DamagedRunError, is_under_way
from emulator.trace.schema import TraceLevel
from emulator.trace.tail import TracePlace, TraceTail
from support.growing import GrowingRun, executed, growing, rows_of


@pytest.fixture(scope="module", params=list(TraceLevel))
def source(request, tmp_path_factory):
    return executed(tmp_path_factory.mktemp("executed") / request.param, TraceLevel(request.param))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 60)


@pytest.mark.parametrize("seed", range(3))
def test_each_row_comes_once_and_in_order_however_the_trace_grows(tmp_path, source, seed):
    chance = random.Random(seed)
    run, place, found = GrowingRun(tmp_path / "run", source), TracePlace(), []
    tail = TraceTail(run.path)
    while run.written < len(run.rows):
        for _ in range(chance.choice((1, 1, 2, 5))):  # several journals may pass unseen
            run.grow(chance.choice((0, 1, 3, 40, 200)))
        rows, place = tail.read(place, chance.choice((7, 1_000)))
        found += rows
    run.end()
    while rows := tail.read(place, 1_000):
        if not rows[0]:
            break
        found, place = found + rows[0], rows[1]

    assert found == run.rows
    assert place.rows == sum(source.manifest["rows"].values())
    assert [item.order for item in found] == sorted(item.order for item in found)


def test_what_lies_behind_a_place_is_the_same_for_whoever_reads_it_later(tmp_path, source):
    run = GrowingRun(tmp_path / "run", source)
    run.grow(150)
    first, place = TraceTail(run.path).read(TracePlace(), 100)
    run.grow(300)
    again, same = TraceTail(run.path).read(TracePlace(), 100)
    run.end()
    rest, end = TraceTail(run.path).read(place, 1_000_000)

    assert (first, place) == (again, same)
    assert first + rest == run.rows
    assert end.rows == len(run.rows)


def test_a_frame_of_which_half_is_written_is_read_when_it_is_whole(tmp_path, source):
    run = GrowingRun(tmp_path / "run", source)
    run.grow(20)
    journal = run.path / "trace" / JOURNAL
    before = journal.stat().st_size
    tail = TraceTail(run.path)
    _, place = tail.read(TracePlace(), 1_000)
    run.grow(10)
    whole = journal.read_bytes()
    with journal.open("r+b") as file:
        file.truncate((before + len(whole)) // 2)
    assert tail.read(place, 1_000) == ([], place)
    with journal.open("r+b") as file:
        file.write(whole)
    assert len(tail.read(place, 1_000)[0]) == 10


def test_a_journal_that_is_damaged_while_it_is_followed_is_reported(tmp_path, source):
    run = GrowingRun(tmp_path / "run", source)
    run.grow(5)
    journal = run.path / "trace" / JOURNAL
    before = journal.stat().st_size
    tail = TraceTail(run.path)
    _, place = tail.read(TracePlace(), 1_000)
    assert tail.read(place, 1_000) == ([], place)
    run.grow(5)
    with journal.open("r+b") as file:
        file.seek(before + 40)
        file.write(b"\xde\xad\xbe\xef")
    with pytest.raises(DamagedRunError, match=rf"waiting\.rows is damaged: the frame at byte {before} is damaged$"):
        tail.read(place, 1_000)


def test_rows_that_are_missing_in_a_whole_trace_are_reported(tmp_path, source):
    run = GrowingRun(tmp_path / "run", source)
    run.grow(10)
    tail = TraceTail(run.path)
    _, place = tail.read(TracePlace(), 1_000)
    del run.rows[run.written : run.written + 2]
    run.grow(5)
    if source.level is TraceLevel.FULL:
        with pytest.raises(DamagedRunError, match=r"waiting\.rows is damaged: 2 rows before seq 13 are missing$"):
            tail.read(place, 1_000)
    else:
        assert len(tail.read(place, 1_000)[0]) == 5, "other levels leave rows out"


def test_a_run_is_under_way_while_its_emulator_holds_it(tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        assert is_under_way(run.path)
        run.end()
        assert not is_under_way(run.path), "it has a manifest"
    (run.path / "manifest.json").unlink()
    assert not is_under_way(run.path), "it was killed"
    assert rows_of(run.path) == run.rows
