"""Consumers that do not allocate the queues themselves but ask a broker for their share."""

import json
from itertools import pairwise

import pytest

from emulator.testing import GROUP, RETRY, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.broker.files import MESSAGE_REQUEST_MODE_FILE
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import MessageRequestMode, SubscriptionGroupConfig
from support.ordered import requested

QUERY, LIST = RequestCode.QUERY_ASSIGNMENT, RequestCode.GET_CONSUMER_LIST_BY_GROUP
SET_MODE = RequestCode.SET_MESSAGE_REQUEST_MODE
BROKERS = ("broker-a", "broker-b")


def asking(**options):
    return ConsumerConfig(client_rebalance=False, **options)


def assigned(trace, node, topic=TOPIC):
    """What a consumer was given, and by whom, whenever it changed."""
    rows = trace.select("beliefs", node=node, kind="assignment", subject=f"{GROUP}/{topic}")
    return [(row.at_ms, json.loads(row.value), row.source) for row in rows]


def test_members_ask_brokers_for_their_shares_and_own_all_queues_together():
    trace = execute(a_scenario(consumers=consumer_group(2, asking()), queues=8, rate_per_s=10), for_ms=60_000)

    assert trace.owners() == {("broker-a", i): ["c1" if i < 4 else "c2"] for i in range(8)}
    assert [requested(trace, name, "broker-a", LIST) for name in ("c1", "c2")] == [[], []]
    # One question for each topic of each pass.
    assert len(requested(trace, "c1", "broker-a", QUERY)) >= 2 * len(trace.passes("c1"))
    assert set(trace.consumed()) == set(trace.stored())


@pytest.mark.trap("C22")
def test_each_question_goes_to_a_broker_drawn_again_so_brokers_that_know_different_members_allocate_differently():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c2", "broker-a")  # no one closes anything: broker-a forgets c2 after two minutes, broker-b does not
        await stage.at_ms(400_000)

    trace = execute(a_scenario(consumers=consumer_group(2, asking()), brokers=BROKERS, queues=4), script)

    late = [(queues, source) for at_ms, queues, source in assigned(trace, "c1") if at_ms > 170_000]
    by_source = {source: {len(queues) for queues, requested_of in late if requested_of == source} for _, source in late}
    (all_of_them, half) = sorted(by_source, key=lambda source: -max(by_source[source]))
    assert (by_source[all_of_them], by_source[half]) == ({8}, {4})
    assert len(late) >= 4  # back and forth, as the draws come
    # What c1 has been given is given to c2 as well: two owners.
    assert any(owners == ["c1", "c2"] for _, held in trace.owners_over_time() for owners in held.values())


@pytest.mark.trap("C23")
def test_a_strategy_that_brokers_do_not_know_gives_no_queue_ever_and_a_pass_every_second():
    options = {"allocate_message_queue_strategy": "CONSISTENT_HASH"}
    trace = execute(a_scenario(consumers=consumer_group(1, asking(**options))), for_ms=60_000)

    assert trace.select("ownership") == []
    passes = trace.passes("c1", after_ms=5_000)
    # Two topics, 2 ms each, and a second.
    assert {round(after - before) for before, after in pairwise(passes)} == {1_004}


@pytest.mark.parametrize("options", [{"consume_orderly": True}, {"message_model": "BROADCASTING"}])
def test_ordered_and_broadcasting_consumers_allocate_the_queues_themselves_whatever_the_option_says(options):
    trace = execute(a_scenario(consumers=consumer_group(1, asking(**options))), for_ms=30_000)

    assert requested(trace, "c1", "broker-a", QUERY) == []
    assert len(trace.owners()) == 4


def test_without_a_load_balancer_a_broker_gives_everybody_everything():
    broker = BrokerConfig(server_load_balancer_enable=False)
    trace = execute(
        a_scenario(consumers=consumer_group(2, asking()), queues=2, brokers=broker_groups(config=broker)), for_ms=30_000
    )

    assert trace.owners() == {("broker-a", 0): ["c1", "c2"], ("broker-a", 1): ["c1", "c2"]}


def test_a_broker_that_does_not_answer_leaves_the_shares_as_they_are_and_is_asked_again_every_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c1", "broker-a")
        await stage.at_ms(90_000)

    trace = execute(a_scenario(consumers=consumer_group(1, asking())), script)

    assert trace.select("ownership", event="dropped", topic=TOPIC) == []
    passes = trace.passes("c1", after_ms=50_000)
    # At most three seconds for each topic, then one of rest.
    assert max(after - before for before, after in pairwise(passes)) <= 7_000


def test_a_broker_knows_new_queues_of_a_topic_up_to_30_s_late():
    """It has routes of its own, and refreshes them in its own time."""
    broker = BrokerConfig(load_balance_poll_name_server_interval=7_000)
    trace = execute(
        a_scenario(consumers=consumer_group(1, asking()), brokers=broker_groups(config=broker)), for_ms=40_000
    )

    routes = trace.select("rpc", src="broker-a", dst="ns-1", event="delivered", kind="request")
    polled = [row.at_ms for row in routes if row.code == RequestCode.GET_ROUTEINFO_BY_TOPIC]
    # The first question of a member makes it ask at once, then both topics are polled together.
    assert {round(after - before) for before, after in zip(polled[2::2], polled[4::2], strict=False)} == {7_000}


def test_a_mode_is_refused_for_retry_topics_unknown_topics_and_unknown_groups_and_survives_a_restart():
    answers = []

    async def script(stage: Stage) -> None:
        caller = await stage.probe()

        async def set_mode(topic, group):
            body = SetMessageRequestModeRequestBody(topic, group, MessageRequestMode.POP, 0)
            answers.append((await caller.ask("broker-a", SET_MODE, None, body)).code)

        await set_mode(RETRY, GROUP)
        await set_mode("nowhere", GROUP)
        await set_mode(TOPIC, "strangers")
        groups = stage.node("broker-a").context.groups
        groups.update_subscription_group_config(SubscriptionGroupConfig(GROUP), now_ms=0)
        await set_mode(TOPIC, GROUP)
        assert stage.host("broker-a").disk.read(MESSAGE_REQUEST_MODE_FILE) is not None
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.for_ms(1_000)
        answers.append(stage.node("broker-a").tables.clients.request_modes.mode(TOPIC, GROUP).mode)

    execute(a_scenario(brokers=broker_groups(config=BrokerConfig(auto_create_subscription_group=False))), script)

    refused = [ResponseCode.NO_PERMISSION, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST]
    assert answers == [*refused, ResponseCode.SUCCESS, MessageRequestMode.POP]


def test_what_is_assigned_for_popping_is_let_go_of_and_pulling_takes_it_up_again():
    """A mode set while a group runs: the queues change tables, and the pop retry topic comes and goes."""
    seen = []

    async def script(stage: Stage) -> None:
        caller = await stage.probe()
        for mode in (MessageRequestMode.POP, MessageRequestMode.PULL):
            await stage.for_ms(30_000)
            body = SetMessageRequestModeRequestBody(TOPIC, GROUP, mode, 0)
            await caller.ask("broker-a", SET_MODE, None, body)
            await stage.for_ms(30_000)
            rebalance = stage.node("c1").rebalance
            mine = [queue for queue in rebalance.process_queues if queue.topic == TOPIC]
            seen.append((len(mine), len(rebalance.pop_process_queues), f"{RETRY}_{TOPIC}" in stage.node("c1").topics()))

    execute(a_scenario(consumers=consumer_group(1, asking())), script)

    # All queues of a broker are one to who pops.
    assert seen == [(0, 1, False), (4, 0, True)]
