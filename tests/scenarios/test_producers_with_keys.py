"""Producers that give their messages keys, and choose queues by them."""

import attrs
import pytest

from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import TopicSpec
from emulator.testing import RETRY, TOPIC, Stage, a_scenario, execute
from nodes.client.producer.keys import KeyDistribution, MessageKeys, TopicPartitions
from nodes.client.tables.queue_selectors import KeyHash, SelectorName, selector_of
from nodes.config.client5 import Producer5Config
from nodes.protocol.model import MessageQueue
from nodes.protocol.properties import KEYS, TAGS

BROKERS = ("broker-a", "broker-b")


def keyed(keys=None, select=None, *, seed=1, tags=(), **options):
    scenario = a_scenario(brokers=BROKERS, queues=2, rate_per_s=20, seed=seed, **options)
    producer = attrs.evolve(scenario.producers[0], keys=keys, select=select, tags=tags)
    return attrs.evolve(scenario, producers=(producer,))


def stored(stage, broker):
    store = stage.node(broker).context.store
    return [message for queue_id in (0, 1) for message in store.messages(TOPIC, queue_id, 0, 10_000)]


def executed(scenario, for_ms=10_000):
    """Messages that each broker has at the end, and the trace."""
    found = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(for_ms)
        found.update({broker: stored(stage, broker) for broker in BROKERS})

    return found, execute(scenario, script)


def test_a_message_carries_its_key_next_to_its_tag():
    found, _ = executed(keyed(MessageKeys(5), tags=("new",)))

    messages = [message for broker in BROKERS for message in found[broker]]
    assert len(messages) == 200
    assert {message.properties[KEYS] for message in messages} == set("12345")
    assert {tuple(message.properties) for message in messages} == {(TAGS, KEYS)}


@pytest.mark.parametrize("name", [SelectorName.HASH, SelectorName.MD5, SelectorName.CONSISTENT_HASH])
def test_a_selector_sends_a_key_to_one_queue_of_all_that_can_be_written(name):
    found, _ = executed(keyed(MessageKeys(30), name))

    select = selector_of(name, lambda _stop: 0)
    queues = tuple(MessageQueue(TOPIC, broker, queue_id) for broker in BROKERS for queue_id in (0, 1))
    for broker in BROKERS:
        assert found[broker]
        for message in found[broker]:
            assert select(queues, message.properties[KEYS]) == MessageQueue(TOPIC, broker, message.queue_id)


OF_PROXIES = {"endpoints": ("proxy-1",), "config5": Producer5Config()}


@pytest.mark.parametrize(("by", "client"), [*((by, {}) for by in KeyHash), (KeyHash.MD5, OF_PROXIES)])
def test_partitions_are_topics_and_a_key_has_one_of_them(by, client):
    partitions = TopicPartitions("OrderEvents-P", 3, by)
    scenario = a_scenario(brokers=BROKERS[:1], rate_per_s=20)
    topics = tuple(TopicSpec(name, BROKERS[:1], 1) for name in partitions.topics)
    producer = attrs.evolve(scenario.producers[0], topic=None, keys=MessageKeys(30), partitions=partitions, **client)
    proxies = (ProxySpec("proxy-1"),) if client else ()
    found = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        store = stage.node("broker-a").context.store
        found.update({name: store.messages(name, 0, 0, 10_000) for name in partitions.topics})

    execute(attrs.evolve(scenario, topics=topics, producers=(producer,), proxies=proxies), script)

    assert 190 <= sum(map(len, found.values())) <= 200
    keys = {name: {message.properties[KEYS] for message in messages} for name, messages in found.items()}
    assert all(keys.values())
    for number, name in enumerate(partitions.topics):
        assert {by.of(key) % 3 for key in keys[name]} == {number}  # of keys of two digits no hash is below 0


def drawn(trace):
    rows = trace.select("messages", event="stored", topic=TOPIC)
    return [(row.node, row.queue_id) for row in rows]


def test_the_seed_decides_which_keys_come_and_where_they_go():
    scenario = keyed(MessageKeys(30, KeyDistribution.ZIPF), SelectorName.HASH)

    _, first = executed(scenario)
    _, same = executed(scenario)
    _, other = executed(attrs.evolve(scenario, seed=2))

    assert drawn(first) == drawn(same) != drawn(other)


def test_random_queues_are_used_evenly_without_keys():
    found, trace = executed(keyed(None, SelectorName.RANDOM))

    queues = drawn(trace)
    assert all(30 < queues.count(queue) < 70 for queue in set(queues))
    assert {tuple(message.properties) for message in found["broker-a"]} == {()}


def test_a_send_to_a_selected_queue_is_not_repeated_at_another_broker():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.kill("broker-b")
        await stage.at_ms(20_050)

    trace = execute(keyed(MessageKeys(100), SelectorName.HASH), script)

    late = {"after_ms": 10_051}
    there, refused = trace.select("messages", event="stored", **late), trace.select("rpc", event="refused", **late)
    assert {row.node for row in there} == {"broker-a"}
    # Each message of the queues that are away is lost after one attempt.
    assert len(there) + len([row for row in refused if row.src == "p1"]) == 200
    assert 60 < len(there) < 140


def test_no_one_finds_a_queue_by_machine_room():
    _, trace = executed(keyed(None, SelectorName.MACHINE_ROOM))

    assert trace.select("messages", event="stored", topic=TOPIC) == []
    assert trace.select("rpc", src="p1", code=310) == []


def test_rows_of_messages_say_the_key_also_of_those_that_come_again():
    scenario = keyed(MessageKeys(5), SelectorName.HASH, consumers=1)
    (group,) = scenario.consumers
    trace = execute(attrs.evolve(scenario, consumers=(attrs.evolve(group, fail_times=1),)), for_ms=30_000)

    rows = trace.select("messages", event="consumed")
    at = {(row.topic, row.node, row.queue_id, row.offset): row.key for row in trace.select("messages", event="stored")}
    assert {row.topic for row in rows} == {TOPIC, RETRY}
    assert [row.key for row in rows] == [at[row.topic, row.broker_name, row.queue_id, row.offset] for row in rows]
    assert {row.key for row in rows} == set("12345")


def test_rows_of_messages_without_keys_say_none():
    trace = execute(keyed(consumers=1), for_ms=5_000)

    assert {(row.event, row.key) for row in trace.select("messages")} >= {("stored", ""), ("consumed", "")}
    assert {row.key for row in trace.select("messages")} == {""}
