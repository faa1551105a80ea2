"""Test suites in Java and Go that start the cluster which they break; nothing of it is left behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

GO = Path(__file__).parents[2] / "examples" / "guests" / "go"
pytestmark = pytest.mark.guests
_WITHIN_S = 900


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the README says, without a cluster around it."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NAMESRV_ADDR")}
    return subprocess.run(
        command, check=False, env=variables | environment, capture_output=True, text=True, timeout=_WITHIN_S
    )


def clusters_of(project: Path) -> list[int]:
    """Process ids of the emulators that a suite has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == project and b"rmqemu\0up\0" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def is_ready(cluster: int) -> bool:
    """Whether the command next to the cluster waits for the end of its input; before that, any end would end it."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() == "cat\n" and parent_of(int(process.name)) == cluster:
                return True
        except OSError:  # it has ended meanwhile
            continue
    return False


def wait_until(is_so, within_s: float = 60) -> None:
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_junit(java_project, need):
    need("mvn", "java", "rmqemu")
    done = run(["mvn", "-q", "-f", str(java_project), "test", "-Dtest=UnderFireTest"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert clusters_of(java_project) == []


def test_spring_boot(java_project, need):
    need("mvn", "java", "rmqemu")
    done = run(["mvn", "-q", "-f", str(java_project), "test", "-Dtest=ShopTest"])
    assert done.returncode == 0, done.stdout + done.stderr
    output = [line.split() for line in done.stdout.splitlines()]
    ways = {words[1]: int(words[3]) for words in output if len(words) == 9 and words[0] == "all"}
    assert ways.pop("one_way") == 0
    assert sorted(ways) == ["async", "delayed", "ordered", "request", "sync", "tagged", "transactional"]
    assert all(acknowledged > 50 for acknowledged in ways.values()), ways
    assert clusters_of(java_project) == []


def test_go(need):
    need("go", "rmqemu")
    done = run(["go", "-C", str(GO), "test", "-count=1", "-v", "-run=UnderFire", "./..."])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("--- PASS: TestUnderFire") == 3
    assert clusters_of(GO) == []


def test_a_cluster_ends_with_a_test_process_that_is_killed(java_project, need):
    need("mvn", "java", "rmqemu")
    maven = subprocess.Popen(
        ["mvn", "-q", "-f", str(java_project), "test", "-Dtest=UnderFireTest"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: clusters_of(java_project))
        (cluster,) = clusters_of(java_project)
        wait_until(lambda: is_ready(cluster))
        os.kill(parent_of(cluster), signal.SIGKILL)
        wait_until(lambda: clusters_of(java_project) == [])
    finally:
        assert maven.wait(_WITHIN_S) != 0


def test_without_rmqemu_a_suite_says_so(java_project, need):
    need("mvn", "java")
    path = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "rmqemu").exists()
    )
    done = run(["mvn", "-q", "-f", str(java_project), "test", "-Dtest=UnderFireTest"], PATH=path)
    assert done.returncode != 0
    assert "rmqemu cannot be run; is it on the PATH? pip install rocketmq-emulator" in done.stdout + done.stderr
