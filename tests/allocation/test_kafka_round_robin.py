"""Kafka's round robin over all topics of a group, next to RocketMQ's, which allocates each topic alone."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.kafka_round_robin import AllocateKafkaRoundRobin, allocate_round_robin
from nodes.protocol.model import MessageQueue


def queues(topic, count):
    return [MessageQueue(topic, "b", number) for number in range(count)]


def texts(shares):
    return {cid: " ".join(f"{queue.topic}{queue.queue_id}" for queue in mine) for cid, mine in shares.items()}


TWO = {"u": queues("u", 3), "t": queues("t", 3)}


def test_topics_are_merged_in_their_order_and_dealt_out_in_one_circle():
    shares = allocate_round_robin(TWO, {"b": ["t", "u"], "a": ["u", "t"]})

    assert texts(shares) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}


def test_a_member_is_passed_over_for_topics_that_it_does_not_subscribe_to():
    shares = allocate_round_robin(TWO, {"a": ["t", "u"], "b": ["t", "u"], "c": ["u"]})

    assert texts(shares) == {"a": "t0 t2 u2", "b": "t1 u0", "c": "u1"}


def test_with_unequal_subscriptions_it_need_not_be_balanced():
    """The example of Kafka's own documentation."""
    wanted = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    shares = allocate_round_robin({f"t{n}": queues(f"t{n}", n + 1) for n in range(3)}, wanted)

    assert [len(mine) for mine in shares.values()] == [1, 1, 4]


def test_a_topic_that_no_one_subscribes_to_is_left_out():
    assert texts(allocate_round_robin(TWO, {"a": ["t"]})) == {"a": "t0 t1 t2"}
    assert allocate_round_robin(TWO, {}) == {}


def test_twenty_topics_are_even_in_sum_where_topic_by_topic_the_first_member_has_twice_as_much():
    """Twenty topics of five queues, four members: 40, 20, 20, 20 with AVG."""
    cids = ["a", "b", "c", "d"]
    topics = [queues(f"t{number:02}", 5) for number in range(20)]
    merged = [queue for mq_all in topics for queue in mq_all]

    alone = [sum(len(allocate_averagely("g", cid, mq_all, cids)) for mq_all in topics) for cid in cids]
    together = [len(AllocateKafkaRoundRobin()("g", cid, merged, cids)) for cid in cids]

    assert (alone, together) == ([40, 20, 20, 20], [25, 25, 25, 25])


def test_a_member_listed_twice_has_one_place_in_the_circle_and_a_stranger_none():
    allocate = AllocateKafkaRoundRobin()

    assert [len(allocate("g", cid, queues("t", 4), ["a", "a", "b"])) for cid in ("a", "b", "c")] == [2, 2, 0]


@given(st.integers(1, 30), st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True).map(sorted))
def test_of_one_topic_it_is_avg_by_circle(count, cids):
    allocate = AllocateKafkaRoundRobin()

    for cid in cids:
        assert allocate("g", cid, queues("t", count), cids) == allocate_by_circle("g", cid, queues("t", count), cids)


wanted = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("tuvw"), unique=True), min_size=1)
sizes = st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 9))


@given(sizes, wanted)
def test_every_queue_of_a_wanted_topic_has_one_owner_who_wants_it(counts, topics):
    shares = allocate_round_robin({topic: queues(topic, count) for topic, count in counts.items()}, topics)

    owned = sorted(queue for mine in shares.values() for queue in mine)
    wants = {topic for mine in topics.values() for topic in mine}
    assert owned == sorted(queue for topic, count in counts.items() if topic in wants for queue in queues(topic, count))
    assert all(queue.topic in topics[cid] for cid, mine in shares.items() for queue in mine)


@given(sizes, st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
def test_with_equal_subscriptions_sums_differ_by_one_at_most_and_order_does_not_matter(counts, cids):
    by_topic = {topic: queues(topic, count) for topic, count in counts.items()}
    shares = allocate_round_robin(by_topic, dict.fromkeys(cids, "tuvw"))
    turned = allocate_round_robin(dict(reversed(by_topic.items())), dict.fromkeys(reversed(cids), "wvut"))

    assert shares == turned
    held = [len(mine) for mine in shares.values()]
    assert max(held) - min(held) <= 1
