"""Heartbeats of the second kind: subscriptions are left out for brokers that know them."""

from itertools import pairwise

import attrs
import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import HeartbeatData
from nodes.protocol.registry import decode_body
from support.ordered import requested

HEARTBEAT, PULL = RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE
V2 = ConsumerConfig(use_heartbeat_v2=True)


def heard(stage, broker="broker-a"):
    """What a broker hears from now on: (fingerprint, whether it is whole)."""
    found = []
    server = stage.node(broker)._server
    handler = server._handlers[HEARTBEAT]

    def listen(channel, request):
        data = decode_body(HeartbeatData, request.body)
        if data.consumer_data_set:
            found.append((data.heartbeat_fingerprint, not data.without_sub))
        return handler(channel, request)

    server._handlers[HEARTBEAT] = listen
    return found


def test_a_broker_that_has_heard_the_subscriptions_gets_only_their_hash_from_then_on():
    lines = []

    async def script(stage: Stage) -> None:
        lines.append(heard(stage))
        await stage.at_ms(100_000)

    trace = execute(a_scenario(consumers=consumer_group(1, V2), rate_per_s=5), script)

    (lines,) = lines
    assert {fingerprint for fingerprint, _ in lines} == {lines[0][0]} != {0}
    # Queues that change are reported about in full, the three of the timer after that are not.
    assert [whole for _, whole in lines][-3:] == [False, False, False]
    assert set(trace.consumed()) >= set(trace.stored()[:-5])


def test_a_member_whose_subscriptions_differ_from_those_of_the_one_before_notifies_them_in_full_the_next_time():
    async def script(stage: Stage) -> None:
        lines.append(heard(stage))
        await stage.at_ms(100_000)

    lines = []
    scenario = a_scenario(consumers=consumer_group(2, V2))
    (group,) = scenario.consumers
    item = attrs.evolve(group, names=("c1",), expressions={TOPIC: "a"})
    other = attrs.evolve(group, names=("c2",), expressions={TOPIC: "b"})
    execute(attrs.evolve(scenario, consumers=(item, other)), script)

    (lines,) = lines
    prints = [fingerprint for fingerprint, _ in lines]
    assert len(set(prints)) == 2
    for before, last in latest_of_the_same(prints):
        if before and prints[before] != prints[before - 1]:  # then the broker has said that it changed
            assert lines[last][1]


def latest_of_the_same(prints):
    """Places of two heartbeats of one member in a row."""
    places = [[place for place, each in enumerate(prints) if each == fromkey] for fromkey in dict.fromkeys(prints)]
    return [pair for listed in places for pair in pairwise(listed)]


@pytest.mark.trap("C34")
def test_a_broker_that_comes_back_has_forgotten_the_subscriptions_and_says_that_nothing_changed():
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        # The process is another one after a moment; connections are made again by the first heartbeat.
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.at_ms(200_000)

    trace = execute(a_scenario(consumers=consumer_group(1, V2), rate_per_s=5), script)

    answers = {"src": "broker-a", "code": int(PULL), "event": "delivered", "kind": "response"}
    assert {row.status for row in trace.select("rpc", after_ms=80_000, **answers)} == {
        ResponseCode.SUBSCRIPTION_NOT_EXIST
    }
    assert trace.select("messages", event="consumed", after_ms=80_000) == []
    assert len(requested(trace, "c1", "broker-a", HEARTBEAT, after_ms=80_000)) >= 3


def test_heartbeats_of_the_first_kind_bring_the_subscriptions_back():
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.at_ms(120_000)

    trace = execute(a_scenario(consumers=1, rate_per_s=5), script)

    assert trace.select("messages", event="consumed", after_ms=80_000) != []
    assert trace.owners()[("broker-a", 0)] == ["c1"], GROUP
