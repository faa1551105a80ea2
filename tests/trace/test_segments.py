"""Segments, journal and index: at every instant they hold all rows up to some seq, and no reader sees half a file."""

import json
import os
import subprocess
import sys
from itertools import chain, count, pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.trace import segments
from emulator.trace.batches import batch_of
from emulator.trace.files import RunFiles
from emulator.trace.index import INDEX
from emulator.trace.journal import JOURNAL, frame, read_journal
from emulator.trace.schema import BELIEFS, CAUSES, LIFECYCLE
from emulator.trace.segments import SegmentWriter
from emulator.trace.stored import stored_trace

DIES = """
import os, sys
from pathlib import Path
from emulator.trace import segments
from emulator.trace.batches import batch_of
from emulator.trace.schema import CAUSES
segments.SEGMENT_ROWS = 100
writer = segments.SegmentWriter(Path(sys.argv[1]))
for begin in range(0, 250, 50):
    writer.write(batch_of(CAUSES, [(seq, 0, "n", "timer") for seq in range(begin, begin + 50)]))
    writer.save()
os._exit(9)
"""


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 100)


def causes(begin, end):
    return batch_of(CAUSES, [(seq, seq * 10, "node", "timer") for seq in range(begin, end)])


def lives(*seqs):
    return batch_of(LIFECYCLE, [(seq, seq * 10, "c1", "consumer", 1, "ready", "g", 0) for seq in seqs])


def names(directory):
    return sorted(path.name for path in (directory / "trace" / CAUSES.name).iterdir())


def seqs(directory):
    """The seq of all rows of all tables, in order."""
    trace = stored_trace(directory)
    found = [row["seq"] for table in (CAUSES, LIFECYCLE) for part in trace.tables(table) for row in part.to_pylist()]
    return sorted(found)


def test_rows_wait_in_the_journal_until_they_fill_a_segment(tmp_path):
    writer = SegmentWriter(tmp_path)
    assert not writer.write(causes(1, 60))
    writer.save()
    assert names(tmp_path) == []
    assert seqs(tmp_path) == list(range(1, 60))

    assert writer.write(causes(60, 130))
    writer.save()
    assert names(tmp_path) == ["seg-000000.parquet"]
    assert seqs(tmp_path) == list(range(1, 130))
    writer.close_segments()
    writer.close_segments()
    writer.remove_journal()

    assert names(tmp_path) == ["seg-000000.parquet", "seg-000001.parquet"]
    assert pq.read_table(tmp_path / "trace" / CAUSES.name)["seq"].to_pylist() == list(range(1, 130))
    assert not (tmp_path / "trace" / JOURNAL).exists()


def test_a_full_segment_has_the_same_rows_whenever_the_rows_before_it_were_saved(tmp_path):
    for folder, steps in (("a", (1, 40, 250)), ("b", (1, 90, 120, 199, 250))):
        writer = SegmentWriter(tmp_path / folder)
        for begin, end in pairwise(steps):
            writer.write(causes(begin, end))
            writer.save()
    first, second = (tmp_path / folder / "trace" / CAUSES.name / "seg-000001.parquet" for folder in "ab")

    assert first.read_bytes() == second.read_bytes()
    assert seqs(tmp_path / "a") == seqs(tmp_path / "b") == list(range(1, 250))


def held(seq, value):
    return (seq, seq * 10, "n", "broker", 1, "route", "t", value, "", "", 0)


def beliefs(begin, end, chars):
    return batch_of(BELIEFS, [held(seq, "x" * chars) for seq in range(begin, end)])


@pytest.mark.parametrize("step", [1, 7, 60])
def test_long_beliefs_end_a_segment_sooner_and_at_the_same_row_however_they_came(tmp_path, monkeypatch, step):
    monkeypatch.setattr(segments, "SEGMENT_CHARS", 100)
    writer = SegmentWriter(tmp_path)
    for begin in range(0, 60, step):
        writer.write(beliefs(begin, min(60, begin + step), chars=30))
        writer.save()
    writer.close_segments()

    trace = stored_trace(tmp_path)
    assert [entry.rows for entry in trace.segments[BELIEFS.name]] == [4] * 15
    assert [row["seq"] for part in trace.tables(BELIEFS) for row in part.to_pylist()] == list(range(60))


@given(st.lists(st.lists(st.text(max_size=2), min_size=1), max_size=4))
def test_values_of_beliefs_come_back_from_the_journal_to_their_rows(batches):
    seqs = count()
    rows = [[held(next(seqs), value) for value in values] for values in batches]
    found = read_journal(frame([(BELIEFS.name, batch_of(BELIEFS, batch).packed) for batch in rows]))

    assert not found.damage
    assert found.rows[BELIEFS.name] == list(chain.from_iterable(rows))


def test_a_journal_has_a_value_once_that_many_nodes_believe(tmp_path):
    long = "x" * 10_000
    writer = SegmentWriter(tmp_path)
    rows = [held(seq, f"{long}{seq % 3}") for seq in range(130)]
    journal = tmp_path / "trace" / JOURNAL
    for half in (rows[:65], rows[65:]):
        writer.write(batch_of(BELIEFS, half))
        writer.save()
        assert journal.stat().st_size < 5 * len(long)

    waiting = stored_trace(tmp_path).waiting[BELIEFS.name]
    assert waiting == rows[100:]  # the others are in a segment


def test_rows_of_a_slow_table_stay_in_the_journal_when_another_table_closes_a_segment(tmp_path):
    writer = SegmentWriter(tmp_path)
    writer.write(lives(1, 2))
    writer.write(causes(3, 103))
    writer.write(lives(103))
    writer.save()
    trace = stored_trace(tmp_path)

    assert [row[0] for row in trace.waiting[LIFECYCLE.name]] == [1, 2, 103]
    assert trace.waiting[CAUSES.name] == []
    assert seqs(tmp_path) == list(range(1, 104))


def test_the_index_describes_each_segment(tmp_path):
    names = {"127.1.1.1": "ns-1"}
    writer = SegmentWriter(tmp_path, {"seed": 7, "addresses": dict(names)}, names=names)
    names["shop@1"] = "shop-1"
    writer.write(causes(1, 101))
    writer.save()
    lines = [json.loads(line) for line in (tmp_path / "trace" / INDEX).read_text().splitlines()]
    trace = stored_trace(tmp_path)

    assert [sorted(line) for line in lines[:2]] == [["addresses", "seal", "seed"], ["addresses", "seal"]]
    assert trace.head == {"seed": 7, "addresses": {"127.1.1.1": "ns-1", "shop@1": "shop-1"}}
    (entry,) = trace.segments[CAUSES.name]
    assert (entry.file, entry.rows, entry.first_seq, entry.last_seq, entry.t_ns) == (
        "causes/seg-000000.parquet", 100, 1, 100, 1_000
    )  # fmt: skip
    assert trace.check() == ()


class Watching(RunFiles):
    """Reads the trace before each operation that changes it, as a reader in another process would."""

    def __init__(self, run):
        self.run = run
        self.seen = []

    def _look(self):
        if (self.run / "trace" / INDEX).exists():
            found = seqs(self.run)
            assert found == list(range(1, len(found) + 1))
            assert stored_trace(self.run).check() == ()
            self.seen.append(len(found))

    def create(self, path, content):
        self._look()
        super().create(path, content)

    def append(self, path, content):
        self._look()
        super().append(path, content)

    def rename(self, path, target):
        self._look()
        super().rename(path, target)


def test_a_kill_between_any_two_operations_leaves_all_rows_up_to_some_seq(tmp_path):
    files = Watching(tmp_path)
    writer = SegmentWriter(tmp_path, {}, files)
    seq = 1
    for length in (40, 70, 1, 130, 9):
        writer.write(causes(seq, seq + length))
        writer.write(lives(seq + length))
        seq += length + 1
        writer.save()
    writer.close_segments()
    files._look()

    assert files.seen == sorted(files.seen), "what was there stays there"
    assert files.seen[-1] == seq - 1
    assert len(files.seen) > 20


@pytest.mark.parametrize("cut_bytes", [1, 20, 60, 500])
def test_what_a_kill_has_cut_off_at_the_end_is_ignored(tmp_path, cut_bytes):
    writer = SegmentWriter(tmp_path)
    for begin in (1, 41):
        writer.write(causes(begin, begin + 40))
        writer.save()
    for name in (JOURNAL, INDEX):
        path = tmp_path / "trace" / name
        whole = path.read_bytes()
        if name == INDEX:
            path.write_bytes(whole + b'{"table": "causes", "file": "seg')
        else:
            path.write_bytes(whole[:-cut_bytes])
    trace = stored_trace(tmp_path)

    assert seqs(tmp_path) == list(range(1, 41))
    assert trace.damages == ()


@pytest.mark.parametrize("place", range(40, 1_000, 60))
def test_changed_bytes_in_the_journal_are_damage(tmp_path, place):
    writer = SegmentWriter(tmp_path)
    writer.write(causes(1, 90))
    writer.save()
    path = tmp_path / "trace" / JOURNAL
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)

    (damage,) = stored_trace(tmp_path).damages
    assert damage.startswith(f"{path} is damaged: the frame at byte ")


def test_a_segment_that_cannot_be_written_ends_all_writing_and_leaves_nothing_half_written(tmp_path):
    class Full(RunFiles):
        def create(self, path, content):
            if path.name.startswith(".seg"):
                super().create(path, content[:10])
                raise OSError(28, "No space left on device")
            super().create(path, content)

    writer = SegmentWriter(tmp_path, {}, Full())
    writer.write(causes(1, 101))
    with pytest.raises(OSError, match="No space left"):
        writer.save()
    assert names(tmp_path) == []
    writer.write(causes(101, 111))
    writer.save()

    assert seqs(tmp_path) == list(range(1, 101))
    with pytest.raises(OSError, match="No space left"):
        writer.close_segments()


def test_what_was_saved_survives_the_death_of_the_emulator(tmp_path):
    root = Path(segments.__file__).parents[2]
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path)], check=False, env={**os.environ, "PYTHONPATH": str(root)}
    )

    assert died.returncode == 9
    assert pq.read_table(tmp_path / "trace" / CAUSES.name)["seq"].to_pylist() == list(range(200))
