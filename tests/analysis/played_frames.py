"""Clusters that were played in memory, as frames for Spark."""

from analysis.trace_rows import table_frame
from emulator.analysis.frames import Frames
from emulator.trace.schema import TABLES


def frames_of_played(spark, traces):
    """Frames over traces by name of the run; rpc and causes stay empty, no oracle reads them."""
    frames = {}
    for table in TABLES:
        kept = [] if table.name in ("rpc", "causes") else traces.items()
        rows = [(run, *row.values()) for run, trace in kept for row in trace.rows[table.name]]
        frames[table.name] = table_frame(spark, table, rows)
    ends = [(run, round(trace.end_ms * 1e6)) for run, trace in traces.items()]
    return Frames(runs=spark.createDataFrame(ends, "run STRING, end_ns BIGINT"), **frames)
