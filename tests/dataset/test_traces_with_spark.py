"""`emulator.traces` with Spark: the same findings, and all rows as frames of Spark."""

import pandas as pd
import pytest

import emulator
from notebook_traces.small_runs import two_consumers, write


@pytest.fixture
def run(tmp_path):
    return write(two_consumers(), tmp_path / "one")


def test_spark_judges_as_this_process_does(spark, run):
    by_spark, here = emulator.traces(run, engine="spark"), emulator.traces(run)

    for name in here.tables():
        pd.testing.assert_frame_equal(by_spark.findings(name), here.findings(name))


def test_all_rows_are_frames_of_spark(spark, run):
    frames = emulator.traces(run).frames(spark)

    assert frames.ownership.count() == 4
    assert {row.run for row in frames.ownership.select("run").distinct().collect()} == {"one"}
