"""The fixture `rocketmq_cluster`, as a suite of somebody else uses it."""

import os
import subprocess
import sys

from support.small_scenario import SCENARIO

SUITE = """
import socket


def test_it_runs_and_can_be_broken(rocketmq_cluster):
    cluster = rocketmq_cluster("small.toml")
    host, _, port = cluster.namesrv_addr.split(";")[0].rpartition(":")
    socket.create_connection((host, int(port)), 5).close()
    cluster.kill("broker-a")
    assert "1 active fault" in str(cluster.status())


def test_each_test_has_a_healthy_one(rocketmq_cluster):
    assert "0 active faults" in str(rocketmq_cluster("small.toml").status())


def test_two_at_a_time_are_apart(rocketmq_cluster):
    one, other = rocketmq_cluster("small.toml"), rocketmq_cluster("small.toml")
    assert one.namesrv_addr != other.namesrv_addr
    one.kill("broker-a")
    assert "0 active faults" in str(other.status())
"""


def test_a_suite_gets_healthy_clusters_and_leaves_none_behind(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "emulator.testing.plugin", "--basetemp", "left"],
        check=False,
        cwd=tmp_path,
        env=dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    runs = sorted({path.resolve() for path in (tmp_path / "left").glob("*/rmqemu/*")})  # pytest makes links to them
    assert len(runs) == 4
    assert all((run / "manifest.json").exists() and not (run / "ctl.sock").exists() for run in runs)


FAILS = """
def test_it_fails(rocketmq_cluster):
    rocketmq_cluster("small.toml")
    assert False
"""


def test_below_a_test_that_failed_stands_where_its_trace_is(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "test_suite.py").write_text(FAILS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "emulator.testing.plugin", "--basetemp", "left"],
        check=False,
        cwd=tmp_path,
        env=dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("what happened: rmqemu analyze ")]
    assert (tmp_path / "left" / line.partition("/left/")[2] / "manifest.json").exists()


def test_only_a_live_cluster_has_an_address(tmp_path):
    import pytest

    import emulator
    from emulator.cluster.cluster import NoAddressError

    (tmp_path / "small.toml").write_text(SCENARIO)
    for mode in ("sim", "fast"):
        cluster = emulator.launch(tmp_path / "small.toml", mode=mode, runs=tmp_path)
        with cluster, pytest.raises(NoAddressError, match="mode live"):
            _ = cluster.namesrv_addr
