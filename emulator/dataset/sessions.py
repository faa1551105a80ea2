"""Sessions for commands and notebooks, wherever Spark runs: in this process, on a cluster, or behind Connect."""

import atexit
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from emulator.base.printing import print_line
from emulator.dataset.archive import make_archive_later
from emulator.dataset.connect import address, connect_session, is_connect
from emulator.dataset.failures import raise_errors_only, spark_errors
from emulator.dataset.masters import MasterError, settings_of
from emulator.dataset.object_store import (
    is_in_object_store,
    jars_are_fetched,
    start_settings,
    store_settings,
    store_variables,
)
from emulator.dataset.server import Server, find_server
from emulator.dataset.settings import query_settings
from emulator.dataset.spark import (
    end_on_interrupt,
    import_nothing_from_here,
    running_session,
    spark_session,
)
from emulator.dataset.spark_location import Origin, Where, where_to_run
from emulator.dataset.workers import WORKERS_S, require_same_package, require_workers

UI = "RMQEMU_SPARK_UI"
"""Environment variable: whether sessions have Spark's UI; any text but 0."""
Note = Callable[[str], None]


def print_note(text: str) -> None:
    """Print a line on stderr."""
    print_line(f"rmqemu: {text}", err=True)


def find_where(master: str | None = None, remote: str | None = None, note: Note = print_note) -> Where:
    """Where Spark will run; nothing is started.

    Args:
        master: of option `--master`.
        remote: of option `--remote`.
        note: called with a line about a warm server that does not fit.

    Raises:
        MasterError: a URL is none, or both options were given.
    """
    where = where_to_run(master, remote, os.environ)
    if where.origin is not Origin.DEFAULT:
        return where
    server = find_server()
    if server is not None and (differs := server.differs()):
        note(f"the warm server is not used: {differs}; rmqemu spark stop ends it")
        server = None
    return where_to_run(None, None, os.environ, None if server is None else server.remote)


def open_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    rows: int,
    uri: str | Path | None = None,
    ui: bool = False,
    note: Note = print_note,
) -> SparkSession:
    """Open a session at the place that options, environment or warm server name, else in this process.

    Args:
        master: Spark's master URL.
        remote: URL of a Connect server, `sc://HOST:PORT`.
        rows: about how many there are to read; small data need other settings than large ones.
        uri: of the dataset to read; one in an object store needs further jars and settings.
        ui: whether Spark's UI is started; its URL is noted.
        note: called with lines for the user.

    Raises:
        MasterError: a URL is none, or no Spark answers there.
        JavaNotFoundError: there is no Java for Spark.
        NoConnectError: Connect cannot be used here.
        NoJarsError: the jars for an object store could not be fetched.
        NoRoomError: there is no room for Spark's scratch files.
        WorkersError: a cluster gives no workers, or they lack this package.
        SparkError: Spark does not start.
    """
    raise_errors_only()
    in_store = is_in_object_store(uri)
    where = find_where(master, remote, note)
    if in_store and where.origin is Origin.SERVER:
        note("the warm server is not used: it has no jars for s3a:")
        where = where_to_run(None, None, {})
    wants_ui = ui or os.environ.get(UI, "0") not in ("", "0")
    with spark_errors(where.words):
        if where.remote is not None:
            of_store = store_settings(with_keys=False) if in_store else {}
            session = connect_session(where.remote, {**query_settings(rows), **of_store})
        else:
            session = _classic(str(where.master), rows, in_store=in_store, ui=wants_ui)
        if not where.is_local:
            require_same_package(session, where.words)
    if wants_ui:
        note(_ui(session, where))
    return session


def _classic(master: str, rows: int, *, in_store: bool, ui: bool) -> SparkSession:
    settings = {**settings_of(master), "spark.ui.enabled": str(ui).lower(), **(start_settings() if in_store else {})}
    session = running_session()
    if session is None:
        with jars_are_fetched() if in_store else nullcontext():
            session = spark_session(master, settings=settings, rows=rows)
    running = session.sparkContext.master
    if running != master:
        raise MasterError(f"{master}: a Spark session with {running} runs in this process; stop it before")
    require_workers(session, master, WORKERS_S)
    # One of its own: the settings of an earlier one, for other data, must not stay.
    fitting = session.newSession()
    of_store = store_settings(with_keys=True) if in_store else {}
    for key, value in {**query_settings(rows), **of_store}.items():
        fitting.conf.set(key, value)
    if in_store:
        fitting.sparkContext.environment.update(store_variables())
    return fitting


def open_command_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    rows: int,
    uri: str | Path | None = None,
    ui: bool = False,
) -> SparkSession:
    """As `open_session`, for a command: Ctrl-C ends it together with its JVM, and later commands start faster."""
    end_on_interrupt()
    import_nothing_from_here()
    # On the main thread Spark would install its own handler, which cancels jobs and prints errors.
    with ThreadPoolExecutor(1) as starter:
        session = starter.submit(lambda: open_session(master, remote, rows=rows, uri=uri, ui=ui)).result()
    if not is_connect(session):
        atexit.register(make_archive_later, Path(os.environ["JAVA_HOME"]))
    return session


def describe(session: SparkSession) -> str:
    """Which Spark a session uses, in words: `Spark 4.3.0, local[2]` or `Spark Connect 4.3.0, sc://localhost:15002`."""
    if is_connect(session):
        return f"Spark Connect {session.version}, {address(session)}"
    return f"Spark {session.version}, {session.sparkContext.master}"


def _ui(session: SparkSession, where: Where) -> str:
    if not is_connect(session):
        return f"Spark UI: {session.sparkContext.uiWebUrl or 'none, since a session without it runs in this process'}"
    server: Server | None = find_server() if where.origin is Origin.SERVER else None
    if server is None:
        return "Spark UI: that of the Connect server"
    return f"Spark UI: {server.ui or 'none; rmqemu spark start --ui starts a server with it'}"
