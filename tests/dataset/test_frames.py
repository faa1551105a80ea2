"""What a run directory must hold, and what is read from it."""

from analysis.trace_rows import SECOND, HandMadeTrace, killed_run, write_run
from emulator.dataset.frames import read_frames
from emulator.trace.run_directory import open_run


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


def test_the_rows_of_a_killed_run_that_are_in_no_segment_are_read_too(spark, tmp_path):
    trace = HandMadeTrace()
    for second in range(5):
        trace.at(second).life("a", "started")
    run = open_run(killed_run(trace, tmp_path / "r", closed=3))
    frames = read_frames(spark, [run])
    assert [row.seq for row in frames.lifecycle.orderBy("seq").collect()] == [1, 2, 3, 4, 5]
    assert [tuple(row) for row in frames.runs.collect()] == [("r", 4 * SECOND)]


def test_two_runs_are_read_side_by_side(spark, tmp_path):
    runs = [open_run(write_run(HandMadeTrace().life("a", "started"), tmp_path / name, 1)) for name in ("r1", "r2")]
    frames = read_frames(spark, runs)
    assert sorted((row.run, row.node) for row in frames.lifecycle.collect()) == [("r1", "a"), ("r2", "a")]


def test_many_runs_are_one_read_and_a_name_of_a_run_may_hold_anything_that_a_path_may(spark, tmp_path):
    names = ["plain", "two words", "100 %", "a+b", "k=v", "é"]
    runs = [open_run(write_run(HandMadeTrace().life("a", "started"), tmp_path / name, 1)) for name in names]
    frame = read_frames(spark, runs).lifecycle
    assert sorted(row.run for row in frame.collect()) == sorted(names)
    assert frame._jdf.queryExecution().optimizedPlan().toString().count("Relation") == 1
