"""Topics that are lost, deleted, read only or healthy; groups with something wrong, and where new ones began."""

import pytest

from emulator.spec import loads
from emulator.testing import a_scenario, consumer_group
from emulator.why.question import WhyError
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers import DeleteTopicFromNamesrvRequestHeader
from nodes.protocol.headers_admin import CreateTopicRequestHeader, TopicHeader
from nodes.protocol.model import ConsumeFromWhere, MessageModel, SubscriptionGroupConfig
from why.why_runs import administrator, has, requested
from why.written_traces import TracedByHand, client_id

ELECTED = """
[scenario]
name = "elected"
seed = 1
run_for_s = 130
preset = "controller"
[nameserver]
count = 1
[controller]
count = 1
[[broker]]
name = "broker-a"
replicas = 2
"""
BEHIND = "the group had no offset, and a broker answers 0 as long as it has the first message of the queue in memory"


async def create_news(me, at_s=60):
    await me.at_ms(at_s * 1_000)
    header = CreateTopicRequestHeader("news", "TBW102", 4, 4, 6, "SINGLE_TAG")
    await (await administrator(me)).ask("broker-a", RequestCode.UPDATE_AND_CREATE_TOPIC, header)


# --- topics -----------------------------------------------------------------------------------


def test_a_topic_that_is_lost_at_an_election_is_named_and_one_that_was_copied_before_is_calm(tmp_path):
    plan = loads(ELECTED, "elected")
    lost = requested(plan, tmp_path, {60.02: "kill broker-a"}, act=create_news).why("topic news at 100s")
    copied = requested(plan, tmp_path, {90: "kill broker-a"}, act=create_news).why("topic news at 120s")

    assert lost[0].startswith(
        "at 100.000 s topic news: ns-1 lists it at broker-a, and no broker of broker-a has it: it was created at 60.0"
    )
    assert "and broker-a-s1 became master at 60.0" in lost[0]
    assert copied[0].startswith("at 120.000 s topic news: ns-1 lists broker-a (4 queues, perm 6)")


def test_a_topic_of_the_scenario_is_calm_and_one_that_came_later_leads_to_the_request(tmp_path):
    run = requested(a_scenario(consumers=1, rate_per_s=1), tmp_path, act=create_news, for_s=80)
    calm, created = run.why("topic orders"), run.why("topic news")

    assert calm[0] == "topic orders: ns-1 lists broker-a (4 queues, perm 6)"
    assert has(calm, "clients that hold a route of it: c1 and p1")
    assert has(calm, "broker-a stored its last message of it at 79.")
    assert has(created, "no broker has stored a message of it")
    assert has(created, "since UPDATE_AND_CREATE_TOPIC (17) of probe arrived")


def test_a_topic_that_was_deleted_is_said_to_be_gone(tmp_path):
    async def delete(me):
        await create_news(me)
        await me.at_ms(70_000)
        ask = (await administrator(me)).ask
        await ask("broker-a", RequestCode.DELETE_TOPIC_IN_BROKER, TopicHeader("news"))
        await ask("ns-1", RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteTopicFromNamesrvRequestHeader("news"))

    run = requested(a_scenario(), tmp_path, act=delete, for_s=90)

    assert run.why("topic news")[0].startswith("topic news: no nameserver lists it since 70.")
    assert run.why("topic news at 65s")[0] == "at 65.000 s topic news: ns-1 lists broker-a (4 queues, perm 6)"
    with pytest.raises(WhyError, match=r"there was no topic news yet: ns-1 was the first to know it, at 60\.0"):
        run.why("topic news at 30s")
    with pytest.raises(WhyError, match="there is no topic nws; ask `topic news`"):
        run.why("topic nws")


def test_a_topic_that_may_not_be_written_says_so_first_and_leads_to_who_changed_it(tmp_path):
    run = requested(a_scenario(), tmp_path, {20: "permission broker-a 4 topic orders"}, for_s=50)
    reported = run.why("topic orders at 40s")

    assert reported[0] == "at 40.000 s topic orders: it may not be written at broker-a"
    assert has(reported, "operator", "since the operator began permission-1 (permission broker-a")


# --- groups -----------------------------------------------------------------------------------


def test_a_healthy_group_is_calm_and_a_member_that_one_broker_does_not_list_is_named(tmp_path):
    scenario = a_scenario(consumers=2, brokers=("broker-a", "broker-b"), rate_per_s=2)
    run = requested(scenario, tmp_path, {60: "cut c2 broker-b one-way"}, for_s=230)
    calm, split = run.why("group g at 50s"), run.why("group g at 225s")

    assert calm[0] == "at 50.000 s group g: 2 members of mode CLUSTERING, and nothing is wrong with it"
    assert has(calm, "broker-a lists c1 c2")
    assert has(calm, "subscribes to orders: * (c1 and c2)")
    assert has(calm, "queues: c1 5, c2 5")
    assert has(split, "broker-b does not list c2; ask `no c2 in consumer_ids g of broker-b at 225s`")
    assert has(split, "5 queues have several owners:", "orders/broker-b/3")


def test_a_group_that_is_switched_off_says_so_first(tmp_path):
    async def switch_off(me):
        await me.at_ms(20_000)
        body = SubscriptionGroupConfig("g", consume_enable=False)
        await (await administrator(me)).ask("broker-a", RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)

    reported = requested(a_scenario(consumers=1, rate_per_s=2), tmp_path, act=switch_off, for_s=60).why("group g")

    assert reported[0].startswith("group g: group g is switched off (consumeEnable false) at broker-a since ")
    assert has(reported, "messages wait; ask `lag g at 60s`")
    assert has(reported, "broker-a    since UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) of probe arrived")


def test_members_with_different_subscriptions_and_a_group_without_members(tmp_path):
    traced = TracedByHand(tmp_path)
    for node, expression in (("c1", "a"), ("c2", "b")):
        traced.life(node, "started")
        value = {"expression": expression, "type": "TAG", "model": "CLUSTERING"}
        traced.belief(node, "subscription", "g/orders", value)
    traced.belief("broker-a", "consumer_ids", "g", [client_id("c1"), client_id("c2")])
    assert "its members subscribe to orders in different ways: c1 a; c2 b" in traced.why("group g")[0]
    for node in ("c1", "c2"):
        traced.at(2).life(node, "killed")
    traced.belief("broker-a", "consumer_ids", "g", [])

    assert traced.why("group g at 3s")[0] == "at 3.000 s group g: it has no member"
    with pytest.raises(WhyError, match="there is no group gg; ask `group g`"):
        traced.why("group gg")


# --- where a new group began --------------------------------------------------------------------


def new_group(tmp_path, where, *, late):
    consumer = ConsumerConfig(consume_from_where=where)
    scenario = a_scenario(consumers=consumer_group(1, consumer), rate_per_s=10, brokers=("broker-a",))
    return requested(scenario, tmp_path, {0.1: "kill c1", 60: "start c1"} if late else {}, for_s=90)


@pytest.mark.parametrize("where", ["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"])
def test_a_new_group_that_began_at_0_says_why_its_option_has_no_effect(tmp_path, where):
    run = new_group(tmp_path, ConsumeFromWhere(where), late=True)
    queue, group = run.why("queue orders/broker-a/1"), run.why("group g")

    assert queue[1].startswith("  it began at offset 0 at 61.")
    assert f"although consumeFromWhere is {where}: {BEHIND}; so {where} has no effect; 1" in queue[1]
    assert has(group, "in 4 queues it began at offset 0 at 61.", f"although consumeFromWhere is {where}")


@pytest.mark.parametrize(("where", "late"), [("CONSUME_FROM_FIRST_OFFSET", True), ("CONSUME_FROM_LAST_OFFSET", False)])
def test_a_group_that_meant_to_or_that_was_there_first_says_nothing_of_it(tmp_path, where, late):
    run = new_group(tmp_path, ConsumeFromWhere(where), late=late)

    assert not has(run.why("queue orders/broker-a/1"), "began at offset 0")
    assert not has(run.why("group g"), "began at offset 0")


def test_a_member_that_broadcasts_and_begins_at_the_end_misses_what_came_since_it_started(tmp_path):
    consumer = ConsumerConfig(message_model=MessageModel.BROADCASTING)
    scenario = a_scenario(consumers=consumer_group(1, consumer), rate_per_s=50, brokers=("broker-a",))
    run = requested(scenario, tmp_path, {0.1: "kill c1", 60: "start c1"}, for_s=70)
    reported = run.why("group g")

    assert reported[0].startswith("group g: c1 misses 5")
    assert "its process started at 60.000 s, and it began at the end of the queue at 61.0" in reported[0]
    assert has(run.why("queue orders/broker-a/0"), "c1 misses 1")


def test_a_member_that_broadcasts_from_the_start_on_misses_nothing(tmp_path):
    consumer = ConsumerConfig(message_model=MessageModel.BROADCASTING)
    scenario = a_scenario(consumers=consumer_group(1, consumer), brokers=("broker-a",))

    assert "nothing is wrong with it" in requested(scenario, tmp_path, for_s=20).why("group g")[0]


@pytest.mark.parametrize(("to", "is_forward"), [("now", True), ("1s", False)])
def test_offsets_that_an_administrator_set_forward_are_named_and_those_set_back_are_not(tmp_path, to, is_forward):
    slow = consumer_group(1, ConsumerConfig(consume_thread_min=1), consume_ms=2_000)
    scenario = a_scenario(consumers=slow, queues=1, rate_per_s=5)
    line = f"reset-offset-by-time g orders {to}"
    reported = requested(scenario, tmp_path, {40: line}, for_s=50).why("group g")

    assert has(reported, "an administrator set its offset of orders at broker-a forward in second 40: ") is is_forward
    assert has(reported, " in queue 0") is is_forward
