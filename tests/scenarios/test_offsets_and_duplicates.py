"""What is committed when, and which messages are consumed twice for it."""

import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode

PROBE_IP = "127.1.200.1"


def commits(trace, queue_id, **wanted):
    """(instant, offset, who asked) of every offset of a queue that changed at its broker."""
    rows = trace.select("messages", event="committed", topic=TOPIC, queue_id=queue_id, **wanted)
    return [(row.at_ms, row.offset, row.client_id) for row in rows]


@pytest.mark.trap("C24")
def test_what_a_listener_finishes_after_the_drop_does_not_count_and_is_consumed_again():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_300)
        stage.start("c2")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=consumer_group(2, consume_ms=400), queues=2, rate_per_s=40), script)

    (drop,) = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    late = [row for row in trace.select("messages", event="consumed", node="c1", queue_id=1) if row.at_ms > drop.at_ms]
    again = {row.offset for row in trace.select("messages", event="consumed", node="c2", queue_id=1)}
    assert 4 <= len(late) <= 8
    assert {row.offset for row in late} <= again
    (taken,) = trace.select("ownership", node="c2", event="acquired", topic=TOPIC)
    assert taken.offset == late[0].offset
    assert [node for _, _, node in commits(trace, 1, after_ms=drop.at_ms + 2) if node.startswith("127.1.10.1:")] == []


@pytest.mark.trap("C24")
def test_results_of_listeners_from_before_a_drop_do_not_move_the_offset_of_the_queue_taken_again():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_300)
        stage.start("c2")
        await stage.at_ms(30_600)
        await stage.kill("c2")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=consumer_group(2, consume_ms=5_000), queues=2, rate_per_s=2), script)

    again = trace.select("ownership", node="c1", event="acquired", topic=TOPIC)[-1]
    assert (again.queue_id, round(again.at_ms, -2)) == (1, 31_300)
    # The first new result can come half a second and one listener's time later.
    first_new = again.at_ms + 5_500
    old_results = trace.select("messages", event="consumed", queue_id=1, after_ms=again.at_ms, until_ms=first_new)
    assert len(old_results) >= 3
    assert [offset for _, offset, _ in commits(trace, 1, after_ms=again.at_ms, until_ms=first_new)] == []
    assert commits(trace, 1, after_ms=first_new) != []


@pytest.mark.trap("C6")
@pytest.mark.trap("C11")
def test_two_owners_both_consume_and_the_newcomer_starts_where_the_other_was_a_while_ago():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(22_000)
        stage.start("c2")
        await stage.at_ms(50_000)

    # No one reports c1 of the newcomer: it keeps the queue until its own tick.
    broker = BrokerConfig(notify_consumer_ids_changed_enable=False)
    trace = execute(a_scenario(consumers=2, queues=2, rate_per_s=20, brokers=broker_groups(config=broker)), script)

    (taken,) = trace.select("ownership", node="c2", event="acquired", topic=TOPIC)
    (drop,) = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    first = next(row for row in trace.select("rpc", src="c2", code=11, kind="request"))
    assert first.sent_ms == taken.at_ms + 500
    committed = [offset for at_ms, offset, _ in commits(trace, 1) if at_ms < first.sent_ms]
    assert taken.offset < committed[-1]
    assert 15_000 < drop.at_ms - taken.at_ms < 20_000
    both = [
        node for (_, queue_id, _), node in trace.consumed().items() if queue_id == 1 and sorted(node) == ["c1", "c2"]
    ]
    assert abs(len(both) - 10 * (drop.at_ms - taken.at_ms) / 1_000) < 10
    assert [node for (_, queue_id, _), node in trace.consumed().items() if queue_id == 0 and node != ["c1"]] == []


@pytest.mark.trap("C10")
def test_a_stranger_may_commit_an_offset_that_moves_back_and_the_next_owner_starts_there():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c1")
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 3)
        probe = await stage.probe()
        await probe.ask("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)
        stage.start("c1")
        await stage.for_ms(5_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=5), script)

    before = [offset for at_ms, offset, _ in commits(trace, 0) if at_ms < 30_003]
    (moved,) = [row for row in commits(trace, 0) if row[2].startswith(PROBE_IP)]
    assert before[-1] > 100
    assert moved[1] == 3
    taken = trace.select("ownership", event="acquired", topic=TOPIC)[-1]
    assert taken.offset == 3
    assert sum(len(node) == 2 for node in trace.consumed().values()) == before[-1] - 3


@pytest.mark.trap("C12")
def test_a_new_group_that_wants_the_last_offset_gets_all_messages_while_the_first_is_in_memory():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(20_000)
        stage.start("c1")
        await stage.at_ms(25_000)

    trace = execute(a_scenario(consumers=1, queues=2, rate_per_s=5), script)

    assert [row.offset for row in trace.select("ownership", event="acquired", topic=TOPIC)] == [0, 0]
    assert len(trace.stored()) - len(trace.consumed()) <= 1
    assert min(row.at_ms for row in trace.select("messages", event="consumed")) > 21_500


@pytest.mark.trap("C25")
def test_the_timer_commits_owned_queues_only_and_nothing_without_any():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.kill("p1")
        await stage.kill("c2")
        await stage.at_ms(27_000)
        stage.start("c2")
        await stage.at_ms(64_000)

    # An idle pull of a queue that was given away still answers, and its offset comes into memory once more.
    trace = execute(a_scenario(consumers=2, queues=4, rate_per_s=8), script)

    def sent(begin_ms, end_ms):
        return [
            round(row.sent_ms, -2) for row in trace.select("rpc", src="c1", code=15, after_ms=begin_ms, until_ms=end_ms)
        ]

    assert sent(24_500, 26_000) == [25_000] * 5
    given = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    assert len(given) == 2
    for tick in (30_000, 35_000, 45_000, 60_000):
        assert sent(tick - 500, tick + 500) == [tick] * 3


def test_a_consumer_with_no_queue_commits_nothing():
    trace = execute(a_scenario(consumers=2, queues=1, rate_per_s=5), for_ms=40_000)

    idle = next(name for name in ("c1", "c2") if [name] not in trace.owners().values())
    assert idle == "c2"
    assert trace.select("rpc", src="c2", code=15) == []
    assert trace.select("rpc", src="c1", code=15) != []


@pytest.mark.trap("X20")
def test_a_consumer_that_was_frozen_for_165_s_gets_its_queues_back_and_consumes_the_freeze_again():
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.suspend("c2", 165_000)
        await stage.for_ms(60_000)

    trace = execute(a_scenario(consumers=2, queues=2, rate_per_s=10), script)

    took_over = trace.select("ownership", node="c1", event="acquired", topic=TOPIC, after_ms=40_000)
    assert len(took_over) == 1
    assert 140_000 < took_over[0].at_ms < 185_000
    # c2 never drops its queue, keeps its old position and reads on from there.
    assert trace.select("ownership", node="c2", topic=TOPIC, after_ms=205_000) == []
    assert trace.owners() == {("broker-a", 0): ["c1"], ("broker-a", 1): ["c2"]}
    twice = [key for key, node in trace.consumed().items() if len(node) > 1]
    assert {queue_id for _, queue_id, _ in twice} == {1}
    # Queue 1 gets 5 messages a second.
    assert 800 < len(twice) < 840
    regressions = [
        (before[1], after[1])
        for before, after in zip(commits(trace, 1), commits(trace, 1)[1:], strict=False)
        if after[1] < before[1]
    ]
    assert regressions != []
    assert max(before - after for before, after in regressions) > 700


def test_a_killed_consumer_leaves_at_most_what_was_under_way_to_be_consumed_again():
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_050)
        await stage.kill("c2")
        await stage.for_ms(5_000)

    trace = execute(a_scenario(consumers=2, queues=2, rate_per_s=20), script)

    assert sum(len(node) > 1 for node in trace.consumed().values()) <= 2
    assert set(trace.stored()[:-1]) - set(trace.consumed()) == set()


def test_a_pull_carries_the_commit_so_offsets_lag_by_one_message_not_by_five_seconds():
    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=4), for_ms=30_000)

    consumed = {row.offset: row.at_ms for row in trace.select("messages", event="consumed")}
    lags = [at_ms - consumed[offset - 1] for at_ms, offset, _ in commits(trace, 0) if at_ms > 11_000]
    assert len(lags) > 70
    assert max(lags) < 260


def test_without_commits_on_pulls_only_the_timer_would_notify_the_broker():
    config = ConsumerConfig(pull_interval=60_000, pull_batch_size=1)
    trace = execute(a_scenario(consumers=consumer_group(1, config), queues=1, rate_per_s=1), for_ms=14_000)

    # One message was consumed; no pull followed it; the first timer is at 10 s.
    assert [(round(at_ms, -2), offset) for at_ms, offset, _ in commits(trace, 0)] == [(10_000, 1)]
