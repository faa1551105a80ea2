"""A program of somebody else's sends a timed message to a live cluster, in RocketMQ's framing, and takes it back."""

import json
from contextlib import contextmanager

from network.hostile_requests import SEND_V2
from nodes.protocol.recall_handle import RecallHandle
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller

SCENARIO = """
[scenario]
name = "guests-with-time"
run_for_s = 600
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = { recallMessageEnable = true }
[[topic]]
name = "orders"
"""
SEND, RECALL, CHECK_POINT, METRICS = 310, 370, 60, 61


@contextmanager
def a_cluster(folder):
    cluster = LiveCluster(folder, SCENARIO)
    try:
        yield Caller(cluster.broker, BROKER_PORT)
    finally:
        cluster.end()


def properties(**named):
    return "".join(f"{name}\x01{value}\x02" for name, value in named.items())


def test_a_guest_sends_a_timed_message_and_takes_it_back(tmp_path):
    with a_cluster(tmp_path) as caller:
        requested = SEND_V2 | {"b": "orders", "i": properties(TIMER_DELAY_SEC="60", UNIQ_KEY="7F0000010001")}
        sent = caller.ask_raw(SEND, requested, b"hello")
        handle = (sent.ext_fields or {})["recallHandle"]
        recalled = caller.ask_raw(RECALL, {"topic": "orders", "recallHandle": handle, "producerGroup": "g"}, b"")
        refused = caller.ask_raw(SEND, requested | {"i": properties(TIMER_DELAY_SEC="never")}, b"hello")
        check_point = caller.ask_raw(CHECK_POINT, {}, b"")
        metrics = caller.ask_raw(METRICS, {}, b"")

    assert (sent.code, recalled.code, (recalled.ext_fields or {})["msgId"]) == (0, 0, "7F0000010001")
    assert RecallHandle.decode(handle).topic == "orders"
    assert (refused.code, check_point.code, metrics.code) == (13, 0, 0)
    assert len(check_point.body or b"") == 56
    assert set(json.loads(metrics.body or b"")) == {"timingCount", "dataVersion"}
