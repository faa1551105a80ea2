"""RocketMQ's own integration tests, compiled with a shim of their base classes and run next to the emulator."""

import os
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import attrs

SHIM = Path(__file__).parent / "integration"
_CLUSTER_CLASSES = Path(__file__).parents[2] / "examples" / "guests" / "java" / "src" / "test" / "java" / "rmqemu"
_BASE = Path("org") / "apache" / "rocketmq" / "test"
_LEFT_OUT = (_BASE / "grpc", _BASE / "autoswitchrole")
"""Folders that are not compiled: a proxy's tests, and one that makes its own controllers."""
_OPEN = "--add-exports=java.base/sun.util.locale=ALL-UNNAMED"
"""One test imports a class of the JVM."""
_BUILD_WITHIN_S = 900
_MARK = "RESULT "


class Outcome(StrEnum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    IGNORED = "ignored"


@attrs.frozen
class TestResult:
    """What became of a test, and the first line of its failure."""

    __test__ = False

    name: str
    outcome: Outcome
    why: str = ""


@attrs.frozen
class IntegrationSuite:
    """The compiled tests."""

    class_path: str
    modules: Mapping[str, str]
    """Mapping simple name of a test class -> its full name."""

    def run(self, name: str, folder: Path, within_s: float) -> list[TestResult]:
        """Run a test class in a JVM of its own, with a cluster of its own.

        Args:
            name: simple name of the class.
            folder: of the client's logs.
            within_s: longest time; the tests that have ended by then are returned.
        """
        properties = {"scenarios": SHIM, "rocketmq.client.logRoot": folder / "logs", "user.home": folder}
        command = ["java", _OPEN, *(f"-D{key}={value}" for key, value in properties.items())]
        command += ["-cp", self.class_path, "shim.Run", self.modules[name]]
        # One test prints a gigabyte of stack traces while it waits for a heartbeat.
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            output = subprocess.run(command, check=False, text=True, timeout=within_s, **streams).stdout
        except subprocess.TimeoutExpired as error:
            output = (error.stdout or b"").decode(errors="replace")
        return results_in(output)


def results_in(output: str) -> list[TestResult]:
    """Read the lines `RESULT class method outcome milliseconds why` of a runner's output."""
    fields = [[*line.split(" ", 5), ""][:6] for line in output.splitlines() if line.startswith(_MARK)]
    return [TestResult(name, Outcome(outcome), why) for _, _, name, outcome, _, why in fields]


def build_suite(source: Path, folder: Path) -> IntegrationSuite:
    """Compile the tests of a release with the shim.

    Args:
        source: the unpacked release, with its folder `test`.
        folder: where the classes go.
    """
    found = folder / "classpath"
    resolve = ["mvn", "-q", "-f", str(SHIM), "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
    subprocess.run(resolve, check=True, capture_output=True, timeout=_BUILD_WITHIN_S)
    class_path = found.read_text().strip()
    classes = folder / "classes"
    sources = _sources(source / "test" / "src")
    listed = folder / "sources"
    listed.write_text("\n".join(map(str, sources.values())))
    javac = ["javac", "-nowarn", "-proc:none", "-encoding", "UTF-8", _OPEN, "-d", str(classes), "-cp", class_path]
    done = subprocess.run([*javac, f"@{listed}"], check=False, capture_output=True, text=True, timeout=_BUILD_WITHIN_S)
    assert done.returncode == 0, done.stderr
    modules = {path.stem: ".".join(path.with_suffix("").parts) for path in sources if path.stem.endswith("IT")}
    resources = source / "test" / "src" / "test" / "resources"
    return IntegrationSuite(os.pathsep.join(map(str, (classes, resources, class_path))), modules)


def _sources(release: Path) -> dict[Path, Path]:
    """Mapping path of a class within its package -> file; the shim's classes take the place of the release's."""
    found: dict[Path, Path] = {}
    for root in (release / "main" / "java", release / "test" / "java", SHIM / "java"):
        files = {path.relative_to(root): path for path in sorted(root.rglob("*.java"))}
        found |= {name: path for name, path in files.items() if not any(out in name.parents for out in _LEFT_OUT)}
    return found | {Path("rmqemu") / path.name: path for path in sorted(_CLUSTER_CLASSES.glob("C*.java"))}


@attrs.frozen
class RecordedClass:
    """What a test class of RocketMQ gives, as a file `results.toml` has it."""

    name: str
    folder: str
    seconds: int = 0
    """Length of the run, with the start of its cluster."""
    passed: tuple[str, ...] = ()
    failed: Mapping[str, str] = attrs.field(factory=dict)
    """Mapping test -> why it does not pass."""
    ignored: tuple[str, ...] = ()
    """Tests that the release ignores."""
    why_not: str = ""
    """Why the class is not run; empty: it is."""

    @property
    def row(self) -> str:
        """Its row of the table in the README."""
        reasons = [self.why_not] if self.why_not else [f"`{test}`: {why}" for test, why in self.failed.items()]
        if self.ignored:
            reasons.append(f"ignored by RocketMQ: {', '.join(f'`{test}`' for test in self.ignored)}")
        total = len(self.passed) + len(self.failed)
        counts = f"{len(self.passed)} of {total} | {self.seconds}" if not self.why_not else "not run |"
        return f"| `{self.folder}` | `{self.name}` | {counts} | {'; '.join(reasons)} |"


def recorded_classes(shim: Path = SHIM) -> Iterator[RecordedClass]:
    """All recorded test classes of a suite, in the order of the table."""
    for table in tomllib.loads((shim / "results.toml").read_text(encoding="utf-8"))["class"]:
        lists = {key: tuple(table[key]) for key in ("passed", "ignored") if key in table}
        yield RecordedClass(**table | lists)
