"""Messages that a listener failed with: back to their broker, and again after a while."""

import itertools

import attrs
import pytest

from emulator.spec.model.scenario import BrokerSpec, TopicSpec
from emulator.testing import RETRY, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from support.retried import (
    DELAYED,
    DLQ,
    SEND,
    SEND_BACK,
    configure,
    consumed_from,
    failing,
    first_message_only,
    one_consumer,
    send_to_retry_topic,
    sent,
    stored_in,
)

LADDER_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
QUICK_S = tuple(range(10, 26))
"""The same number of levels, of which all are over after minutes instead of hours."""
TICK_MS = 110
"""The delay service looks each 100 ms."""


def test_a_message_that_failed_is_stored_under_the_retry_topic_and_comes_again_after_10_s():
    trace = execute(one_consumer(), first_message_only, for_ms=30_000)

    (failed,) = consumed_from(trace, TOPIC)
    (back,) = stored_in(trace, DELAYED)
    (again,) = consumed_from(trace, RETRY)
    assert back.at_ms == failed.at_ms + 1
    assert 10_000 <= again.at_ms - back.at_ms <= 10_000 + TICK_MS
    assert stored_in(trace, DLQ) == []


def test_a_message_that_was_sent_back_does_not_hold_the_offset_of_its_queue():
    trace = execute(one_consumer(100), first_message_only, for_ms=11_000)

    commits = [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)]
    assert commits[-1] == 1
    assert consumed_from(trace, RETRY) == []


@pytest.mark.parametrize("ladder_s", [QUICK_S, pytest.param(LADDER_S, marks=pytest.mark.slow)])
def test_sixteen_deliveries_again_follow_the_ladder_and_the_seventeenth_failure_makes_a_dead_letter(ladder_s):
    levels = BrokerConfig(message_delay_level=" ".join(f"{delay_s}s" for delay_s in (1, 5, *ladder_s)))
    scenario = attrs.evolve(one_consumer(100), brokers=broker_groups(config=levels if ladder_s is QUICK_S else None))
    trace = execute(scenario, first_message_only, for_ms=1_000 * sum(ladder_s) + 60_000)

    instants = [row.at_ms for row in (*consumed_from(trace, TOPIC), *consumed_from(trace, RETRY))]
    gaps = [later - earlier for earlier, later in itertools.pairwise(instants)]
    assert len(instants) == 17
    assert [round(gap / 1_000) for gap in gaps] == list(ladder_s)
    (dead,) = stored_in(trace, DLQ)
    assert (dead.queue_id, dead.at_ms) == (0, instants[-1] + 1)


def test_a_consumer_may_want_fewer_deliveries_than_its_group_allows():
    trace = execute(one_consumer(100, max_reconsume_times=2), first_message_only, for_ms=60_000)

    assert len(consumed_from(trace, TOPIC)) + len(consumed_from(trace, RETRY)) == 3
    assert len(stored_in(trace, DLQ)) == 1


def test_every_message_of_a_batch_that_failed_is_sent_back_for_itself():
    config = ConsumerConfig(consume_message_batch_max_size=4, consume_thread_min=1)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=500), queues=1, rate_per_s=20)
    trace = execute(failing(scenario), for_ms=8_000)

    batches = [len(list(rows)) for _, rows in itertools.groupby(consumed_from(trace, TOPIC), key=lambda row: row.at_ms)]
    assert max(batches) == 4
    assert len(stored_in(trace, DELAYED)) >= sum(batches[:-2])


def test_a_group_without_retry_queues_loses_what_it_sends_back_and_is_reported_success():
    async def script(stage: Stage) -> None:
        configure(stage, "broker-a", retry_queue_nums=0)
        await first_message_only(stage)

    trace = execute(one_consumer(), script, for_ms=60_000)

    (answer,) = trace.select("rpc", dst="c1", code=int(SEND_BACK), kind="response", event="delivered")
    assert answer.status == ResponseCode.SUCCESS
    assert stored_in(trace, DELAYED) == stored_in(trace, DLQ) == consumed_from(trace, RETRY) == []


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (BrokerConfig(), ResponseCode.SYSTEM_BUSY),
        (BrokerConfig(enable_slave_acting_master=True), ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_slave_takes_nothing_back_whether_or_not_it_may_act_for_its_master(config, code):
    answers = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        probe = await stage.probe()
        header = headers.ConsumerSendMsgBackRequestHeader(0, "g", 0)
        answers.append(await probe.ask("broker-a-s1", SEND_BACK, header))

    scenario = a_scenario(brokers=broker_groups(config=config))
    execute(attrs.evolve(scenario, brokers=(*scenario.brokers, BrokerSpec("broker-a", 1, config=config))), script)

    assert [answer.code for answer in answers] == [code]


@pytest.mark.parametrize(
    ("offset", "level", "permission", "code"),
    [
        (999, 0, 6, ResponseCode.SYSTEM_ERROR),
        (0, 0, 4, ResponseCode.NO_PERMISSION),
        (0, 0, 6, ResponseCode.SUCCESS),
        (0, -1, 6, ResponseCode.SUCCESS),
    ],
)
def test_a_broker_looks_the_message_up_in_its_own_log_and_may_be_forbidden_to_write(offset, level, permission, code):
    answers = []

    async def script(stage: Stage) -> None:
        await first_message_only(stage)
        probe = await stage.probe()
        header = headers.ConsumerSendMsgBackRequestHeader(offset, "g", level)
        answers.append(await probe.ask("broker-a", SEND_BACK, header))

    trace = execute(
        a_scenario(queues=1, rate_per_s=1, brokers=broker_groups(config=BrokerConfig(broker_permission=permission))),
        script,
    )

    assert [answer.code for answer in answers] == [code]
    # Without any delay level a message is a dead letter at once.
    assert len(stored_in(trace, DLQ)) == (level < 0)


def test_what_its_broker_cannot_take_back_goes_to_the_retry_topic_of_another():
    async def script(stage: Stage) -> None:
        await first_message_only(stage)
        # The poll at 30 s has shown that the other broker has the retry topic as well.
        await stage.at_ms(35_000)
        await stage.kill("broker-a")

    topics = (TopicSpec(TOPIC, ("broker-a",), 1), TopicSpec("bills", ("broker-b",), 1))
    brokers = ("broker-a", "broker-b")
    scenario = a_scenario(
        consumers=consumer_group(1, consume_ms=40_000, topics=(TOPIC, "bills")),
        brokers=brokers,
        topics=topics,
        rate_per_s=1,
    )
    trace = execute(failing(scenario), script, for_ms=100_000)

    (failed,) = consumed_from(trace, TOPIC)
    assert sent(trace, SEND_BACK) == []
    (normal,) = sent(trace, SEND, dst="broker-b")
    assert failed.at_ms < normal.at_ms < failed.at_ms + 50
    (again,) = consumed_from(trace, RETRY)
    assert again.broker_name == "broker-b"
    # Ten seconds of delay, forty of the listener.
    assert 50_000 <= again.at_ms - normal.at_ms <= 50_000 + TICK_MS


def test_what_no_one_takes_back_stays_cached_and_comes_to_the_listener_again_5_s_later():
    async def script(stage: Stage) -> None:
        await first_message_only(stage)
        await stage.at_ms(3_000)
        await stage.kill("broker-a")

    trace = execute(one_consumer(consume_ms=3_000), script, for_ms=20_000)

    first, second = consumed_from(trace, TOPIC)
    assert (second.offset, second.at_ms - first.at_ms) == (first.offset, pytest.approx(5_000 + 3_000, abs=20))
    assert stored_in(trace, DELAYED) == stored_in(trace, RETRY) == []


def test_a_message_comes_again_twice_when_the_answer_to_its_sending_back_is_lost():
    async def script(stage: Stage) -> None:
        await first_message_only(stage)
        await stage.at_ms(3_000)
        stage.cut("broker-a", "c1", one_way=True)
        await stage.at_ms(9_600)
        stage.heal("broker-a", "c1")

    trace = execute(one_consumer(consume_ms=3_000), script, for_ms=40_000)

    assert len(consumed_from(trace, TOPIC)) == 1
    assert len(sent(trace, SEND_BACK)) == len(sent(trace, SEND)) == 1
    assert len(consumed_from(trace, RETRY)) == 2


def test_not_more_listeners_run_at_once_than_there_are_threads():
    config = ConsumerConfig(consume_thread_min=2)
    trace = execute(a_scenario(consumers=consumer_group(1, config, consume_ms=1_000), rate_per_s=20), for_ms=20_500)

    instants = [row.at_ms for row in consumed_from(trace, TOPIC)]
    assert len(instants) > 30
    assert all(third - first >= 1_000 for first, third in zip(instants, instants[2:], strict=False))


def test_a_producer_may_send_to_a_retry_topic_until_it_says_that_there_were_too_many_deliveries():
    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        probe = await stage.probe()
        for times, times_max in ((16, None), (17, None), (3, 3), (4, 3)):
            await send_to_retry_topic(probe, "broker-a", reconsume_times=times, max_reconsume_times=times_max)

    trace = execute(a_scenario(consumers=1), script)

    assert len(stored_in(trace, RETRY)) == 2
    assert len(stored_in(trace, DLQ)) == 2


def test_a_retry_topic_is_made_for_who_sends_to_it_though_topics_are_not_made_by_sends():
    answers = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        answers.append(await send_to_retry_topic(probe, "broker-a"))
        header = headers.SendMessageRequestHeader("pg", "unheard", "TBW102", 4, 0, 0, 0, 0)
        answers.append(await probe.ask("broker-a", RequestCode.SEND_MESSAGE, header))

    trace = execute(a_scenario(brokers=broker_groups(config=BrokerConfig(auto_create_topic_enable=False))), script)

    assert [answer.code for answer in answers] == [ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST]
    assert len(stored_in(trace, RETRY)) == 1
