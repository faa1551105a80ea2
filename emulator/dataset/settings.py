"""Settings of Spark: quiet, with all files in a scratch folder, and chosen by how many rows there are to read."""

import atexit
import fcntl
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from emulator.base.errors import UserError
from nodes.fields import quoted

PACKAGE_PARENT = Path(__file__).parents[2]
"""Python workers import this package from here, installed or not."""

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Python's own traceback shows the line: to send Java the line of each column is a third of all calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
}

_OF_DATASETS = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "1000"}
"""A table of a dataset is read by the names of its files. To look at more than 32 of them, Spark would start a job for
each table, which takes half a second; without a job, a look at 1,000 files takes a tenth of a second on a disk."""
SMALL_ROWS = 1_000_000
"""Up to this many rows, planning and compiling a query takes longer than running it."""
FOR_SMALL_RUNS = {
    **_OF_DATASETS,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_ROWS_PER_PARTITION = 2_500_000
_PARTITIONS_MIN, _PARTITIONS_MAX = 4, 200

_FAST_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LATE_OPTIMISER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=10000",
    "-XX:Tier4CompileThreshold=100000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Optimises what runs ten times as often as by default. Windows and a sweep over 0.3 and 3 million rows took 11 and
58 CPU s with the fast compiler, 16 and 33 by default, 12 and 28 with the late optimiser."""

LOG = "RMQEMU_SPARK_LOG"
"""Environment variable: the level of Spark's own log, such as warn; without it, Spark logs nothing."""
_LOG_LEVELS = ("off", "fatal", "error", "warn", "info", "debug", "trace")
_LOG_SETTINGS = """\
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = {level}
logger.connect.name = org.apache.spark.sql.connect.utils.ErrorUtils
logger.connect.level = off
logger.network.name = org.apache.spark.network
logger.network.level = {network}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
"""log4j2's: `spark.log.level` would come too late for the first warnings. Python raises the errors of Spark. About each
message of a stranger there would be a stack of 3 kB, and 20,000 messages come in three seconds."""

SCRATCH_BYTES_MIN = 100 << 20
"""Spark starts with less, and fails at its first shuffle."""
_PREFIX, _LOCK, _NEW_LOCK = "rmqemu-spark-", "lock", "lock.new"
_SOCKETS, _SHORT = "sockets", "/tmp"  # noqa: S108 - a folder of its own is made there
_SOCKET_PATH_BYTES_MAX = 103
"""Of BSDs; Linux has four more."""
_SOCKET_NAME_BYTES = len("/.12345678-1234-1234-1234-123456789012.sock")


class NoRoomError(UserError):
    """The folder for Spark's scratch files has no room; the text names it."""


def query_settings(rows: int) -> Mapping[str, str]:
    """Settings that suit this many rows; a session that runs takes them, too, classic or Connect."""
    if rows <= SMALL_ROWS:
        return FOR_SMALL_RUNS
    partitions = max(_PARTITIONS_MIN, min(rows // _ROWS_PER_PARTITION, _PARTITIONS_MAX))
    return {**_OF_DATASETS, "spark.sql.shuffle.partitions": str(partitions)}


def java_options(folder: Path, archive: Sequence[str] = (), *, level: str = "off", optimises: bool = False) -> str:
    """The options of Spark's JVM.

    Args:
        folder: where the settings of its log are written.
        archive: options that name an archive of classes, or make one.
        level: of its log, unless the environment has another one.
        optimises: whether it works long enough for an optimising compiler and a parallel collector to pay off.

    Raises:
        UserError: the level in the environment is none.
    """
    network = os.environ.get(LOG) or "off"
    level = os.environ.get(LOG) or level
    if level not in _LOG_LEVELS:
        raise UserError(f"{LOG}={quoted(level)}: expected one of {', '.join(_LOG_LEVELS)}")
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(_LOG_SETTINGS.format(level=level, network=network))
    compiler = _LATE_OPTIMISER if optimises else _FAST_COMPILER
    # A JVM that is killed leaves nothing elsewhere.
    return " ".join(
        (*compiler, *archive, f"-Dlog4j2.configurationFile={log_settings.as_uri()}", temporary_folder(folder))
    )


def temporary_folder(folder: Path) -> str:
    """The option of a JVM for the folder of its temporary files."""
    return f'"-Djava.io.tmpdir={folder}"'


def places(folder: Path) -> dict[str, str]:
    """Settings that keep Spark's files in a folder."""
    return {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.local.dir": str(folder / "local"),
    }


@functools.cache
def scratch() -> Path:
    """The scratch folder of this process, which is removed at its end; also those of processes that were killed.

    Raises:
        NoRoomError: there is no room for it.
    """
    parent = Path(tempfile.gettempdir())
    for left in sorted(parent.glob(f"{_PREFIX}*")):
        if _is_left(left):
            remove_scratch(left)
    require_room(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # Held until this process ends, however it does; seen by others when it is held.
    lock = os.open(folder / _NEW_LOCK, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / _NEW_LOCK).rename(folder / _LOCK)
    atexit.register(remove_scratch, folder)
    return folder


def _is_left(folder: Path) -> bool:
    """Whether a scratch folder is one of this user whose process has gone."""
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return False
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is in use, or just being made
        return False
    return True


def sockets_folder(folder: Path) -> Path:
    """A folder that only this user can enter, with a name that is short enough for sockets in it.

    Args:
        folder: with scratch files; it is the one, or gets a link to it, which `remove_scratch` follows.
    """
    if len(os.fsencode(folder)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES_MAX:
        return folder
    link = folder / _SOCKETS
    if not link.is_symlink():
        link.symlink_to(tempfile.mkdtemp(prefix="rmqemu-", dir=_SHORT))
    return link.readlink()


def remove_scratch(folder: Path) -> None:
    """Remove a folder with scratch files, and what `sockets_folder` has made for it."""
    link = folder / _SOCKETS
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def require_room(folder: Path) -> None:
    """Refuse a folder that has no room for scratch files.

    Raises:
        NoRoomError: it has too little.
    """
    free = shutil.disk_usage(folder).free
    if free < SCRATCH_BYTES_MIN:
        raise NoRoomError(no_room(str(folder), free))


def no_room(folder: str, free_bytes: int | None = None) -> str:
    """The line about a folder without room."""
    has = "is full" if free_bytes is None else f"has {free_bytes >> 20} MB left"
    return (
        f"{folder} {has}: Spark needs {SCRATCH_BYTES_MIN >> 20} MB or more for scratch files; free some, or set TMPDIR"
    )


def cache_folder() -> Path:
    """The folder of this user for what may be made again; it need not exist."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return base / "rmqemu" / "spark"
