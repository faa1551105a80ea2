"""A test process with a cluster ends early: by Ctrl-C, by SIGTERM as of a cancelled CI job, by `os._exit`."""

import json
import os
import signal
import subprocess
import sys

import pytest

from emulator.trace.run_directory import open_run
from emulator.trace.schema import LIFECYCLE
from support.run_rows import table_rows
from support.small_scenario import SCENARIO
from support.waiting import until

SUITE = """
import os, time

def test_that_does_not_end(rocketmq_cluster, record_property):
    cluster = rocketmq_cluster("small.toml")
    print("run", cluster.path, flush=True)
    {then}
"""
SLEEP, EXIT = "time.sleep(60)", "time.sleep(1.5); os._exit(7)"


class Suite:
    """Such a process, in a group of its own, once its cluster runs.

    Args:
        folder: of the suite.
        then: what its test does when the cluster runs.
        plugin: options with which pytest loads the plugin; none: it finds it by itself, as in suites of others.
    """

    def __init__(self, folder, then, plugin=("-p", "emulator.testing.plugin")):
        (folder / "small.toml").write_text(SCENARIO)
        (folder / "test_it.py").write_text(SUITE.format(then=then))
        command = [sys.executable, "-m", "pytest", "-qs", "-p", "no:cacheprovider", "--basetemp", "temporary"]
        # The plugins of these tests would take longer to import than the cluster takes to start.
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if plugin else {}
        self.process = subprocess.Popen(
            [*command, *plugin, "test_it.py"],
            cwd=folder,
            env=dict(os.environ, **alone),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.run = folder / next(line for line in self.process.stdout if line.startswith("run "))[4:].strip()

    def end(self, number=None):
        """Its status, when it has ended, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode

    @property
    def is_alone(self):
        """Whether no process of its group is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_cluster_in_good_order_and_the_manifest_is_written(tmp_path, number):
    suite = Suite(tmp_path, SLEEP)

    assert suite.end(number) == pytest.ExitCode.INTERRUPTED

    assert json.loads((suite.run / "manifest.json").read_text())["ended"] == "complete"
    assert open_run(suite.run).broken_off() == ""
    assert suite.is_alone


def test_a_process_that_just_exits_leaves_a_run_that_reads_like_every_killed_one_and_no_process(tmp_path):
    suite = Suite(tmp_path, EXIT, plugin=())

    assert suite.end() == 7

    run = open_run(suite.run)
    assert "killed" in run.broken_off()
    started = [row["node"] for row in table_rows(suite.run, LIFECYCLE) if row["event"] == "ready"]
    assert started == ["ns-1", "ns-2", "broker-a"]
    assert not (suite.run / "manifest.json").exists()
    until(lambda: suite.is_alone)


def test_a_handler_of_the_suite_stays_its_own(tmp_path):
    mine = "signal.signal(signal.SIGTERM, lambda *_: None)"
    (tmp_path / "conftest.py").write_text(f"import signal\n{mine}\n")
    suite = Suite(tmp_path, "time.sleep(2)")

    assert suite.end(signal.SIGTERM) == 0
