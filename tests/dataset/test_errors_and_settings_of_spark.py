"""Errors of Spark as one line, without the stack of Java, and settings for small and large data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException

from emulator.base.errors import UserError
from emulator.dataset import settings
from emulator.dataset.failures import SparkError, gist, spark_errors

OF_A_WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 4207, in invoke_udf
    func, profiler, deserializer, serializer = read_udfs(
  File "/app/sweep.py", line 3, in sweep
    raise ValueError("row 7 is odd")
{error}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""
OF_JAVA = """\
An error occurred while calling o52.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)
Caused by: java.lang.RuntimeException: file:/tmp/bad.parquet is not a Parquet file
\tat org.apache.parquet.hadoop.ParquetFileReader.readFooter(ParquetFileReader.java:565)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OF_A_WORKER.format(error="ValueError: row 7 is odd"), "a worker failed: ValueError: row 7 is odd"),
        (OF_A_WORKER.format(error="pkg.errors.OddError: row 7"), "a worker failed: OddError: row 7"),
        (OF_A_WORKER.format(error="emulator.base.errors.UserError: runs/a is no run"), "runs/a is no run"),
        (
            OF_A_WORKER.format(error="ModuleNotFoundError: No module named 'pyarrow'"),
            "workers run a Python without rocketmq-emulator: set PYSPARK_PYTHON to one that has it",
        ),
        (
            OF_A_WORKER.format(error="ModuleNotFoundError: No module named 'pandas.odd'"),
            "a worker failed: ModuleNotFoundError: No module named 'pandas.odd'",
        ),
        (OF_JAVA, "RuntimeException: file:/tmp/bad.parquet is not a Parquet file"),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/none. SQLSTATE: 42K03",
            "Path does not exist: file:/none.",
        ),
        (
            ": org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down\n\tat x",
            "it has ended while it worked, or does not answer any more",
        ),
        (
            'of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "failed to connect"',
            "it has ended while it worked, or does not answer any more",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Java has ended while it started; RMQEMU_SPARK_LOG=warn shows why",
        ),
        (
            "Caused by: java.lang.OutOfMemoryError: Java heap space",
            "Java has no memory left: give it more with SPARK_DRIVER_MEMORY or spark.executor.memory",
        ),
        ("", "it failed without a reason"),
    ],
)
def test_the_line_that_says_most_is_left(text, line):
    assert gist(text) == line


def test_a_full_disk_is_named():
    line = gist("Caused by: java.io.IOException: No space left on device\n\tat java.io.FileOutputStream.write")

    assert line.startswith(f"{settings.scratch()} is full: Spark needs 100 MB or more for scratch files")
    assert line.endswith("set TMPDIR")


@pytest.mark.parametrize(
    "error",
    [AnalysisException("odd"), PythonException("odd"), Py4JError("odd"), Py4JNetworkError("odd"), ConnectionError()],
)
def test_errors_of_spark_are_mistakes_that_a_user_can_read(error):
    with pytest.raises(SparkError, match=r"^local\[2\]: ") as raised, spark_errors("local[2]"):
        raise error

    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [UserError("mine"), KeyError("bug"), KeyboardInterrupt()])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised, spark_errors():
        raise error

    assert raised.value is error


def test_a_folder_without_room_is_refused_before_spark_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "SCRATCH_BYTES_MIN", 1 << 62)

    with pytest.raises(settings.NoRoomError, match=rf"^{tmp_path} has \d+ MB left: Spark needs \d+ MB or more for"):
        settings.require_room(tmp_path)


def test_an_unknown_level_of_the_log_gets_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv(settings.LOG, "verbose")

    with pytest.raises(UserError, match=r"^RMQEMU_SPARK_LOG='verbose': expected one of off, fatal, error, warn, "):
        settings.java_options(tmp_path)


@pytest.mark.parametrize(
    ("rows", "partitions", "compiles"),
    [
        (0, "1", False),
        (1_000_000, "1", False),
        (1_000_001, "4", True),
        (105_000_000, "42", True),
        (10**12, "200", True),
    ],
)
def test_more_rows_get_more_partitions_and_compiled_queries(rows, partitions, compiles):
    chosen = settings.query_settings(rows)

    assert chosen["spark.sql.shuffle.partitions"] == partitions
    assert ("spark.sql.codegen.wholeStage" not in chosen) == compiles


def test_java_optimises_where_it_pays_off(tmp_path):
    small, large = (settings.java_options(tmp_path, ("-Xshare:auto",), optimises=long) for long in (False, True))

    assert "-XX:TieredStopAtLevel=1" in small.split()
    assert "-XX:Tier4InvocationThreshold=50000" in large.split()
    assert all("-Xshare:auto" in options.split() for options in (small, large))
    assert (tmp_path / "log4j2.properties").read_text().startswith("rootLogger.level = off\n")


HOLDS_A_FOLDER = """
import sys
from emulator.dataset.settings import scratch

print(scratch(), flush=True)
sys.stdin.read()
"""


def test_scratch_folders_of_killed_processes_are_removed_by_the_next_one_and_no_others(tmp_path):
    foreign = tmp_path / "rmqemu-spark-foreign"
    foreign.mkdir()
    mine = tmp_path / "mine"
    (mine / "work").mkdir(parents=True)
    (mine / "lock").touch()
    (tmp_path / "rmqemu-spark-link").symlink_to(mine)

    def holder():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS_A_FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            text=True,
        )
        return process, Path(process.stdout.readline().strip())

    killed, left = holder()
    killed.kill()
    killed.communicate()
    used, folder = holder()
    assert left.parent == folder.parent == tmp_path
    assert not left.exists()
    third, _ = holder()
    assert folder.is_dir()
    for process in (used, third):
        process.communicate()

    assert foreign.is_dir()
    assert (mine / "work").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "rmqemu-spark-foreign", "rmqemu-spark-link"]
