"""RocketMQ's end-to-end tests of its 5.x clients, compiled from a checkout and run next to an emulated proxy."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from guests.integration_suite import TestResult, results_in

SHIM = Path(__file__).parent / "e2e"
_CLUSTER = ("cluster", "CLUSTER_NAME")
"""Where the Java and the Go suite find the name of the cluster."""
_BUILD_WITHIN_S = 900
_CLIENT = "rocketmq-client-java-*.jar"
"""It has the gRPC messages under names of its own; the jar with the same classes must come after it."""
_LOMBOK_CLASS = Path("main") / "java" / "org" / "apache" / "rocketmq" / "client" / "SimpleConsumerThread.java"
_LOGGER = "private static final org.slf4j.Logger log = org.slf4j.LoggerFactory.getLogger(SimpleConsumerThread.class);"


class DependenciesMissingError(Exception):
    """Maven or Go could not get what the suite needs."""


def output_of(command: Sequence[str], folder: Path, within_s: float, *, project: Path) -> str:
    """Run a program of tests with a cluster of its own, and return what it printed.

    Args:
        command: the program and its words; it finds the cluster in the variables that `rmqemu up --exec` sets.
        folder: of the run.
        within_s: longest time; what was printed by then is returned.
        project: the directory in which the program runs.
    """
    up = [sys.executable, "-m", "emulator.cli", "up", str(SHIM / "cluster.toml"), "--runs", str(folder / "runs")]
    with subprocess.Popen(
        [*up, "--trace", "findings", "--exec", *command],
        cwd=project,
        # With ALL_IP the Java suite would take its addresses from there.
        env={key: value for key, value in os.environ.items() if key != "ALL_IP"}
        | dict.fromkeys(_CLUSTER, "DefaultCluster"),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            return process.communicate(timeout=within_s)[0]
        except subprocess.TimeoutExpired:
            process.terminate()  # `up` ends its command, too
            return process.communicate()[0]


@attrs.frozen
class EndToEndSuite:
    """The compiled tests."""

    project: Path
    """The suite's folder `java/e2e`: it opens its configuration relative to it."""
    class_path: str
    modules: Mapping[str, str]
    """Mapping simple name of a test class -> its full name."""

    def run(self, name: str, folder: Path, within_s: float) -> list[TestResult]:
        """Run a test class in a JVM of its own, with a cluster of its own.

        Args:
            name: simple name of the class.
            folder: of the run and of the client's logs.
            within_s: longest time; the tests that have ended by then are returned.
        """
        java = ["java", f"-Drocketmq.client.logRoot={folder / 'logs'}", f"-Duser.home={folder}", "-cp", self.class_path]
        command = [*java, "shim.RunTests", self.modules[name]]
        return results_in(output_of(command, folder, within_s, project=self.project))


def build_suite(source: Path, folder: Path) -> EndToEndSuite:
    """Compile the tests of a checkout.

    Args:
        source: a checkout of apache/rocketmq-e2e, with its folder `java`.
        folder: where jars and classes go.
    """
    jars = folder / "jars"
    resolve = ["mvn", "-q", "-f", str(source / "java"), "-pl", "e2e", "dependency:copy-dependencies"]
    done = subprocess.run(
        [*resolve, f"-DoutputDirectory={jars}"], check=False, capture_output=True, text=True, timeout=_BUILD_WITHIN_S
    )
    if done.returncode:
        raise DependenciesMissingError((done.stdout or done.stderr).strip().partition("\n")[0])
    sources = _without_lombok(source / "java" / "e2e" / "src", folder / "src")
    listed = sorted([*sources.rglob("*.java"), *SHIM.rglob("*.java")])
    (folder / "sources").write_text("\n".join(map(str, listed)))
    javac = ["javac", "-nowarn", "-proc:none", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(folder / "classes")]
    compiled = subprocess.run(
        [*javac, f"@{folder / 'sources'}"], check=False, capture_output=True, text=True, timeout=_BUILD_WITHIN_S
    )
    assert compiled.returncode == 0, compiled.stderr
    tests = sources / "test" / "java"
    modules = {path.stem: ".".join(path.relative_to(tests).with_suffix("").parts) for path in tests.rglob("*Test.java")}
    entries = [next(jars.glob(_CLIENT)), folder / "classes", sources / "test" / "resources", f"{jars}/*"]
    return EndToEndSuite(source / "java" / "e2e", os.pathsep.join(map(str, entries)), modules)


def _without_lombok(source: Path, copy: Path) -> Path:
    """Copy the sources; the only class with a logger of Lombok gets one of SLF4J: Lombok 1.18.8 fails with Java 17."""
    shutil.copytree(source, copy)
    path = copy / _LOMBOK_CLASS
    text = re.sub(r"(?m)^(import lombok.*|@Slf4j)$", "", path.read_text(encoding="utf-8"))
    path.write_text(re.sub(r"(class SimpleConsumerThread [^{]*\{)", rf"\1 {_LOGGER}", text), encoding="utf-8")
    return copy
