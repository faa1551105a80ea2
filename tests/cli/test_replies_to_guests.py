"""Two programs of somebody else's, in RocketMQ's framing: one asks, the other replies through a broker."""

from network.hostile_requests import SEND_V2
from nodes.protocol.message_id import message_id_address
from nodes.protocol.model import HeartbeatData, ProducerData
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller

SCENARIO = """
[scenario]
name = "asked-and-answered"
run_for_s = 600
[nameserver]
count = 1
[[broker]]
name = "broker-a"
"""
HEART_BEAT, REPLY_V2, PUSH = 34, 325, 326
REPLY_TOPIC, ASKS = "DefaultCluster_REPLY_TOPIC", "10.9.8.7@asks"


def test_a_guest_gets_the_reply_of_another_and_who_replies_learns_whether_it_did(tmp_path):
    cluster = LiveCluster(tmp_path, SCENARIO)
    try:
        asks, replies = Caller(cluster.broker, BROKER_PORT), Caller(cluster.broker, BROKER_PORT)
        asks.ask(HEART_BEAT, None, HeartbeatData(ASKS, (ProducerData("shop"),), ()))
        properties = f"CORRELATION_ID\x017\x02REPLY_TO_CLIENT\x01{ASKS}\x02"
        requested = SEND_V2 | {"b": REPLY_TOPIC, "e": "0", "i": properties}

        replies.send_raw(REPLY_V2, requested, b"pong")
        pushed = asks.hear()
        asks.answer(pushed, 0)
        answered = replies.hear()
        gone = replies.ask_raw(REPLY_V2, requested | {"i": "REPLY_TO_CLIENT\x01nobody\x02"}, b"pong")
    finally:
        cluster.end()

    assert (pushed.code, pushed.body) == (PUSH, b"pong")
    fields = pushed.ext_fields or {}
    assert (fields["topic"], fields["properties"].startswith(properties)) == (REPLY_TOPIC, True)
    assert answered.code == 0
    assert message_id_address((answered.ext_fields or {})["msgId"][:16]) == f"{cluster.broker}:{BROKER_PORT}"
    assert (gone.code, gone.remark) == (1, "push reply message fail, channel of <nobody> not found.")
