"""The retry topic of a group, which its members consume like any other, with rules of its own."""

import itertools

import pytest

from emulator.testing import RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from emulator.time.mode import TimeMode
from nodes.config import ConsumerConfig
from nodes.protocol.model import ConsumeFromWhere, PermName, TopicConfig
from support.ordered import in_order
from support.retried import consumed_from, failing, first_message_only, one_consumer, send_to_retry_topic


@pytest.mark.trap("C13")
@pytest.mark.parametrize(
    ("where", "consumed"),
    [(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, [1, 2]), (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, [])],
)
def test_a_group_that_starts_from_a_timestamp_misses_the_retries_that_one_from_the_last_offset_gets(where, consumed):
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(15_000)
        probe = await stage.probe()
        for _ in range(3):
            await send_to_retry_topic(probe, "broker-a")
        # The first message is gone, or every group without offset would start there.
        stage.node("broker-a").context.store.delete_before(RETRY, 0, 1)
        stage.start("c1")
        await stage.for_ms(40_000)

    trace = execute(a_scenario(consumers=consumer_group(1, ConsumerConfig(consume_from_where=where))), script)

    assert [row.offset for row in consumed_from(trace, RETRY)] == consumed


@pytest.mark.trap("X3")
def test_a_retry_topic_that_may_not_be_read_keeps_its_consumer_busy_every_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(35_000)
        topics = stage.node("broker-a").context.topics
        topics.update_topic_config(TopicConfig(RETRY, 1, 1, perm=PermName.WRITE), now_ms=0)
        await stage.at_ms(100_000)

    trace = execute(a_scenario(consumers=1), script)

    polled = trace.select("beliefs", node="c1", kind="route", subject=RETRY, after_ms=35_000)[0].at_ms
    passes = trace.passes("c1", after_ms=polled + 20_000)
    assert {round(after - before, -1) for before, after in itertools.pairwise(passes)} == {1_000}
    assert trace.select("ownership", topic=RETRY, event="dropped") == []


def test_a_member_that_joins_may_get_the_retry_topic_and_another_member_its_normal_queues():
    trace = execute(failing(a_scenario(consumers=2, queues=2, rate_per_s=2)), for_ms=40_000)

    (owner,) = trace.owners(topic=RETRY).values()
    both = {row.node for row in consumed_from(trace, TOPIC)}
    assert both == {"c1", "c2"}
    assert {row.node for row in consumed_from(trace, RETRY)} == set(owner)


@pytest.mark.trap("C49")
def test_all_queues_that_a_pass_takes_away_are_dropped_at_once_and_committed_one_after_the_other():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_000)
        stage.start("c2")
        await stage.at_ms(45_000)

    # Each queue is let go of when its listener has had half a second to finish, without success.
    trace = execute(in_order(a_scenario(consumers=2, queues=6, rate_per_s=12), consume_ms=4_000), script)

    drops = trace.select("ownership", node="c1", event="dropped", topic=TOPIC, after_ms=30_000)
    dropped_ms = drops[0].at_ms
    assert [row.queue_id for row in drops if row.at_ms == dropped_ms] == [3, 4, 5]
    commits = [row.sent_ms for row in trace.select("rpc", src="c1", code=15, after_ms=dropped_ms - 1, until_ms=34_000)]
    assert commits[:3] == [dropped_ms, dropped_ms + 500, dropped_ms + 1_000]


def test_what_is_sent_back_takes_the_same_way_in_memory_and_over_sockets():
    modes = (TimeMode.SIM, TimeMode.FAST)
    memory, sockets = (execute(one_consumer(3), first_message_only, for_ms=60_000, mode=mode).digest for mode in modes)

    assert memory == sockets
