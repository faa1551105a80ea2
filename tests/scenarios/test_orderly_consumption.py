"""One ordered queue: its lock, its batches, its commits, and what the thread that has it does next."""

import itertools

import attrs
import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from support.ordered import LOCK, consumed_by, holds, orderly, requested


def failing(scenario, fail_times):
    return attrs.evolve(
        scenario, consumers=tuple(attrs.evolve(consumer, fail_times=fail_times) for consumer in scenario.consumers)
    )


def test_every_message_is_consumed_once_and_in_the_order_of_its_queue():
    trace = execute(a_scenario(consumers=consumer_group(2, orderly(), consume_ms=90), rate_per_s=20), for_ms=40_000)

    assert {len(node) for node in trace.consumed().values()} == {1}
    assert len(trace.stored()) - len(trace.consumed()) < 10
    for queue_id in range(4):
        offsets = [row.offset for row in trace.select("messages", event="consumed", queue_id=queue_id, topic=TOPIC)]
        assert offsets == list(range(len(offsets)))


def test_a_queue_is_locked_before_it_is_acquired_and_renewed_every_20_s():
    trace = execute(a_scenario(consumers=consumer_group(1, orderly()), queues=2, rate_per_s=5), for_ms=62_000)

    rows = [(row.event, row.queue_id) for row in trace.select("ownership", topic=TOPIC)]
    assert rows == [("locked", 0), ("acquired", 0), ("locked", 1), ("acquired", 1)]
    # The first renewal, at 1 s, found an empty table.
    renewals = requested(trace, "c1", "broker-a", LOCK, after_ms=2_000)
    assert renewals == [21_005, 41_005, 61_005]


def test_batches_of_one_queue_follow_each_other_while_those_of_others_run_next_to_them():
    trace = execute(
        a_scenario(consumers=consumer_group(1, orderly(), consume_ms=500), queues=2, rate_per_s=20), for_ms=20_000
    )

    by_queue = [consumed_by(trace, "c1", queue_id=queue_id, topic=TOPIC) for queue_id in (0, 1)]
    for rows in by_queue:
        assert {later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(rows)} == {500}
    assert min(len(rows) for rows in by_queue) > 30


def test_a_batch_holds_as_many_messages_as_may_be_consumed_at_once():
    config = orderly(consume_message_batch_max_size=4)
    trace = execute(
        a_scenario(consumers=consumer_group(1, config, consume_ms=500), queues=1, rate_per_s=20), for_ms=20_000
    )

    batches = [len(list(rows)) for _, rows in itertools.groupby(consumed_by(trace, "c1"), key=lambda row: row.at_ms)]
    assert max(batches) == 4
    assert batches.count(4) > 20


@pytest.mark.parametrize(("pause_ms", "rests_ms"), [(1_000, 1_000), (0, 10), (60_000, 30_000)])
def test_a_message_that_failed_comes_again_after_the_pause_and_everything_behind_it_waits(pause_ms, rests_ms):
    config = orderly(suspend_current_queue_time_millis=pause_ms)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=50), queues=1, rate_per_s=2)
    trace = execute(failing(scenario, 2), for_ms=70_000)

    rows = consumed_by(trace, "c1")
    assert [row.offset for row in rows[:3]] == [0, 0, 0]
    assert [later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(rows[:3])] == [rests_ms + 50] * 2
    offsets = [row.offset for row in rows]
    assert offsets == sorted(offsets)
    # Nothing of what failed is committed.
    committed = trace.select("messages", event="committed", topic=TOPIC, until_ms=rows[2].at_ms)
    assert [row.offset for row in committed if row.offset > 0] == []


def test_after_60_s_a_thread_leaves_its_queue_to_another_one():
    config = orderly(consume_thread_min=1)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=4_000), queues=2, rate_per_s=4)
    trace = execute(scenario, for_ms=140_000)

    turns = [
        (queue_id, len(list(rows)))
        for queue_id, rows in itertools.groupby(consumed_by(trace, "c1", topic=TOPIC), key=lambda row: row.queue_id)
    ]
    # The 16th batch begins when 60 s are just over, not more.
    assert turns[:2] == [(0, 16), (1, 16)]


def test_a_consumer_whose_broker_is_frozen_stops_when_its_lock_is_30_s_old_and_goes_on_with_a_new_one():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.suspend("broker-a", 60_000)
        await stage.for_ms(20_000)

    trace = execute(a_scenario(consumers=consumer_group(1, orderly(), consume_ms=100), queues=1, rate_per_s=20), script)

    consumed = [row.at_ms for row in consumed_by(trace, "c1")]
    stopped = max(at_ms for at_ms in consumed if at_ms < 90_000)
    # The last lock was granted at 21 s; the batch that began within its 30 s ends after them.
    assert 51_000 <= stopped <= 51_200
    again = min(at_ms for at_ms in consumed if at_ms > 90_000)
    assert again < 96_000
    assert {len(node) for node in trace.consumed().values()} == {1}


@pytest.mark.trap("C9")
def test_a_refused_lock_is_tried_again_about_every_second_although_a_wake_up_is_due_after_half_a_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("c2")
        await stage.at_ms(90_000)

    trace = execute(a_scenario(consumers=consumer_group(2, orderly()), queues=2, rate_per_s=10), script)

    (taken,) = holds(trace, "c1", "locked", queue_id=1, topic=TOPIC)
    # c2 renewed at 21 s; its lock lives for 60 s.
    assert 81_005 < taken < 82_100
    tries = requested(trace, "c1", "broker-a", LOCK, after_ms=30_000, until_ms=taken)
    renewals = [at_ms for at_ms in tries if at_ms % 20_000 == 1_005]
    gaps = [later - earlier for earlier, later in itertools.pairwise(t for t in tries if t not in renewals)]
    assert set(gaps) == {1_006}
    assert len(gaps) == 51


@pytest.mark.trap("C41")
def test_the_queues_of_a_concurrent_consumer_are_marked_locked_although_no_one_asked_for_a_lock():
    marks = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(50_000)
        queues = stage.node("c1").rebalance.process_queues.values()
        began_ms = min(queue.last_lock_ms for queue in queues)
        marks.extend((queue.locked, queue.is_lock_expired(began_ms + 40_000)) for queue in queues)

    trace = execute(a_scenario(consumers=consumer_group(1, ConsumerConfig()), rate_per_s=5), script)

    assert requested(trace, "c1", "broker-a", LOCK) == []
    assert holds(trace, "c1", "locked") == []
    assert marks == [(True, True)] * len(marks) != []


def test_what_was_consumed_in_order_is_committed_in_order():
    trace = execute(a_scenario(consumers=consumer_group(1, orderly()), queues=1, rate_per_s=5), for_ms=30_000)

    commits = [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)]
    assert commits == sorted(commits)
    assert commits[-1] >= len(trace.stored()) - 2
    assert len(commits) > 100


def test_an_ordered_queue_whose_offset_the_broker_corrects_is_unlocked_and_taken_afresh():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c1")
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 999)
        await (await stage.probe()).ask("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)
        stage.start("c1")
        await stage.for_ms(10_000)

    trace = execute(a_scenario(consumers=consumer_group(1, orderly()), queues=1, rate_per_s=5), script)

    rows = [(row.event, row.offset) for row in trace.select("ownership", topic=TOPIC, after_ms=30_100)]
    stored = trace.select("messages", event="stored", topic=TOPIC)
    assert [event for event, _ in rows] == ["locked", "acquired", "dropped", "unlocked", "locked", "acquired"]
    (first, corrected) = [offset for event, offset in rows if event == "acquired"]
    assert (first, 150 <= corrected <= len(stored)) == (999, True)
    assert consumed_by(trace, "c1", topic=TOPIC, after_ms=30_100)[0].offset == corrected
