"""An archive of the classes of Spark, from which its JVM starts in half the CPU time (Java's AppCDS).

It belongs to one Java, one pyspark and its jars; Java itself checks that, and ignores an archive that does not fit.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pyspark

from emulator.base.errors import UserError
from emulator.dataset.java import ensure_java, is_packaged, real_java
from emulator.dataset.settings import PACKAGE_PARENT, cache_folder

ROOM_BYTES_MIN = 1 << 30
"""Free bytes without which no archive is made; it takes 200 MB, and its making as many again."""
ARCHIVE = "RMQEMU_SPARK_ARCHIVE"
"""Environment variable: with `off`, commands make no archive; machines for continuous integration never do."""
TRAINING_MAX_S = 300.0
_SUFFIX, _BASE, _NEW = ".jsa", ".base", ".new"
_OTHERS_MAX = 2
"""How many archives of other Javas or pysparks stay."""
_LOWEST_PRIORITY = 19
# The virtual machine warns about an archive on standard output.
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")


class ArchiveError(UserError):
    """The archive cannot be made; the text says why in one line."""


def archive_path(home: Path) -> Path:
    """Where the archive of a Java and this pyspark is; it need not exist.

    Args:
        home: of the Java, from `ensure_java`.
    """
    java = real_java(home)
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    key = [str(java), *_signature(java), pyspark.__version__, *(word for jar in jars for word in _signature(jar))]
    return cache_folder() / f"classes-{sha256(chr(0).join(key).encode()).hexdigest()[:16]}{_SUFFIX}"


def _signature(path: Path) -> tuple[str, str, str]:
    found = path.stat()
    return path.name, str(found.st_size), str(found.st_mtime_ns)


def archive_options(home: Path) -> Sequence[str]:
    """Options of a JVM that starts from the archive; none if there is no archive."""
    try:
        path = archive_path(home)
        return use_options(path) if path.stat().st_size else ()
    except OSError:
        return ()


def use_options(path: Path) -> Sequence[str]:
    """Options of a JVM that starts from an archive."""
    return () if " " in str(path) else (f"-XX:SharedArchiveFile={path}", "-Xshare:auto", *_SILENT)


def make_archive() -> Path:
    """Train a JVM with typical queries, and write the archive of the classes that it used.

    Returns:
        The archive; one that was there is replaced.

    Raises:
        ArchiveError: there is no room, or Java makes none.
        JavaNotFoundError: there is no Java for Spark.
        OSError: the folder cannot be written.
    """
    home = ensure_java()
    path = archive_path(home)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if " " in str(path):
        raise ArchiveError(f"{path}: Java's options cannot name a file with a space; set XDG_CACHE_HOME")
    free = shutil.disk_usage(path.parent).free
    if free < ROOM_BYTES_MIN:
        raise ArchiveError(f"{path.parent} has {free >> 20} MB left: expected {ROOM_BYTES_MIN >> 20} MB for an archive")
    with (path.parent / "archive.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveError(f"another process makes an archive in {path.parent} now") from None
        _remove_old(path)
        new = path.with_suffix(_NEW)
        _train([*_base(real_java(home), path), f"-XX:ArchiveClassesAtExit={new}", *_SILENT])
        if not new.exists():
            raise ArchiveError(f"{real_java(home)} makes no archive of classes")
        new.replace(path)
    return path


def _remove_old(path: Path) -> None:
    """Archives of Javas and pysparks that were replaced long ago, and what was not finished."""
    others = [other for other in path.parent.glob(f"*{_SUFFIX}") if other != path]
    others.sort(key=lambda other: other.stat().st_mtime)
    for old in others[: max(0, len(others) - _OTHERS_MAX)]:
        old.unlink()
        old.with_suffix(_BASE).unlink(missing_ok=True)
    for unfinished in path.parent.glob(f"*{_NEW}"):
        unfinished.unlink()


def _base(java: Path, path: Path) -> Sequence[str]:
    """The option that names an archive of Java's own classes, which is made if this Java came without one."""
    if (java.parents[1] / "lib" / "server" / "classes.jsa").exists():
        return ()
    base = path.with_suffix(_BASE)
    made = subprocess.run(
        [str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"],
        capture_output=True,
        timeout=TRAINING_MAX_S,
        check=False,
    )
    if made.returncode != 0 or not base.exists():
        raise ArchiveError(f"{java} makes no archive of its own classes")
    return (f"-XX:SharedArchiveFile={base}",)


def _train(options: Sequence[str]) -> None:
    command = [sys.executable, "-P", "-m", "emulator.dataset.training", *options]
    try:
        done = subprocess.run(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRAINING_MAX_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ArchiveError(f"Spark has not ended within {TRAINING_MAX_S:g} s") from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines() or ["no output"]
        raise ArchiveError(f"no archive was made: {last[-1]}")


def _environment() -> dict[str, str]:
    """That of a process which imports this package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")])}


def make_archive_later(home: Path) -> None:
    """Start a process of lowest priority that makes the archive, if there is none and there is room.

    Args:
        home: of the Java, from `ensure_java`.
    """
    if os.environ.get(ARCHIVE) == "off" or "CI" in os.environ:
        return
    try:
        path = archive_path(home)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        tried = path.with_name(f"tried-{path.stem}")
        if path.exists() or tried.exists() or shutil.disk_usage(path.parent).free < ROOM_BYTES_MIN:
            return
        tried.touch()  # a Java that makes none is asked once
    except OSError:
        return
    command = [sys.executable, "-P", "-c", "from emulator.dataset.archive import make_archive; make_archive()"]
    environment = _environment()
    if is_packaged(home):
        del environment["JAVA_HOME"]  # it is removed when this process exits
    subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: os.nice(_LOWEST_PRIORITY),  # noqa: PLW1509 - the process is about to end
        cwd=path.parent,
    )
