"""What a broker that runs on after a freeze makes of the heartbeats that waited for it."""

import json

import attrs
import pytest

from emulator.spec import load
from emulator.spec.bundled import example
from emulator.testing import execute
from nodes.config import BrokerConfig

WAKES_MS = 120_000


def views(trace):
    """How often the one consumer was in each list of members that it got since the broker runs on."""
    rows = trace.select("beliefs", node="consumer-1", kind="view", after_ms=WAKES_MS)
    found = [json.loads(row.value) for row in rows]
    return [len(view["cids"]) for view in found if view is not None]


def longest_pause_ms(trace):
    """For how long a queue gave the listener nothing, of all queues, since the broker runs on."""
    last, longest = {}, 0
    for row in trace.select("messages", event="consumed", after_ms=WAKES_MS + 1_000):
        place = row.broker_name, row.queue_id
        longest = max(longest, row.at_ms - last.get(place, row.at_ms))
        last[place] = row.at_ms
    return longest


def frozen(*, processing_times):
    scenario = load(example("woken_broker.toml"))
    config = BrokerConfig(processing_times=processing_times)
    brokers = tuple(attrs.evolve(spec, config=config) for spec in scenario.brokers)
    return execute(attrs.evolve(scenario, brokers=brokers), for_ms=scenario.run_for_ms)


@pytest.mark.trap("C54")
def test_heartbeats_that_wait_for_a_thread_list_a_client_once_for_each_closed_connection_and_queues_stand_still():
    trace = frozen(processing_times="HEART_BEAT 20ms")

    assert max(views(trace)) >= 3
    assert 20_000 < longest_pause_ms(trace) < 90_000
    # The scan removes connections that were silent for 120 s.
    assert not trace.select("beliefs", node="consumer-1", kind="view", after_ms=WAKES_MS + 150_000)


def test_heartbeats_that_are_handled_before_the_close_of_their_connection_leave_one_entry():
    trace = frozen(processing_times="")

    assert set(views(trace)) <= {1}
    assert longest_pause_ms(trace) < 5_000
