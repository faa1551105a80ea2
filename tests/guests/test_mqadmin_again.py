"""A session of ten administrative acts with RocketMQ's own mqadmin, and the scenario that repeats it."""

import re
import subprocess
from pathlib import Path

import pytest

import emulator
from emulator.run import run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.run.verify import repeat
from emulator.spec import load
from emulator.trace.run_directory import open_run
from emulator.trace.schema import ADMIN
from support.run_rows import table_rows

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 300
SESSION = (
    "updateTopic -n NS -c DefaultCluster -t made -r 4 -w 4",
    "updateTopic -n NS -c DefaultCluster -t orders -r 8 -w 8",
    "updateTopicPerm -n NS -b BROKER -t made -p 4",
    "updateSubGroup -n NS -c DefaultCluster -g audit",
    "updateSubGroup -n NS -c DefaultCluster -g billing -s false",
    "updateSubGroup -n NS -c DefaultCluster -g billing -s true",
    "skipAccumulatedMessage -n NS -g billing -t orders",
    "cloneGroupOffset -n NS -s billing -d audit -t orders -o true",
    "updateBrokerConfig -n NS -b BROKER -k brokerPermission -v 6",
    "wipeWritePerm -n NS -b broker-c",
    "deleteTopic -n NS -c DefaultCluster -t made",
)
NAMES = ("node", "request", "topic", "group", "broker_name")


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory, class_path) -> Path:
    """Of a live cluster at which mqadmin has carried out the session."""
    scratch = tmp_path_factory.mktemp("again")
    with emulator.launch(HERE / "cluster.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")
        cluster.run_for("5s")  # something has been consumed, so that there are offsets to clone
        nameserver = cluster.namesrv_addr
        broker = re.sub(r"\.1\.1:9876$", ".2.1:10911", nameserver)
        lines = [line.replace("NS", nameserver).replace("BROKER", broker) for line in SESSION]
        (scratch / "lines").write_text("".join(f"{line}\n" for line in lines))
        run = ["java", f"-Drocketmq.home.dir={scratch}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
        subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
        return cluster.close()


def changes(path: Path) -> list[tuple[object, ...]]:
    """What each row of administrators names; a row of a topic in order of time."""
    return [tuple(row[name] for name in NAMES) for row in table_rows(path, ADMIN)]


def test_the_scenario_has_each_request_as_an_act(run_directory):
    text = (run_directory / BY_HAND_FILE).read_text()
    assert "# Not repeated" not in text
    replay = load(run_directory / BY_HAND_FILE)
    assert len(replay.acts) == len(changes(run_directory))
    assert len({timed.act.kind for timed in replay.acts}) >= 6


def test_a_run_of_it_has_the_same_requests_and_twice_the_same_digest(run_directory, tmp_path):
    again = run_scenario(load(run_directory / BY_HAND_FILE), runs=tmp_path)
    assert changes(again.path) == changes(run_directory)
    assert repeat(open_run(again.path)) is None
