"""A scale while messages are in process: with and without a single active consumer for each queue."""

import attrs
import pytest

from emulator.testing import GROUP, TOPIC, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig, Exclusivity, StatefulSetConfig
from support.statefulsets import ORDINAL, a_statefulset, at_once, processed, twice_at_once

CONSUME_MS = 2_000
PATIENT = StatefulSetConfig(liveness_probe_failure_threshold=1_000)


def scaled(exclusivity, before, after):
    """A trace with a scale at 30 s, while listeners have messages of every queue."""

    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin(f"scale {GROUP} {after}")

    config = attrs.evolve(ORDINAL, exclusivity=exclusivity)
    scenario = a_statefulset(before, consumer=config, consume_ms=CONSUME_MS, rate_per_s=8)
    return execute(scenario, script, for_ms=60_000)


def active(trace, queue_id):
    """(seconds, who) of each change of the active consumer of a queue."""
    rows = trace.select("beliefs", kind="active_consumer", subject=f"{GROUP}/{TOPIC}/broker-a/{queue_id}")
    return [(row.at_s, row.held) for row in rows]


def test_without_exclusivity_a_scale_has_messages_processed_by_two_pods_at_once():
    done = processed(scaled(Exclusivity.NONE, 1, 2), CONSUME_MS)

    assert twice_at_once(done)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 4), (4, 3)])
def test_with_a_single_active_consumer_no_queue_is_processed_by_two_pods_at_once_and_nothing_twice(before, after):
    done = processed(scaled(Exclusivity.SINGLE_ACTIVE, before, after), CONSUME_MS)

    assert at_once(done) == []
    messages = [(item.queue_id, item.offset) for item in done]
    assert len(messages) == len(set(messages)) > 300


def test_the_next_consumer_is_active_when_the_one_before_has_finished_and_cancelled():
    trace = scaled(Exclusivity.SINGLE_ACTIVE, 1, 2)

    (_, first), (handed_over_s, second) = active(trace, 3)
    assert first != second
    last = max(item.end_ms for item in processed(trace, CONSUME_MS) if item.node == "consumer-0" and item.queue_id == 3)
    assert last / 1_000 <= handed_over_s <= last / 1_000 + 2


@pytest.mark.parametrize("rate_per_s", [1, 10])
def test_a_pull_that_was_held_when_its_consumer_cancelled_does_not_register_it_again(rate_per_s):
    async def script(stage):
        for at_ms, replicas in ((30_000, 4), (60_000, 2), (90_000, 3)):
            await stage.at_ms(at_ms)
            await stage.begin(f"scale {GROUP} {replicas}")

    config = attrs.evolve(ORDINAL, exclusivity=Exclusivity.SINGLE_ACTIVE)
    scenario = a_statefulset(2, consumer=config, consume_ms=50, rate_per_s=rate_per_s, queues=10)
    trace = execute(scenario, script, for_ms=120_000)

    stored = [(row.queue_id, row.offset) for row in trace.select("messages", event="stored", topic=TOPIC)]
    done = {(item.queue_id, item.offset): item.end_ms for item in processed(trace, 50)}
    assert [item for item in stored[: -3 * rate_per_s] if item not in done] == []
    assert at_once(processed(trace, 50)) == []
    reached = {}
    for row in trace.select("messages", event="committed", topic=TOPIC):
        assert row.offset >= reached.get(row.queue_id, 0)
        reached[row.queue_id] = row.offset


def test_when_the_connection_of_the_active_consumer_dies_the_next_one_is_active_at_once():
    async def script(stage):
        await stage.at_ms(30_000)
        # Both believe in their own number of replicas, so both want the queues 2 and 3.
        stage.cut("consumer-0", "kubernetes")
        await stage.begin(f"scale {GROUP} 2")
        await stage.at_ms(40_000)
        assert len(active(stage.trace, 3)) == 1
        await stage.kill("consumer-0")

    config = attrs.evolve(ORDINAL, exclusivity=Exclusivity.SINGLE_ACTIVE)
    scenario = a_statefulset(1, consumer=config, consume_ms=200, rate_per_s=8)
    trace = execute(scenario, script, for_ms=50_000)

    assert [40 <= at_s < 40.1 for at_s, _ in active(trace, 3)[1:]] == [True]
    assert at_once(processed(trace, 200)) == []


def test_a_suspended_active_consumer_keeps_its_queues_until_the_broker_gives_its_connection_up():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("cut kubernetes consumer-0")  # or the kubelet would kill it
        await stage.begin(f"scale {GROUP} 2")
        await stage.at_ms(40_000)
        await stage.suspend("consumer-0", 150_000)

    config = attrs.evolve(ORDINAL, exclusivity=Exclusivity.SINGLE_ACTIVE)
    base = a_statefulset(1, consumer=config, consume_ms=3_000, rate_per_s=8)
    spec = attrs.evolve(base.statefulsets[0], config=PATIENT)
    trace = execute(attrs.evolve(base, statefulsets=(spec,)), script, for_ms=220_000)

    changed_s, _ = active(trace, 3)[1]
    assert 150 < changed_s < 172
    # What it had when it was suspended is still in process when the next one gets it.
    assert twice_at_once(processed(trace, 3_000))


@pytest.mark.parametrize("exclusivity", [Exclusivity.SINGLE_ACTIVE, Exclusivity.LEASE])
def test_members_of_an_ordinary_group_can_be_exclusive_too(exclusivity):
    async def script(stage):
        await stage.at_ms(40_000)
        await stage.begin(f"scale {GROUP} 3")
        await stage.at_ms(80_000)
        await stage.stop("c1")

    config = ConsumerConfig(exclusivity=exclusivity)
    scenario = a_scenario(consumers=consumer_group(2, config, consume_ms=CONSUME_MS), queues=6, rate_per_s=6)
    done = processed(execute(scenario, script, for_ms=120_000), CONSUME_MS)

    assert at_once(done) == []
    messages = [(item.queue_id, item.offset) for item in done]
    assert len(messages) == len(set(messages)) > 600
