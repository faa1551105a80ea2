"""The trace of a run: its schema, the recorder, Parquet segments, and the run directory.

May import `spec`, `time` and `base`.
"""
