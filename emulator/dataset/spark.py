"""Classic Spark sessions, whose driver is a JVM of this process: they start fast and leave nothing behind."""

import atexit
import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from emulator.dataset.archive import archive_options
from emulator.dataset.guarding import guarded_environment, guarding_settings, secret_settings
from emulator.dataset.java import ensure_java
from emulator.dataset.settings import (
    LOG,
    PACKAGE_PARENT,
    QUIET,
    SMALL_ROWS,
    java_options,
    places,
    query_settings,
    scratch,
    sockets_folder,
    temporary_folder,
)

STDERR = 2
JVM_EXIT_S = 10.0
_UI = "spark.ui.enabled"
_CONNECT_MODE, _REMOTE = "SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"


def spark_session(
    master: str = "local[2]",
    *,
    app_name: str = "rmqemu",
    settings: dict[str, str] | None = None,
    rows: int = 0,
    silent: bool = True,
) -> SparkSession:
    """Start Spark, or return the running session.

    Args:
        master: Spark's master URL: `local[n]`, or that of a cluster whose executors have this package installed.
        app_name: name of the application in Spark.
        settings: Spark settings on top of, or instead of, `QUIET`.
        rows: about how many there are to read, for the compiler of a JVM that is started.
        silent: whether a JVM that is started prints nothing, such as warnings about its own modules; its errors are
            raised.

    Raises:
        JavaNotFoundError: there is no Java for Spark.
        NoRoomError: there is no room for Spark's scratch files.
    """
    java = ensure_java()
    scratch()
    # Registered after the removal of the scratch folder, so that it runs before.
    atexit.unregister(end_java)
    atexit.register(end_java)
    chosen = settings or {}
    guards = guarding_settings(master, sockets_folder(scratch()), ui=chosen.get(_UI) == "true")
    ours = QUIET | guards | _of_this_process(master, java, optimises=rows > SMALL_ROWS)
    conf = SparkConf().setMaster(master).setAppName(app_name).setAll(list((ours | chosen).items()))
    starts = SparkContext._gateway is None  # noqa: SLF001 - the only way to know whether Java runs
    with (
        _without_connect(),
        guarded_environment(master) as environment,
        silent_java() if silent and starts else nullcontext(),
    ):
        # What is set before Java runs becomes an argument of it, which other users of the machine read.
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - there is no public way to start it
        builder = SparkSession.builder.config(conf=conf)
        for key, value in secret_settings(master, environment).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    # It would print a traceback of its own when Java ends by itself.
    setattr(session.sparkContext._accumulatorServer, "handle_error", _say_nothing)  # noqa: B010, SLF001 - see above
    return session


def _say_nothing(_request: object, _address: object) -> None:
    """What Java has sent half is of no use; who asked Java gets its error."""


@contextmanager
def _without_connect() -> Iterator[None]:
    """Spark gives a Connect session, whatever its master, if one of two variables is set; it sets the first itself."""
    os.environ.pop(_CONNECT_MODE, None)  # for good: columns are made for the kind of session that was opened last
    remote = os.environ.pop(_REMOTE, None)
    try:
        yield
    finally:
        if remote is not None:
            os.environ[_REMOTE] = remote


def running_session() -> SparkSession | None:
    """The first classic session of this process, unless it was stopped."""
    session = SparkSession._instantiatedSession  # noqa: SLF001 - there is no public access
    return session if session is not None and SparkContext._active_spark_context is not None else None  # noqa: SLF001


def end_on_interrupt() -> None:
    """Let Ctrl-C end this process together with its JVM."""
    signal.signal(signal.SIGINT, _give_up)


def import_nothing_from_here() -> None:
    """Let workers of the session that is opened next import nothing from the working directory, which may be anybody's.

    Sessions of users may have modules there, so this is of commands alone.
    """
    os.environ["PYTHONSAFEPATH"] = "1"


def _give_up(_number: int, _frame: FrameType | None) -> None:
    # py4j logs the interrupted call with its traceback before it raises the interrupt.
    logging.disable(logging.CRITICAL)
    atexit.unregister(end_java)
    atexit.register(_kill_java)
    raise KeyboardInterrupt


def end_java(exit_s: float | None = None) -> None:
    """Stop Spark and wait for its JVM, which would otherwise outlive this process.

    Args:
        exit_s: seconds after which it is killed; None: `JVM_EXIT_S`.
    """
    # A thread that still waits for Java's answer loses its connection, which py4j logs with a traceback, as root.
    logging.disable(logging.CRITICAL)
    context, process = SparkContext._active_spark_context, _java()  # noqa: SLF001 - there is no public access
    if context is not None:
        with suppress(Exception):  # Java has ended by itself, such as without memory, which was said
            context.stop()
    if process is not None and process.stdin is not None:
        process.stdin.close()
        try:
            process.wait(JVM_EXIT_S if exit_s is None else exit_s)
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
    for key, value in query_settings(rows).items():
        small.conf.set(key, value)
    return small


def _of_this_process(master: str, java: Path, *, optimises: bool) -> dict[str, str]:
    folder = scratch()
    options = java_options(folder, archive_options(java), optimises=optimises)
    settings = places(folder) | {"spark.driver.extraJavaOptions": options}
    if master.startswith("local"):
        settings["spark.executorEnv.PYTHONPATH"] = str(PACKAGE_PARENT)
        settings["spark.executor.extraJavaOptions"] = temporary_folder(folder)
    return settings


@contextmanager
def silent_java() -> Iterator[None]:
    """A JVM that starts in the `with` block prints nothing, unless its log is wanted: its errors are raised anyway."""
    if LOG in os.environ:
        yield
        return
    before, nothing = os.dup(STDERR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDERR)
    try:
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)
        os.close(nothing)
