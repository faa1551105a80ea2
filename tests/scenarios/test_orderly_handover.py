"""Ordered queues that change hands: who waits for whom, and who does not."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from emulator.network.link import LinkEffect, LinkRule
from emulator.spec import load
from emulator.spec.model.networks import Network
from emulator.spec.model.scenario import TopicSpec
from emulator.testing import TOPIC, Stage, a_scenario, consumer_group, execute
from emulator.time.mode import TimeMode
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from support.ordered import LOCK, UNLOCK, consumed_by, holds, orderly, requested

UPDATE_OFFSET, UNREGISTER, PULL = (
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.UNREGISTER_CLIENT,
    RequestCode.PULL_MESSAGE,
)


def locked_at(trace, broker):
    """topic@brokerName@queueId -> client id, as a broker held it last."""
    return json.loads(trace.select("beliefs", node=broker, kind="queue_locks")[-1].value)


@pytest.mark.parametrize(("consume_ms", "hand_over_ms"), [(300, 0), (2_000, 20_000)])
def test_a_queue_changes_hands_at_once_if_its_batch_ends_within_half_a_second_else_a_tick_later(
    consume_ms, hand_over_ms
):
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.at_ms(60_000)

    trace = execute(
        a_scenario(consumers=consumer_group(2, orderly(), consume_ms=consume_ms), queues=2, rate_per_s=20), script
    )

    (dropped,) = holds(trace, "c1", "dropped", topic=TOPIC)
    (unlocked,) = holds(trace, "c1", "unlocked", topic=TOPIC)
    (taken,) = holds(trace, "c2", "acquired", topic=TOPIC)
    assert hand_over_ms <= unlocked - dropped <= hand_over_ms + 510
    assert unlocked < taken < unlocked + 1_100
    # The pass in which the queue is dropped is a balanced one; the result of the batch that ran does not count.
    (late,) = [row for row in consumed_by(trace, "c1", queue_id=1) if row.at_ms > dropped]
    assert late.at_ms - dropped < consume_ms
    twice = [offset for (_, queue_id, offset), node in trace.consumed().items() if queue_id == 1 and len(node) > 1]
    assert twice == [late.offset] == [consumed_by(trace, "c2", queue_id=1)[0].offset]


@pytest.mark.trap("C43")
def test_a_dropped_queue_is_unlocked_by_force_20_s_after_its_last_lock_while_its_listener_still_runs():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.at_ms(150_000)

    trace = execute(
        a_scenario(consumers=consumer_group(2, orderly(), consume_ms=60_000), queues=2, rate_per_s=2), script
    )

    (dropped,) = holds(trace, "c1", "dropped", topic=TOPIC)
    (forced,) = holds(trace, "c1", "unlocked", topic=TOPIC)
    # The renewal of 41 s leaves a dropped queue out: the last one was at 21 s.
    assert 21_006 + 20_000 < forced < 21_006 + 20_000 + 6_000
    assert dropped < 26_000
    (taken,) = holds(trace, "c2", "acquired", topic=TOPIC)
    (old,) = [row.at_ms for row in consumed_by(trace, "c1", queue_id=1) if row.at_ms > dropped]
    (new, *_) = [row.at_ms for row in consumed_by(trace, "c2", queue_id=1)]
    # Both listeners are inside the queue.
    assert taken < new - 60_000 < old < new


@pytest.mark.trap("C8")
def test_a_queue_that_comes_back_before_it_was_let_go_of_is_dead_until_no_one_has_pulled_it_for_120_s():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.at_ms(29_000)
        await stage.kill("c2")
        await stage.at_ms(180_000)

    trace = execute(
        a_scenario(consumers=consumer_group(2, orderly(), consume_ms=15_000), queues=2, rate_per_s=2), script
    )

    (dropped,) = holds(trace, "c1", "dropped", topic=TOPIC)
    assert dropped < 29_000
    (again,) = holds(trace, "c1", "acquired", topic=TOPIC, queue_id=1, after_ms=dropped)
    assert 120_000 < again - dropped < 122_000
    # The batch that ran is the last; what follows belongs to the queue that was taken afresh.
    consumed = [row.at_ms for row in consumed_by(trace, "c1", queue_id=1, after_ms=dropped)]
    assert [at_ms for at_ms in consumed if at_ms < again] == [31_520]
    assert len([at_ms for at_ms in consumed if at_ms > again]) == 2
    passes = trace.passes("c1", after_ms=32_000, until_ms=again)
    assert {later - earlier < 1_100 for earlier, later in pairwise(passes)} == {True}


def slow_to_b(stage):
    rule = LinkRule("slow", LinkEffect.DELAY, lambda a, b: (a, b) == ("c1", "broker-b"), delay_ms=800)
    stage.world.fabric.add_rule(rule)


@pytest.mark.trap("C7")
@pytest.mark.parametrize("consume_orderly", [True, False])
def test_first_pulls_of_ordered_queues_of_a_slow_broker_stall_the_pulls_of_all_others(consume_orderly):
    async def script(stage: Stage) -> None:
        slow_to_b(stage)
        await stage.at_ms(60_000)

    config = ConsumerConfig(consume_orderly=consume_orderly)
    brokers = ("broker-a", "broker-b")
    trace = execute(a_scenario(consumers=consumer_group(1, config), brokers=brokers, rate_per_s=20), script)

    pulls = [
        row.sent_ms for row in trace.select("rpc", src="c1", dst="broker-a", code=int(PULL)) if row.kind == "request"
    ]
    longest_ms = max(later - earlier for earlier, later in pairwise(pulls))
    first_to_b = requested(trace, "c1", "broker-b", PULL)[0]
    assert (longest_ms > 3_200) is consume_orderly
    questions = requested(trace, "c1", "broker-b", RequestCode.QUERY_CONSUMER_OFFSET, until_ms=first_to_b)
    assert len(questions) >= (5 if consume_orderly else 4)


@pytest.mark.trap("C26")
def test_an_orderly_stop_gives_the_locks_back_before_it_commits():
    async def script(stage: Stage) -> None:
        await stage.at_ms(33_000)
        await stage.stop("c2")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=consumer_group(2, orderly(), consume_ms=90), queues=2, rate_per_s=10), script)

    def sent(code):
        rows = trace.select("rpc", src="c2", dst="broker-a", code=int(code), event="delivered", after_ms=32_500)
        return [row.sent_ms for row in rows if row.kind != "response"]

    (unlocked,) = sent(UNLOCK)
    (committed,) = sent(UPDATE_OFFSET)
    (gone,) = sent(UNREGISTER)
    # The answer to the unlock is waited for.
    assert (committed - unlocked, gone - committed) == (2, 0)
    (unmarked,) = holds(trace, "c2", "unlocked", topic=TOPIC)
    assert unmarked == committed


@pytest.mark.trap("C27")
def test_unsubscribing_neither_commits_nor_unlocks():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.node("c1").unsubscribe(TOPIC)
        await stage.at_ms(70_000)

    topics = (TopicSpec(TOPIC, ("broker-a",), 2), TopicSpec("other", ("broker-a",), 1))
    trace = execute(
        a_scenario(topics=topics, consumers=consumer_group(1, orderly(), topics=(TOPIC, "other")), rate_per_s=10),
        script,
    )

    assert len(holds(trace, "c1", "dropped", topic=TOPIC)) == 2
    (gone, _) = holds(trace, "c1", "dropped", topic=TOPIC)
    assert requested(trace, "c1", "broker-a", UNLOCK) == []
    committed = trace.select("messages", event="committed", topic=TOPIC, after_ms=gone)
    assert committed == []
    assert {f"{TOPIC}@broker-a@{queue_id}" for queue_id in (0, 1)} <= locked_at(trace, "broker-a").keys()
    # The other topic goes on: its lock alone is renewed.
    assert len(requested(trace, "c1", "broker-a", LOCK, after_ms=gone)) >= 1


def test_the_file_of_the_orderly_hand_over_says_what_its_comments_promise():
    scenario = load(Path(__file__).parents[2] / "examples" / "orderly_handover.toml")
    begins = {timed.id: timed.at_ms for timed in scenario.faults.faults}

    async def script(stage: Stage) -> None:
        await stage.at_ms(begins["farewell"])
        await stage.stop("consumer-2")
        await stage.at_ms(80_000)
        stage.start("consumer-2")
        await stage.at_ms(begins["crash"])
        await stage.kill("consumer-2")
        await stage.at_ms(270_000)
        stage.start("consumer-2")
        await stage.at_ms(scenario.run_for_ms)

    trace = execute(scenario, script)

    consumed = [row.at_ms for row in trace.select("messages", event="consumed", topic=TOPIC, queue_id=2)]
    pauses = {earlier: later - earlier for earlier, later in pairwise(consumed) if later - earlier > 600}
    assert [round(at_ms, -3) for at_ms in pauses] == [60_000, 80_000, 150_000, 270_000]
    farewell, newcomer, crash, _ = pauses.values()
    assert farewell < 1_000
    assert 1_400 < newcomer < 1_700
    assert 52_000 <= crash < 53_000
    twice = [node for node in trace.consumed().values() if len(node) > 1]
    assert twice == [["consumer-1", "consumer-2"]] * 4


def test_a_hand_over_leaves_the_same_trace_in_memory_and_over_loopback():
    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.at_ms(30_000)

    scenario = a_scenario(
        consumers=consumer_group(2, orderly(), consume_ms=300), queues=2, network=Network(1, 2), rate_per_s=10
    )

    assert execute(scenario, script, mode=TimeMode.FAST).digest == execute(scenario, script).digest != ""
