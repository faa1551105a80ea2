"""What a slow consumer caches."""

import pytest

from emulator.testing import TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig

BATCH = 32


def cached_by(queue_options, *, rate_per_s=100, for_ms=30_000, queues=4):
    """How much of each queue of the topic a consumer holds that consumes nothing, and how many queues it has."""
    held = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(for_ms)
        table = stage.node("c1").rebalance.process_queues
        held.update({(queue.topic, queue.queue_id): pq.msg_count for queue, pq in table.items()})

    config = ConsumerConfig(**queue_options)
    execute(
        a_scenario(consumers=consumer_group(1, config, consume_ms=10**8), queues=queues, rate_per_s=rate_per_s), script
    )
    return [count for (topic, _), count in held.items() if topic == TOPIC], len(held)


def test_the_threshold_of_a_queue_is_looked_at_before_a_pull_so_a_batch_may_overshoot():
    counts, _ = cached_by({"pull_threshold_for_queue": 50})

    assert all(50 < count <= 50 + BATCH for count in counts)


@pytest.mark.trap("C38")
def test_the_threshold_of_a_topic_is_allocated_by_its_queues_and_that_of_the_retry_topic():
    # One message at a time: with one more than a fifth of 100 a queue pulls no more.
    counts, queues = cached_by({"pull_threshold_for_topic": 100, "pull_batch_size": 1})

    assert queues == 5
    assert counts == [21] * 4


def test_a_message_that_hangs_stops_its_queue_when_the_others_are_too_far_ahead():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        (process_queue,) = [
            pq for queue, pq in stage.node("c1").rebalance.process_queues.items() if queue.topic == TOPIC
        ]
        spans.append((process_queue.msg_count, process_queue.max_span))

    spans = []
    config = ConsumerConfig(consume_concurrently_max_span=100)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=10**8), queues=1, rate_per_s=100)
    execute(scenario, script)

    ((count, span),) = spans
    assert 100 < span <= 100 + BATCH
    assert count == span + 1
