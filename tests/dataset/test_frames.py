"""The tables of one run as Spark frames, whole, killed or without rows."""

from analysis.trace_rows import SECOND, HandMadeTrace, killed_run, write_run
from emulator.dataset.frames import TraceFrames
from emulator.trace.run_directory import open_run


def test_all_segments_are_read(spark, tmp_path):
    trace = HandMadeTrace()
    for second in range(5):
        trace.at(second).life("a", "started")
    run = open_run(write_run(trace, tmp_path / "it's run 1", 9.5, segment_rows=2))
    (run.path / "trace" / "lifecycle" / ".seg-000009.parquet").write_bytes(b"half a segment")
    rows = TraceFrames(run, spark).lifecycle.orderBy("seq").collect()
    assert [(row.seq, row.t_ns, row.event) for row in rows] == [
        (second + 1, second * SECOND, "started") for second in range(5)
    ]


def test_a_table_that_was_never_written_is_empty(spark, tmp_path):
    frames = TraceFrames(open_run(write_run(HandMadeTrace(), tmp_path / "r", 1)), spark)
    assert frames.faults.collect() == []
    assert frames.faults.columns[:2] == ["seq", "t_ns"]


def test_the_rows_of_a_killed_run_that_are_in_no_segment_are_read_too(spark, tmp_path):
    trace = HandMadeTrace()
    for second in range(5):
        trace.at(second).life("a", "started")
    frames = TraceFrames(open_run(killed_run(trace, tmp_path / "r", closed=3)), spark)
    assert [row.seq for row in frames.lifecycle.orderBy("seq").collect()] == [1, 2, 3, 4, 5]
