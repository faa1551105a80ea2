"""Static topics in a whole cluster: logical queues that move to another broker under a load."""

from itertools import pairwise

import pytest

from emulator.spec import loads
from emulator.testing import execute
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import GetMaxOffsetRequestHeader
from nodes.protocol.static_topics import mock_broker_name

LOGICAL = mock_broker_name("__global__")
CLUSTER = """
[scenario]
name = "static"
run_for_s = {seconds}
[[nameserver]]
name = "ns"
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[broker]]
name = "broker-c"
[[topic]]
name = "orders"
created_later = true
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
start_after_s = 20
[consumer.options]
consumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"
[[producer]]
name = "p1"
topic = "orders"
group = "shop"
rate_per_s = 10
start_after_s = 20
"""
CREATE = (10, "update-static-topic orders queues 4 brokers broker-a,broker-b")
REMAP = (60, "remapping-static-topic orders brokers broker-b,broker-c")


async def nothing(_stage):
    """The acts are all that happens."""


def executed(*acts, script=nothing, seconds=150):
    tables = "".join(f"[[admin]]\nat_s = {at_s}\ndo = '{line}'\n" for at_s, line in acts)
    return execute(loads(CLUSTER.format(seconds=seconds) + tables, "static.toml"), script, for_ms=seconds * 1_000)


def consumed(trace):
    return [(row.queue_id, row.offset) for row in trace.select("messages", event="consumed", topic="orders")]


def stored(trace, *, before_s=1e9, after_s=0):
    rows = trace.select("messages", event="stored", topic="orders")
    return [row for row in rows if after_s < row.at_s < before_s]


def failed(trace):
    return [row.detail for row in trace.select("lifecycle", event="command_failed")]


def test_clients_send_to_and_consume_logical_queues_that_brokers_lead():
    trace = executed(CREATE, seconds=90)

    assert failed(trace) == []
    assert {row.broker_name for row in trace.select("messages", event="consumed", topic="orders")} == {LOGICAL}
    assert {row.queue_id for row in trace.select("messages", event="consumed", topic="orders")} == {0, 1, 2, 3}
    assert {row.node for row in stored(trace)} == {"broker-a", "broker-b"}
    places = consumed(trace)
    assert len(places) == len(set(places)) > 600


def test_a_remapping_under_load_loses_nothing_and_old_messages_are_read_through_the_new_leader():
    trace = executed(CREATE, REMAP)

    assert failed(trace) == []
    assert {row.node for row in stored(trace, after_s=100)} == {"broker-b", "broker-c"}
    assert len(stored(trace, before_s=148)) <= len(set(consumed(trace))) <= len(stored(trace))
    offsets = [row.offset for row in trace.select("messages", event="consumed", topic="orders") if row.at_s > 100]
    assert max(offsets) > 10_000 > min(offsets)


def test_a_queue_that_the_broker_does_not_lead_is_refused_by_its_number():
    async def script(stage):
        await stage.at_ms(30_000)
        probe = await stage.probe()
        answers = [
            await probe.ask(node, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader("orders", queue_id))
            for node in ("broker-a", "broker-b", "broker-c")
            for queue_id in range(4)
        ]
        assert sum(answer.code == ResponseCode.SUCCESS for answer in answers) == 4
        refused = [answer for answer in answers if answer.code != ResponseCode.SUCCESS]
        assert {answer.code for answer in refused} == {ResponseCode.NOT_LEADER_FOR_QUEUE}
        assert "does not exit in request process of current broker broker-" in refused[0].remark

    executed(CREATE, script=script, seconds=40)


@pytest.mark.parametrize("line", ["remapping-static-topic orders", "update-static-topic orders queues 4"])
def test_what_mqadmin_does_not_do_is_one_line_and_changes_nothing(line):
    trace = executed(CREATE, (40, "update-topic plain"), (60, line.replace("orders", "plain")), seconds=80)

    assert len(failed(trace)) == 1
    assert "Mapping info should not be null" in failed(trace)[0]


def test_a_broker_that_restarts_still_leads_its_queues():
    async def script(stage):
        await stage.at_ms(60_000)
        await stage.begin("restart broker-a")

    trace = executed(CREATE, script=script)

    assert {row.node for row in stored(trace, after_s=110)} == {"broker-a", "broker-b"}


def test_a_pull_commits_a_logical_offset_to_a_physical_queue_until_the_next_commit_mends_it():
    """`PullMessageProcessor#tryCommitOffset` takes the queue of the rewritten header and the offset of the request."""
    trace = executed(CREATE, REMAP)

    offsets = [row.offset for row in trace.select("messages", event="committed", topic="orders") if row.at_s > 70]
    falls = [(before, after) for before, after in pairwise(offsets) if before - after > 9_000]
    assert falls
