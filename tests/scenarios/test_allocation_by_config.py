"""Strategies other than the shipped one, chosen by options and at work in a cluster."""

import pytest

from emulator.testing import RETRY, TOPIC, a_scenario, consumer_group, execute
from nodes.config import AllocateStrategy, ConsumerConfig


def lists_requested(trace, **between):
    return [row.sent_ms for row in trace.select("rpc", src="c1", code=38, kind="request", **between)]


@pytest.mark.trap("C44")
def test_a_consumer_of_configured_queues_rebalances_every_second_for_ever():
    listed = ", ".join(f"{TOPIC}@broker-a@{queue_id}" for queue_id in range(2))
    config = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.CONFIG, message_queue_list=listed)

    trace = execute(a_scenario(consumers=consumer_group(1, config)), for_ms=60_000)

    # The pass over the retry topic is handed queues of another topic, and never has what it was given.
    requested = lists_requested(trace, after_ms=30_000)
    assert 2 * 25 <= len(requested) <= 2 * 30
    taken = trace.select("ownership", node="c1", event="acquired")
    assert sorted(dict.fromkeys((row.topic, row.queue_id) for row in taken)) == [(TOPIC, 0), (TOPIC, 1)]


@pytest.mark.parametrize("strategy", ["AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"])
def test_members_agree_on_owners_by_every_strategy_that_allocates(strategy):
    rooms = "r1=broker-a, r1=127."
    config = ConsumerConfig(allocate_message_queue_strategy=strategy, machine_rooms=rooms)

    trace = execute(a_scenario(consumers=consumer_group(3, config), queues=8), for_ms=45_000)

    owners = {}
    for row in trace.select("ownership"):
        holders = owners.setdefault((row.topic, row.queue_id), {})
        if row.event == "acquired":
            holders[row.node] = True
        elif row.event == "dropped":
            holders.pop(row.node, None)
    assert [queue for queue, holders in owners.items() if len(holders) != 1] == []
    assert sorted(queue for queue in owners if queue[0] != RETRY) == [(TOPIC, queue_id) for queue_id in range(8)]
