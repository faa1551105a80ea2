"""The queue that an application chooses for a key."""

from hashlib import md5
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodes.client.producer.keys import TopicPartitions
from nodes.client.tables.queue_selectors import BY_KEY, KeyHash, SelectorName, select_by_hash, selector_of
from nodes.protocol.model import MessageQueue

KEYS = tuple(map(str, range(1, 401)))
CONSISTENT = SelectorName.CONSISTENT_HASH


def queues(count, broker="a"):
    return tuple(MessageQueue("orders", broker, number) for number in range(count))


def places(name, count, keys=KEYS):
    select = selector_of(name, lambda _stop: 0)
    return [select(queues(count), key).queue_id for key in keys]


def moved(name, before, after):
    pairs = zip(places(name, before), places(name, after), strict=True)
    return sum(pair != other for pair, other in pairs) / len(KEYS)


def test_java_s_hash_of_a_text_decides_and_the_smallest_int_is_no_special_case():
    # "polygenelubricants" is known for it: Math.abs of its hash is negative in Java.
    select = selector_of(SelectorName.HASH, lambda _stop: 0)

    assert select(queues(7), "polygenelubricants") == select_by_hash(queues(7), -(2**31)) == queues(7)[2**31 % 7]
    assert places(SelectorName.HASH, 4, ("1", "2", "17", "100")) == [1, 2, 2, 1]


def test_the_md5_of_the_key_is_read_as_bit_converter_does():
    first = md5(b"17", usedforsecurity=False).digest()

    assert places(SelectorName.MD5, 1000, ("17",)) == [int.from_bytes(first[3::-1], "big") % 1000]


@given(st.text(max_size=20), st.integers(1, 40))
def test_a_key_has_the_partition_with_the_number_of_its_queue(key, count):
    for by in KeyHash:
        select = selector_of(SelectorName(by.value), lambda _stop: 0)
        partitions = TopicPartitions("OrderEvents-P", count, by)
        assert partitions.topic_of(key) == f"OrderEvents-P{select(queues(count), key).queue_id}"
        assert partitions.topic_of(key) in partitions.topics


@given(st.text(max_size=20), st.integers(1, 40))
def test_a_key_has_one_queue(key, count):
    for name in BY_KEY:
        select = selector_of(name, lambda _stop: 0)
        assert select(queues(count), key) == select(queues(count), key)
        assert select(queues(count), key) in queues(count)


def test_one_queue_more_moves_nearly_all_keys_of_a_modulo_and_few_on_a_ring():
    for name in (SelectorName.HASH, SelectorName.MD5):
        assert all(moved(name, count, count + 1) > 0.7 for count in (4, 8, 16))
    shares = [moved(CONSISTENT, count, count + 1) for count in (4, 8, 16)]
    assert all(share < 2.5 / count for share, count in zip(shares, (5, 9, 17), strict=True))
    # A key moves to the new queue or stays.
    for before, after in pairwise(places(CONSISTENT, count) for count in range(1, 12)):
        new = max(after)
        assert all(there in (here, new) for here, there in zip(before, after, strict=True))


def test_a_random_queue_is_drawn_and_no_machine_room_is_ever_found():
    drawn = iter((2, 0))

    select = selector_of(SelectorName.RANDOM, lambda stop: next(drawn) % stop)

    assert [select(queues(3), "") for _ in range(2)] == [queues(3)[2], queues(3)[0]]
    assert selector_of(SelectorName.MACHINE_ROOM, lambda _stop: 0)(queues(3), "1") is None
