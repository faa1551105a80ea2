"""Workers of a cluster: none, without this package, or with another version of it, each in one line."""

import subprocess
import sys

import pytest

from emulator.dataset import workers
from emulator.trace.run_directory import versions
from support.standalone_spark import standalone_spark

VERSION = versions()["rocketmq-emulator"]
OTHER = """
def versions():
    return {"rocketmq-emulator": "0.1.7"}
"""


def test_a_master_that_gives_no_worker_is_named(spark):
    with pytest.raises(workers.WorkersError) as refused:
        workers.require_workers(spark, "spark://a:7077", 0)

    assert str(refused.value) == "spark://a:7077 has given no worker for 0 s: start one, or free a core"


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,1024]", "yarn"])
def test_other_masters_are_not_asked_for_workers(spark, master):
    workers.require_workers(spark, master, 0)


def test_workers_with_this_version_are_accepted(spark):
    workers.require_same_package(spark, "here")


def test_workers_with_another_version_are_refused(spark, monkeypatch):
    monkeypatch.setattr(workers, "versions", lambda: {"rocketmq-emulator": "99"})

    with pytest.raises(workers.WorkersError, match=rf"^here: worker \S+ has rocketmq-emulator {VERSION}: expected 99,"):
        workers.require_same_package(spark, "here")


def opened(folder, master):
    """A process that opens a session of the master, and what it printed."""
    code = (
        "import sys; from emulator.cli.terminal import one_line_errors; from emulator.dataset import sessions\n"
        "sessions.WORKERS_S = 5.0\n"
        "try:\n"
        "    with one_line_errors():\n"
        "        print(sessions.describe(sessions.open_command_session(sys.argv[1], rows=10)))\n"
        "except Exception as ended:\n"
        "    sys.exit(ended.exit_code)\n"
    )
    command = [sys.executable, "-c", code, master]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.slow
@pytest.mark.spark
def test_a_master_without_workers_gets_one_line(tmp_path):
    with standalone_spark(tmp_path, 0) as master:
        done = opened(tmp_path, master)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rmqemu: {master} has given no worker for 5 s: start one, or free a core\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "has"), [("", "no rocketmq-emulator"), (OTHER, "rocketmq-emulator 0.1.7")], ids=["without", "other"]
)
def test_workers_without_the_package_or_with_another_version_get_one_line(tmp_path, content, has):
    package = tmp_path / "foreign" / "emulator"
    (package / "trace").mkdir(parents=True)
    (package / "__init__.py").touch()
    if content:
        (package / "trace" / "__init__.py").touch()
        (package / "trace" / "run_directory.py").write_text(content)
    with standalone_spark(tmp_path, 1, PYTHONPATH=str(package.parent)) as master:
        done = opened(tmp_path, master)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rmqemu: {master}: worker ")
    assert done.stderr.endswith(f" has {has}: expected {VERSION}, as here\n")
    assert done.stderr.count("\n") == 1
