"""Spark sessions that start fast, log little and leave nothing in the working directory."""

import atexit
import functools
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pyspark import SparkContext
from pyspark.sql import SparkSession

from emulator.dataset.java import ensure_java
from emulator.dataset.masters import settings_of

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
}

STDERR = 2
JVM_EXIT_S = 10.0
SMALL_ROWS = 1_000_000
"""Up to this many rows, planning and compiling a query takes longer than running it."""
FOR_SMALL_RUNS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
logger.streams.name = org.apache.spark.sql.execution.streaming
logger.streams.level = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
"""log4j2's: `spark.log.level` would come too late for the first warnings. Why a stream fails is raised in Python."""


def spark_session(
    master: str = "local[2]", *, app_name: str = "rmqemu", settings: dict[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the running session.

    Args:
        master: Spark's master URL: `local[n]`, or that of a cluster whose executors have this package installed.
        app_name: name of the application in Spark.
        settings: Spark settings on top of, or instead of, `QUIET`.

    Raises:
        JavaNotFoundError: there is no Java for Spark.
    """
    ensure_java()
    _scratch()
    # Registered after the removal of the scratch folder, so that it runs before.
    atexit.unregister(_end_java)
    atexit.register(_end_java)
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in (QUIET | _places(master) | (settings or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def command_session(master: str | None = None) -> SparkSession:
    """The session of a command; Ctrl-C ends it together with its JVM.

    Args:
        master: Spark's master URL; None: `local[2]`.

    Raises:
        MasterError: the master is none, or cannot be reached.
    """
    url = master or "local[2]"
    settings = settings_of(url)
    signal.signal(signal.SIGINT, _give_up)
    # On the main thread Spark would install its own handler, which cancels jobs and prints errors.
    with ThreadPoolExecutor(1) as starter:
        return starter.submit(lambda: spark_session(url, settings=settings)).result()


def _give_up(_number: int, _frame: FrameType | None) -> None:
    # py4j logs the interrupted call with its traceback before it raises the interrupt.
    logging.disable(logging.CRITICAL)
    atexit.unregister(_end_java)
    atexit.register(_kill_java)
    raise KeyboardInterrupt


def _end_java() -> None:
    """Stop Spark and wait for its JVM, which would otherwise outlive this process."""
    # A thread that still waits for Java's answer loses its connection, which py4j logs with a traceback, as root.
    logging.disable(logging.CRITICAL)
    context, process = SparkContext._active_spark_context, _java()  # noqa: SLF001 - there is no public access
    if context is not None:
        context.stop()
    if process is not None and process.stdin is not None:
        process.stdin.close()
        try:
            process.wait(JVM_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _kill_java() -> None:
    """Kill the JVM."""
    # Python workers would print errors after the one line of the command.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDERR)
    process = _java()
    if process is not None:
        process.kill()
        process.wait()


def _java() -> "subprocess.Popen[bytes] | None":
    return getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - as above


def session_for(spark: SparkSession, rows: int) -> SparkSession:
    """A session of the same application, configured for this many rows; the given one is not changed."""
    if rows > SMALL_ROWS:
        return spark
    small = spark.newSession()
    for key, value in FOR_SMALL_RUNS.items():
        small.conf.set(key, value)
    return small


def _places(master: str) -> dict[str, str]:
    scratch = _scratch()
    log_settings = scratch / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS)
    places = {
        # Analyses are short: the optimising compiler would cost more than it saves.
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.jars.ivy": str(scratch / "ivy"),
        "spark.local.dir": str(scratch / "local"),
    }
    if master.startswith("local"):
        # Python workers import this package from where the driver did, installed or not.
        places["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).parents[2])
    return places


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rmqemu-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def notebook_session() -> SparkSession:
    """As `spark_session`, for notebooks: the JVM prints nothing, since its errors are raised in Python anyway.

    Raises:
        JavaNotFoundError: there is no Java for Spark.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001 - the only way to tell whether Java runs
        return spark_session()
    with _children_print_nothing():
        return spark_session()


@contextmanager
def _children_print_nothing() -> Iterator[None]:
    before, nothing = os.dup(STDERR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDERR)
    try:
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)
        os.close(nothing)
