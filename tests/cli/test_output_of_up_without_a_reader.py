"""`rmqemu up` whose output no one reads: a stopped terminal, `| less`, a pipe that a test suite forgot."""

import json

from network.hostile_requests import heartbeat
from support.live_cluster import BROKER_PORT, INTERRUPTED, LiveCluster
from support.remoting_program import Caller

CLUSTER = """
[scenario]
name = "unread"
run_for_s = 600

[[broker]]
name = "b"
"""
GROUPS, PIPE_BYTES = 800, 65_536


def test_the_nodes_go_on_and_the_run_ends(tmp_path):
    cluster = LiveCluster(tmp_path, CLUSTER)
    members = Caller(cluster.broker, BROKER_PORT)

    for number in range(GROUPS):  # each is a few lines of events
        assert members.ask_raw(34, {}, heartbeat(1, f"{'a-long-name-' * 8}{number}").encode()).code == 0

    answer = cluster.end()
    assert cluster.process.returncode == INTERRUPTED
    assert "Fatal" not in answer
    rows = json.loads((cluster.run / "manifest.json").read_text())["rows"]
    assert rows["beliefs"] > GROUPS
    assert GROUPS * 100 > PIPE_BYTES, "more than a pipe takes"
