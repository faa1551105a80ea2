"""What a run directory must hold, and what is read from it."""

import json

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, write_run
from emulator.analysis.frames import read_frames, segment_rows
from emulator.trace.run_directory import NotARunError, open_run


def test_all_segments_are_read_and_rows_bear_the_name_of_their_run(spark, tmp_path):
    trace = HandMadeTrace()
    for second in range(5):
        trace.at(second).life("a", "started")
    run = open_run(write_run(trace, tmp_path / "it's run 1", 9.5, segment_rows=2))
    (run.path / "trace" / "lifecycle" / ".seg-000009.parquet").write_bytes(b"half a segment")
    frames = read_frames(spark, [run])
    rows = frames.lifecycle.orderBy("seq").collect()
    assert [(row.run, row.seq, row.t_ns, row.event) for row in rows] == [
        ("it's run 1", second + 1, second * SECOND, "started") for second in range(5)
    ]
    assert [tuple(row) for row in frames.runs.collect()] == [("it's run 1", 9_500_000_000)]


def test_a_table_that_was_never_written_is_empty(spark, tmp_path):
    frames = read_frames(spark, [open_run(write_run(HandMadeTrace(), tmp_path / "r", 1))])
    assert frames.faults.collect() == []
    assert frames.faults.columns[:3] == ["run", "seq", "t_ns"]


def test_two_runs_are_read_side_by_side(spark, tmp_path):
    runs = [open_run(write_run(HandMadeTrace().life("a", "started"), tmp_path / name, 1)) for name in ("r1", "r2")]
    frames = read_frames(spark, runs)
    assert sorted((row.run, row.node) for row in frames.lifecycle.collect()) == [("r1", "a"), ("r2", "a")]


def test_a_damaged_segment_is_named(tmp_path):
    run = open_run(write_run(HandMadeTrace().life("a", "started"), tmp_path / "r", 1))
    assert segment_rows(run)["lifecycle"] == 1
    segment = run.path / "trace" / "lifecycle" / "seg-000000.parquet"
    segment.write_bytes(segment.read_bytes()[:200])
    with pytest.raises(NotARunError, match=r"lifecycle/seg-000000\.parquet is no whole segment: "):
        segment_rows(run)


def test_a_directory_without_a_manifest_is_not_a_run(tmp_path):
    with pytest.raises(NotARunError, match=r"^.* is not a run: it has no manifest\.json$"):
        open_run(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_a_broken_manifest_is_named(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(NotARunError, match=r"not a readable run: manifest\.json") as caught:
        open_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_another_schema_version_is_refused(tmp_path):
    write_run(HandMadeTrace(), tmp_path, 1, schema_version=99)
    with pytest.raises(NotARunError, match="has trace schema version 99, this program reads 3"):
        open_run(tmp_path)


def test_a_manifest_that_lacks_something_says_what(tmp_path):
    write_run(HandMadeTrace(), tmp_path, 1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["seed"]
    del manifest["digest"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NotARunError, match=r"manifest\.json lacks digest, seed$"):
        open_run(tmp_path)
