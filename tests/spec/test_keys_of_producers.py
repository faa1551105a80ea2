"""Keys and selectors of producers, as scenario files describe them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from nodes.client.producer.keys import KeyDistribution, MessageKeys, TopicPartitions
from nodes.client.tables.queue_selectors import KeyHash, SelectorName
from support.every_case import each_case
from support.mistakes import only_mistake

TEXT = """
[scenario]
name = "keys"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[producer]]
group = "shop"
topic = "orders"
"""
ZIPF = 'keys = { distribution = "zipf", exponent = 1.5 }'


@each_case(
    ("answer", "keys", "select"),
    [
        ("", None, None),
        ("keys = {}", MessageKeys(), None),
        ("keys = { count = 7 }", MessageKeys(7), None),
        (ZIPF, MessageKeys(distribution=KeyDistribution.ZIPF, exponent=1.5), None),
        (
            'keys = { distribution = "hot", hot_percent = 0 }\nselect = "hash"',
            MessageKeys(distribution=KeyDistribution.HOT, hot_percent=0),
            SelectorName.HASH,
        ),
        ('select = "random"', None, SelectorName.RANDOM),
        ('select = "machine_room"', None, SelectorName.MACHINE_ROOM),
    ],
)
def test_a_producer_says_which_keys_its_messages_have_and_how_it_chooses_queues(answer, keys, select):
    scenario = loads(TEXT + answer, "text")

    assert (scenario.producers[0].keys, scenario.producers[0].select) == (keys, select)
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("answer", "reported"),
    [
        ("keys = 7", "producer[0].keys: expected a table, not 7"),
        ("keys = { counts = 7 }", 'producer[0].keys.counts: unknown key; did you mean "count"?'),
        ("keys = { count = 0 }", "producer[0].keys.count: expected a whole number >= 1, not 0"),
        (
            'keys = { distribution = "odd" }',
            'keys.distribution: expected one of uniform, zipf, hot, in_turn, not "odd"',
        ),
        ("keys = { exponent = 2 }", 'producer[0].keys.exponent: expected distribution = "zipf" with it'),
        ('select = "hsh"', "producer[0].select: expected one of hash, md5, consistent_hash, random, machine_room"),
        ('select = "hash"', "producer[0].select: expected keys with it: hash chooses by the key"),
        (
            'select = "random"\nlocal_transaction = "commit"',
            "producer[0].select: expected none: RocketMQ selects no queue for a transaction",
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line(answer, reported):
    with pytest.raises(SpecError) as caught:
        loads(TEXT + answer, "text")
    assert reported in only_mistake(caught.value)
    assert "\n" not in only_mistake(caught.value)


def partitioned(producer, *topics):
    text = TEXT.replace('name = "orders"', 'name = "orders-P0"').replace('topic = "orders"', producer)
    return text + "".join(f'\n[[topic]]\nname = "{topic}"' for topic in topics)


PARTITIONS = 'partitions = { prefix = "orders-P", count = 3, by = "md5" }'


def test_partitions_are_topics_that_a_producer_sends_to():
    scenario = loads(partitioned(f"{PARTITIONS}\nkeys = {{}}", "orders-P1", "orders-P2"), "text")

    (producer,) = scenario.producers
    assert producer.topics == ("orders-P0", "orders-P1", "orders-P2")
    assert producer.partitions == TopicPartitions("orders-P", 3, KeyHash.MD5)
    assert from_dict(to_dict(scenario)) == scenario


def test_partitions_in_a_namespace_have_its_full_names():
    producer = f'{PARTITIONS}\nkeys = {{}}\noptions = {{ namespace = "INST" }}'
    text = partitioned(producer, "INST%orders-P0", "INST%orders-P1", "INST%orders-P2")
    assert loads(text, "text").producers[0].topics == ("INST%orders-P0", "INST%orders-P1", "INST%orders-P2")


@each_case(
    ("producer", "reported"),
    [
        ("", "producer[0].topic: missing; expected a text, or partitions in its place"),
        (f"{PARTITIONS}\nkeys = {{}}", 'producer[0].partitions: unknown topic "orders-P1"; did you mean "orders-P0"?'),
        ('partitions = { prefix = "orders-P", count = 1 }', "producer[0].partitions: expected keys with them"),
        (
            'partitions = { prefix = "orders-P", count = 1 }\nkeys = {}\ntopic = "orders-P0"',
            "producer[0].topic: expected none with partitions, which name the topics",
        ),
        ('partitions = "orders-P"', "producer[0].partitions: expected a table, not "),
        ('partitions = { prefix = "orders-P" }', "producer[0].partitions.count: missing"),
        ("partitions = { count = 1 }", "producer[0].partitions.prefix: missing; expected a text"),
        ('partitions = { prefix = "orders-P", count = 0 }', "partitions.count: expected a whole number >= 1, not 0"),
        (
            'partitions = { prefix = "orders-P", count = 1, by = "sha" }',
            "producer[0].partitions.by: expected one of hash, md5, not 'sha'",
        ),
    ],
)
def test_a_mistake_about_partitions_is_one_line(producer, reported):
    with pytest.raises(SpecError) as caught:
        loads(partitioned(producer), "text")
    assert reported in only_mistake(caught.value)
    assert "\n" not in only_mistake(caught.value)
