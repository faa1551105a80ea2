"""How much a consumer caches before it stops pulling for a moment."""

import pytest

from nodes.client.tables.process_queue import ProcessQueue, PullThresholds
from nodes.config import ConsumerConfig
from nodes.fields import FieldError
from nodes.protocol.model import Message

MIB = 1024 * 1024


def cached(offsets, body=b""):
    queue = ProcessQueue(now_ms=0)
    queue.put_messages([Message("t", 0, offset, 0, 0, 0, body) for offset in offsets])
    return queue


def test_a_queue_may_hold_the_threshold_but_not_more():
    thresholds = PullThresholds(ConsumerConfig(pull_threshold_for_queue=10))

    assert not thresholds.is_flow_controlled(cached(range(10)))
    assert thresholds.is_flow_controlled(cached(range(11)))


def test_sizes_count_in_whole_mib():
    thresholds = PullThresholds(ConsumerConfig(pull_threshold_size_for_queue=1))

    assert not thresholds.is_flow_controlled(cached([0], bytes(2 * MIB - 1)))
    assert thresholds.is_flow_controlled(cached([0], bytes(2 * MIB)))


def test_the_span_counts_only_where_messages_are_consumed_out_of_order():
    apart = cached([0, 2_001])

    assert not PullThresholds(ConsumerConfig()).is_flow_controlled(cached([0, 2_000]))
    assert PullThresholds(ConsumerConfig()).is_flow_controlled(apart)
    assert not PullThresholds(ConsumerConfig(consume_orderly=True)).is_flow_controlled(apart)


@pytest.mark.trap("C38")
@pytest.mark.trap("X13")
def test_what_a_topic_may_hold_is_allocated_by_all_queues_and_stays_when_there_are_none():
    thresholds = PullThresholds(ConsumerConfig(pull_threshold_for_topic=100, pull_threshold_size_for_topic=7))
    seen = [(thresholds.for_queue, thresholds.size_for_queue_mib)]

    for queue_count in (4, 0, 3, 1_000):
        thresholds.allocate_queues(queue_count)
        seen.append((thresholds.for_queue, thresholds.size_for_queue_mib))

    assert seen == [(1_000, 100), (25, 1), (25, 1), (33, 2), (1, 1)]


def test_without_thresholds_for_a_topic_those_for_a_queue_stay():
    thresholds = PullThresholds(ConsumerConfig(pull_threshold_for_queue=10))
    thresholds.allocate_queues(5)

    assert (thresholds.for_queue, thresholds.size_for_queue_mib) == (10, 100)


@pytest.mark.parametrize("option", ["pull_threshold_for_topic", "pull_threshold_size_for_topic"])
def test_a_topic_that_may_hold_nothing_is_a_mistake(option):
    with pytest.raises(FieldError, match="ForTopic: expected -1 or a whole number >= 1"):
        ConsumerConfig(**{option: 0})
