"""V2 and V8 where members are kept from a queue: by messages of others that they popped, or by permissions."""

import pytest

from analysis.trace_rows import GROUP, TOPIC, HandMadeTrace, found_in
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.judge import broken
from nodes.protocol.codes import RequestCode, ResponseCode

ONE_THREAD = Bounds(listener_threads=1)
CONSUME_MS = 500
LISTS, HEARTBEATS = RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.HEART_BEAT


def begun(*nodes):
    trace = HandMadeTrace().at(0).life("broker-a", "started", role="broker").life("broker-a", "ready")
    for node in nodes:
        trace.life(node, "started", GROUP, role="consumer").life(node, "ready", GROUP).subscribe(node)
    return trace


def popping(*busy):
    """Queue 0 waits from 1 s to 180 s; the members named work on messages of queue 1 all the time."""
    trace = begun("a", "b").at(0.5).own("a", "pop_acquired", -1, offset=-1).own("b", "pop_acquired", -1, offset=-1)
    trace.at(0.6).store(*range(9)).store(*range(1_000), queue_id=1).consume("a", 0)
    for number in range(360):
        for node in busy:
            trace.at(1 + number * CONSUME_MS / 1_000).consume(node, 2 * number + (node == "b"), queue_id=1)
    return trace


@pytest.mark.parametrize(("busy", "is_broken"), [("ab", False), ("a", True), ("b", True), ("", True)])
def test_a_queue_that_all_members_pop_waits_while_all_threads_of_each_work_on_messages_of_others(busy, is_broken):
    found = found_in(popping(*busy), 180, consume_ms={GROUP: CONSUME_MS}, bounds=ONE_THREAD)

    (row,) = [item for item in found["stalls"] if item.queue.queue_id == 0]
    assert row.queue.topic == TOPIC
    assert row.violation is is_broken


def asking(lists, heartbeats):
    """A member asks for the list of members every 20 s, and sends heartbeats every 30 s; no queue is ever owned."""
    trace = begun("a").believe("ns", {"broker-a": {"addrs": {"0": "x"}, "queues": [1, 1, 6]}}, TOPIC, "route")
    for second in range(1, 300, 20):
        trace.at(second).ask("a", "broker-a", LISTS, lists).passed("a", "kept")
    for second in range(5, 300, 30):
        trace.at(second).ask("a", "broker-a", HEARTBEATS, heartbeats)
    return trace


@pytest.mark.parametrize(
    ("lists", "heartbeats", "is_broken"),
    [
        (ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS, False),  # rocketmq 9138
        (ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION, False),
        (ResponseCode.SUCCESS, ResponseCode.SUCCESS, True),
    ],
)
def test_one_request_that_all_brokers_refuse_a_member_is_enough_to_keep_it_from_queues(lists, heartbeats, is_broken):
    trace = asking(lists, heartbeats)
    trace.roles["ns"] = "nameserver"
    found = found_in(trace.at(0.1).believe("a", {"cids": [], "queues": {"broker-a": 1}}), 300)

    assert ("V2" in broken(found)) is is_broken
