"""Applications with RocketMQ's own clients, in three languages: they survive a master's death."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUESTS = ROOT / "examples" / "guests"
pytestmark = pytest.mark.guests
_WITHIN_S = 900


def with_a_cluster(scratch: Path, *command: str) -> None:
    """Run a command as the README says; its exit status is that of `rmqemu`."""
    up = [sys.executable, "-m", "emulator.cli", "up", str(ROOT / "examples" / "guests.toml")]
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
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "rocketmq==0.4.4"], check=False, capture_output=True, text=True
    )
    if install.returncode:
        pytest.skip(f"the wheel of the C++ client cannot be installed: {install.stderr.strip()[-200:]}")
    with_a_cluster(tmp_path, str(python), str(GUESTS / "python" / "survives.py"))
