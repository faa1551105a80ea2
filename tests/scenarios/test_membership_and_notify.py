"""How brokers learn that members of a group come and go, and whom they report."""

import functools
import json
import operator

import pytest

from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol.model import SubscriptionGroupConfig


def members(trace, broker="broker-a"):
    """(instant, number of entries in the broker's list) after each change."""
    rows = trace.select("beliefs", node=broker, kind="consumer_ids", subject=GROUP)
    return [(row.at_ms, len(json.loads(row.value) or ())) for row in rows]


def notices(trace, **between):
    return [(row.at_ms, row.dst) for row in trace.select("rpc", code=40, event="delivered", **between)]


def test_a_killed_member_is_noticed_with_its_fin_and_the_survivors_own_all_within_a_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("c3")
        await stage.for_ms(2_000)

    trace = execute(a_scenario(consumers=3, queues=6), script)

    assert members(trace)[-1] == (30_001, 2)
    assert sorted(notices(trace, after_ms=30_000)) == [(30_002, "c1"), (30_002, "c2")]
    assert sorted(set(functools.reduce(operator.iadd, trace.owners(29_999).values(), []))) == ["c1", "c2", "c3"]
    assert trace.owners(31_000) == {("broker-a", i): ["c1" if i < 3 else "c2"] for i in range(6)}


def test_a_member_that_closes_commits_then_says_farewell_then_lets_go_and_nothing_is_consumed_twice():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c2")
        await stage.for_ms(5_000)

    trace = execute(a_scenario(consumers=2, rate_per_s=20), script)

    commits = trace.select("rpc", src="c2", code=15, after_ms=30_000)
    farewell = trace.select("rpc", src="c2", code=35, kind="request")
    dropped = trace.select("ownership", node="c2", event="dropped", after_ms=29_000)
    assert len(commits) == 2
    assert [row.dst for row in farewell] == ["broker-a"]
    assert commits[-1].seq < farewell[0].seq < dropped[0].seq
    assert members(trace)[-1] == (30_001, 1)
    assert trace.owners(31_000) == {("broker-a", i): ["c1"] for i in range(4)}
    assert [owners for owners in trace.consumed().values() if len(owners) > 1] == []


def test_no_heartbeat_brings_a_member_back_that_is_saying_farewell():
    async def script(stage: Stage) -> None:
        await stage.at_ms(29_000)
        await stage.power_off("broker-b")
        await stage.at_ms(30_000)
        await stage.stop("c2")
        await stage.for_ms(5_000)

    # Its farewell to broker-b takes 3 s; the timer's heartbeat falls due meanwhile.
    trace = execute(a_scenario(consumers=2, brokers=("broker-a", "broker-b"), queues=2), script)

    assert trace.select("lifecycle", node="c2", event="stopped")[0].at_ms == 33_002
    assert trace.select("rpc", src="c2", code=34, after_ms=30_000) == []
    assert members(trace)[-1] == (30_001, 1)
    assert trace.select("rpc", src="c2", code=38, after_ms=30_001) == []


def test_no_one_notices_a_consumer_that_is_frozen_for_60_s_and_its_queues_wait():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.suspend("c2", 60_000)
        await stage.for_ms(20_000)

    trace = execute(a_scenario(consumers=2, rate_per_s=4), script)

    assert members(trace)[-1][0] < 30_000
    assert notices(trace, after_ms=30_000) == []
    assert trace.select("ownership", after_ms=30_000) == []
    waiting = trace.select("messages", event="consumed", node="c2")
    assert [row for row in waiting if 30_000 < row.at_ms < 90_000] == []
    assert [trace.consumed().get(message) for message in trace.stored()[:-1]].count(None) <= 1


@pytest.mark.trap("C1")
def test_a_member_removed_by_the_scan_is_missed_by_the_others_only_at_their_own_tick():
    async def script(stage: Stage) -> None:
        await stage.at_ms(32_000)
        await stage.power_off("c2")
        await stage.at_ms(200_000)

    trace = execute(a_scenario(consumers=2), script)

    last_beat = trace.select("rpc", src="c2", code=34, event="delivered")[-1].at_ms
    removed, left = members(trace)[-1]
    assert (last_beat, removed, left) == (31_005, 160_000, 1)
    assert notices(trace, after_ms=32_000) == []
    ticks = trace.passes("c1", after_ms=removed)
    taken = trace.select("ownership", node="c1", event="acquired", after_ms=32_000)
    assert 0 < ticks[0] - removed < 20_000
    assert ticks[0] < taken[0].at_ms < ticks[0] + 20


async def reconnect_unseen(stage: Stage) -> None:
    """c1 gives its connection up while nothing passes, so the broker keeps it."""
    await stage.at_ms(30_000)
    stage.cut("c1", "broker-a")
    await stage.at_ms(50_000)
    stage.heal("c1", "broker-a")


@pytest.mark.trap("C5")
def test_a_client_that_reconnects_is_listed_twice_and_its_second_share_is_without_an_owner():
    config = BrokerConfig(notify_consumer_ids_changed_enable=False)
    trace = execute(
        a_scenario(consumers=2, queues=9, brokers=broker_groups(config=config)), reconnect_unseen, for_ms=180_000
    )

    assert trace.owners(30_000) == {("broker-a", i): ["c1" if i < 5 else "c2"] for i in range(9)}
    assert members(trace)[-2:] == [(50_007, 3), (130_000, 2)]
    ids = json.loads(trace.select("beliefs", node="broker-a", kind="consumer_ids", after_ms=50_000)[0].value)
    assert ids[0] == ids[1]
    # Nine queues are allocated by three; the client takes the share of its first place only.
    assert trace.owners(72_000) == {
        **{("broker-a", i): ["c1"] for i in range(3)},
        **{("broker-a", i): [] for i in range(3, 6)},
        **{("broker-a", i): ["c2"] for i in range(6, 9)},
    }
    assert trace.owners(129_999) == trace.owners(72_000)
    assert trace.owners(152_000) == trace.owners(30_000)


def test_a_notice_to_the_connection_that_was_given_up_ends_the_double_entry():
    trace = execute(a_scenario(consumers=2, queues=9), reconnect_unseen, for_ms=60_000)

    assert members(trace)[-2:] == [(50_007, 3), (50_009, 2)]
    assert [row.at_ms for row in trace.select("rpc", code=40, event="lost")] == [50_008]


@pytest.mark.trap("C28")
def test_a_group_that_is_not_to_be_notified_hears_of_closed_connections_all_the_same():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.kill("c3")
        groups = stage.node("broker-a").context.groups
        groups.update_subscription_group_config(
            SubscriptionGroupConfig(GROUP, notify_consumer_ids_changed_enable=False), now_ms=0
        )
        await stage.at_ms(25_000)
        stage.start("c2")
        stage.start("c3")
        await stage.at_ms(47_000)
        await stage.stop("c3")
        await stage.at_ms(70_000)
        await stage.kill("c2")
        await stage.for_ms(1_000)

    trace = execute(a_scenario(consumers=3), script)

    assert [count for _, count in members(trace)][-4:] == [2, 3, 2, 1]
    assert notices(trace, after_ms=20_000) == [(70_002, "c1")]


def test_with_deferred_notification_members_are_notified_in_rounds_of_15_s():
    async def script(stage: Stage) -> None:
        await stage.at_ms(31_000)
        await stage.kill("c2")
        await stage.at_ms(46_000)

    config = BrokerConfig(real_time_notify_consumer_change=False)
    trace = execute(a_scenario(consumers=2, brokers=broker_groups(config=config)), script)

    # Rounds begin 30 s after the start: the joins are in the first one.
    assert sorted(notices(trace)) == [(30_001, "c1"), (30_001, "c2"), (45_001, "c1")]


@pytest.mark.trap("C37")
def test_queues_go_to_clients_in_the_order_of_their_ids_as_text():
    trace = execute(a_scenario(consumers=10, queues=10), for_ms=4_000)

    # 127.1.10.1, 127.1.10.10, 127.1.10.2, ...: a full stop and an @ compare, numbers do not.
    in_order = sorted(f"c{i}" for i in range(1, 11))
    assert in_order[:3] == ["c1", "c10", "c2"]
    by_text = sorted(range(1, 11), key=lambda i: f"127.1.10.{i}@")
    assert trace.owners() == {("broker-a", q): [f"c{i}"] for q, i in enumerate(by_text)}


@pytest.mark.trap("C14")
def test_members_with_different_topics_erase_each_others_subscriptions_with_every_heartbeat():
    groups = (
        ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,)),
        ConsumerGroupSpec(GROUP, ("c2",), ("bills",)),
    )
    topics = (TopicSpec(TOPIC, ("broker-a",), 4), TopicSpec("bills", ("broker-a",), 4))
    trace = execute(a_scenario(consumers=groups, topics=topics), for_ms=100_000)

    refused = trace.select("rpc", src="broker-a", code=11, status=24, after_ms=40_000)
    assert {row.dst for row in refused} == {"c1"}
    assert len(notices(trace, after_ms=25_000)) >= 8
    # Each member gets only half of the topic that no one else wants.
    assert [owners for owners in trace.owners().values() if owners] == [["c1"], ["c1"]]


@pytest.mark.trap("C35")
def test_a_consumer_rebalances_first_although_no_broker_answered_its_heartbeats():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(20_000)
        await stage.power_off("broker-a")
        stage.start("c1")
        await stage.at_ms(39_000)

    config = ConsumerConfig(enable_heartbeat_channel_event_listener=False)
    trace = execute(a_scenario(consumers=consumer_group(1, config)), script)

    attempts = trace.select("rpc", src="c1", event="connect_lost", after_ms=20_000)
    # The heartbeats of the start take 3 s, the list of the pass that they lead to takes the next 3 s.
    assert [row.sent_ms for row in attempts[:2]] == [20_006, 23_006]
    assert trace.passes("c1", after_ms=20_000) == []


def test_every_member_is_reported_about_a_join_the_newcomer_included():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(20_000)
        stage.start("c2")
        await stage.for_ms(1_000)

    trace = execute(a_scenario(consumers=2), script)

    assert [name for _, name in notices(trace, after_ms=20_000)] == ["c1", "c2"]
