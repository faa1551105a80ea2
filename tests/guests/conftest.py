"""What is missing on this machine is the reason of a skip."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def need():
    """Skips where a program is not there."""

    def of(*programs: str) -> None:
        missing = [name for name in programs if shutil.which(name) is None]
        if missing:
            pytest.skip(f"{', '.join(missing)} not found on this machine")

    return of


@pytest.fixture
def java_project(tmp_path) -> Path:
    """A copy of the Java examples: what Maven builds is no part of a checkout."""
    project = tmp_path / "java"
    shutil.copytree(
        Path(__file__).parents[2] / "examples" / "guests" / "java", project, ignore=shutil.ignore_patterns("target")
    )
    return project


@pytest.fixture(scope="session")
def class_path(tmp_path_factory, need) -> str:
    """Of RocketMQ's own client and tools."""
    need("mvn", "java")
    found = tmp_path_factory.mktemp("java") / "classpath"
    project = str(Path(__file__).parent / "java")
    build = ["mvn", "-q", "-f", project, "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
    subprocess.run(build, check=True, capture_output=True, timeout=900)
    return found.read_text().strip()
