"""Applications with the official clients, in four languages: they survive faults of brokers and proxies."""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUESTS = ROOT / "examples" / "guests"
pytestmark = pytest.mark.guests
PROXIES = GUESTS / "proxies.toml"
_WITHIN_S = 900


def need_proxies(need: Callable[..., None], *programs: str) -> None:
    """Skip where a program is missing, or what proxies need for gRPC."""
    need("rmqemu", *programs)
    if importlib.util.find_spec("h2") is None:
        pytest.skip("the extra `proxy` is not installed")


def run(*command: str) -> None:
    """Run a command that starts the cluster which it needs."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_WITHIN_S)
    assert done.returncode == 0, done.stdout + done.stderr


def skip_unless_installed(*command: str) -> None:
    """Install a client, or skip."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_WITHIN_S)
    if done.returncode:
        pytest.skip(f"the client cannot be installed: {done.stderr.strip()[-200:]}")


def python_with(scratch: Path, requirement: str) -> str:
    """Create an environment with a client, and return its Python."""
    venv.create(scratch / "venv", with_pip=True)
    python = str(scratch / "venv" / "bin" / "python")
    skip_unless_installed(python, "-m", "pip", "install", "--quiet", requirement)
    return python


def with_a_cluster(scratch: Path, *command: str, scenario: Path = ROOT / "examples" / "guests.toml") -> None:
    """Run a command as the README says; its exit status is that of `rmqemu`."""
    up = [sys.executable, "-m", "emulator.cli", "up", str(scenario)]
    done = subprocess.run(
        [*up, "--runs", str(scratch), "--exec", *command],
        check=False,
        cwd=scratch,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_java(tmp_path, java_project, need):
    need("mvn", "java", "rmqemu")
    both = "-Dtest=SurvivesAMastersDeathTest,RequestsAndRepliesTest"
    with_a_cluster(tmp_path, "mvn", "-q", "-f", str(java_project), "test", both)


def test_java_that_waits_for_replies(tmp_path, java_project, need):
    need("mvn", "java", "rmqemu")
    item = ("-Drocketmq.version=5.3.0", "-Dtest=RequestsAndRepliesTest")
    with_a_cluster(tmp_path, "mvn", "-q", "-f", str(java_project), "test", *item)


def test_go(tmp_path, need):
    need("go", "rmqemu")
    with_a_cluster(tmp_path, "go", "-C", str(GUESTS / "go"), "test", "-count=1", "-skip=UnderFire", "./...")


def test_python_with_the_cpp_client(tmp_path, need):
    need("rmqemu")
    python = python_with(tmp_path, "rocketmq==0.4.4")
    with_a_cluster(tmp_path, python, str(GUESTS / "python" / "survives.py"))


def test_java_with_the_client_of_rocketmq_5(java_project, need):
    need_proxies(need, "mvn", "java")
    shutil.copy(PROXIES, java_project.parent)
    run("mvn", "-q", "-f", str(java_project), "test", "-Dtest=ProxiesUnderFireTest")


def test_go_with_the_client_of_rocketmq_5(need):
    need_proxies(need, "go")
    run("go", "-C", str(GUESTS / "go5"), "test", "-count=1", "./...")


def test_node_with_the_client_of_rocketmq_5(tmp_path, need):
    need_proxies(need, "node", "npm")
    project = tmp_path / "node"
    shutil.copytree(GUESTS / "node", project, ignore=shutil.ignore_patterns("node_modules"))
    skip_unless_installed("npm", "--prefix", str(project), "ci", "--silent")
    with_a_cluster(tmp_path, "node", str(project / "survives5.mjs"), scenario=PROXIES)


def test_python_with_the_client_of_rocketmq_5(tmp_path, need):
    need_proxies(need)
    python = python_with(tmp_path, "rocketmq-python-client==5.1.2")
    with_a_cluster(tmp_path, python, str(GUESTS / "python" / "survives5.py"), scenario=PROXIES)
