"""Segments on disk: whole or invisible, also when the disk is full or the emulator dies."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from emulator.trace import segments
from emulator.trace.schema import CAUSES
from emulator.trace.segments import SegmentWriter

DIES = """
import os, sys
from pathlib import Path
from emulator.trace import segments
from emulator.trace.schema import CAUSES
segments.SEGMENT_ROWS = 100
writer = segments.SegmentWriter(Path(sys.argv[1]))
for begin in range(0, 250, 50):
    writer.write(CAUSES, [(seq, 0, "n", "timer") for seq in range(begin, begin + 50)])
os._exit(9)
"""


def rows(begin, end):
    return [(seq, seq * 10, "node", "timer") for seq in range(begin, end)]


def names(directory):
    return sorted(path.name for path in (directory / "trace" / CAUSES.name).iterdir())


def test_rows_wait_until_they_fill_a_segment(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 100)
    writer = SegmentWriter(tmp_path)
    writer.write(CAUSES, rows(0, 60))
    assert names(tmp_path) == []
    writer.write(CAUSES, rows(60, 120))
    assert names(tmp_path) == ["seg-000000.parquet"]
    writer.write(CAUSES, rows(120, 130))
    writer.close_segments()
    writer.close_segments()

    assert names(tmp_path) == ["seg-000000.parquet", "seg-000001.parquet"]
    assert pq.read_table(tmp_path / "trace" / CAUSES.name)["seq"].to_pylist() == list(range(130))


def test_a_segment_is_hidden_until_it_is_whole(tmp_path, monkeypatch):
    seen = []
    replace = Path.replace

    def watched(self, target):
        seen.append((self.name, names(tmp_path), pq.read_table(self).num_rows))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    writer = SegmentWriter(tmp_path)
    writer.write(CAUSES, rows(0, 10))
    writer.close_segments()

    assert seen == [(".seg-000000.tmp", [".seg-000000.tmp"], 10)]
    assert names(tmp_path) == ["seg-000000.parquet"]


def test_a_segment_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_args, **_options):
        (tmp_path / "trace" / CAUSES.name / ".seg-000000.tmp").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    writer = SegmentWriter(tmp_path)
    writer.write(CAUSES, rows(0, 10))
    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(OSError, match="No space left"):
            writer.close_segments()
    assert names(tmp_path) == []

    writer.close_segments()
    assert pq.read_table(tmp_path / "trace" / CAUSES.name).num_rows == 10


def test_closed_segments_survive_the_death_of_the_emulator(tmp_path):
    root = Path(segments.__file__).parents[2]
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path)], check=False, env={**os.environ, "PYTHONPATH": str(root)}
    )

    assert died.returncode == 9
    assert pq.read_table(tmp_path / "trace" / CAUSES.name)["seq"].to_pylist() == list(range(200))
