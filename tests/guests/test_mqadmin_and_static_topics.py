"""RocketMQ's own mqadmin makes a static topic at emulated brokers, and remaps it."""

import re
import subprocess
from pathlib import Path

import pytest

import emulator

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 300


@pytest.fixture(scope="module")
def printed(tmp_path_factory, class_path):
    """What mqadmin has printed: a static topic is made and remapped, and an ordinary one is not."""
    scratch = tmp_path_factory.mktemp("static")
    with emulator.launch(HERE / "cluster.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")

        def mqadmin(line: str) -> str:
            (scratch / "lines").write_text(f"{line.replace('NS', cluster.namesrv_addr)}\n")
            run = ["java", f"-Drocketmq.home.dir={scratch}", f"-Djava.io.tmpdir={scratch}", "-cp", class_path]
            run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
            done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
            return done.stdout + done.stderr

        return {
            name: mqadmin(line)
            for name, line in (
                ("update", "updateStaticTopic -n NS -t fixed -qn 4 -b broker-a"),
                ("before", "topicRoute -n NS -t fixed"),
                ("remap", "remappingStaticTopic -n NS -t fixed -b broker-b"),
                ("after", "topicRoute -n NS -t fixed"),
                ("ordinary", "remappingStaticTopic -n NS -t orders -c DefaultCluster"),
            )
        }


def leaders(route):
    """Broker -> how many logical queues it leads."""
    compact = re.sub(r"\s", "", route)
    return {
        broker: len(re.findall(r"\d+:\d+", queues))
        for queues, broker in re.findall(r'"bname":"([^"]+)","currIdMap":\{([^}]*)\}', compact)
        for queues, broker in [(broker, queues)]
    }


def test_a_static_topic_has_the_leaders_that_mqadmin_has_chosen(printed):
    assert "The new mapping data is written to file" in printed["update"]
    assert leaders(printed["before"])["broker-a"] == 4, printed["before"]


def test_a_remapping_moves_all_queues(printed):
    moved = leaders(printed["after"])
    assert (moved["broker-a"], moved["broker-b"]) == (0, 4), printed["after"]


def test_remapping_an_ordinary_topic_ends_in_mqadmin_as_with_any_cluster(printed):
    assert "Mapping info should not be null in broker" in printed["ordinary"], printed["ordinary"]
