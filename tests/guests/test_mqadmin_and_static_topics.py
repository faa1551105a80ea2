"""RocketMQ's own mqadmin asks for static topics, which are not emulated: it is reported so, and so is the console."""

import re
import subprocess
from pathlib import Path

import pytest

import emulator

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 300
_WHY = r"CODE: 3  DESC: request type 513 not supported: static topics are not emulated, because no broker here maps"


@pytest.fixture(scope="module")
def reported(tmp_path_factory, class_path):
    """What `updateStaticTopic`, and `remappingStaticTopic` of an ordinary topic, have printed."""
    scratch = tmp_path_factory.mktemp("static")
    with emulator.launch(HERE / "cluster.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")

        def mqadmin(line: str) -> str:
            (scratch / "lines").write_text(f"{line}\n")
            run = ["java", f"-Drocketmq.home.dir={scratch}", f"-Djava.io.tmpdir={scratch}", "-cp", class_path]
            run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
            done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
            return done.stdout + done.stderr

        nameserver = cluster.namesrv_addr
        update = mqadmin(f"updateStaticTopic -n {nameserver} -t fixed -qn 4 -c DefaultCluster")
        remap = mqadmin(f"remappingStaticTopic -n {nameserver} -t orders -c DefaultCluster")
        nodes = "\n".join(cluster.nodes().lines)
    return {"update": update, "remap": remap, "nodes": nodes}


def test_update_is_reported_what_is_not_emulated_and_why(reported):
    assert re.search(_WHY, reported["update"]), reported["update"]


def test_remapping_ends_in_mqadmin_as_next_to_any_cluster_without_static_topics(reported):
    assert "Mapping info should not be null in broker" in reported["remap"], reported["remap"]


def test_the_console_says_that_it_was_asked(reported):
    assert "UPDATE_AND_CREATE_STATIC_TOPIC (513) to broker-" in reported["nodes"]
