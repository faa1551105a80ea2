"""Processes that consume for several groups, and processes that go by one client id."""

from itertools import pairwise

import attrs
import pytest

from emulator.spec.model.networks import Network
from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.testing import GROUP, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from support.ordered import orderly, requested

LIST, HEARTBEAT, COMMIT = (
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.HEART_BEAT,
    RequestCode.UPDATE_CONSUMER_OFFSET,
)
OTHER, OTHER_TOPIC = "h", "bills"
TOPICS = (TopicSpec(TOPIC, ("broker-a",), 4), TopicSpec(OTHER_TOPIC, ("broker-a",), 4))


def two_groups(instance_name="DEFAULT", **more):
    """Process c1 consumes for two groups, c2 for one of them only."""
    config = ConsumerConfig(instance_name=instance_name)
    groups = (
        ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), config),
        ConsumerGroupSpec(OTHER, (), (OTHER_TOPIC,), config, share_process_with=GROUP),
        ConsumerGroupSpec(OTHER, ("c2",), (OTHER_TOPIC,)),
    )
    return a_scenario(topics=TOPICS, consumers=groups, **more)


def test_groups_of_one_process_consume_side_by_side():
    trace = execute(two_groups(rate_per_s=10), for_ms=40_000)

    assert trace.owners() == {("broker-a", i): ["c1"] for i in range(4)}
    assert trace.owners(topic=OTHER_TOPIC) == {("broker-a", i): ["c1" if i < 2 else "c2"] for i in range(4)}


def test_consumers_with_names_of_their_own_are_two_clients_and_with_one_name_they_are_one():
    ids, connections = {}, {}
    for name in ("DEFAULT", "app"):

        async def script(stage: Stage, name=name) -> None:
            await stage.at_ms(30_000)
            consumers = stage.node("broker-a").tables.clients.consumers
            mine = [cid for group in (GROUP, OTHER) for cid in consumers.client_ids(group) if "127.1.10.1@" in cid]
            ids[name] = mine
            channels = [consumers.group(group).channels for group in (GROUP, OTHER)]
            connections[name] = len([c for c in channels[0] if c in channels[1]])

        execute(two_groups(name), script)

    assert len(set(ids["DEFAULT"])) == 2
    assert ids["app"] == ["127.1.10.1@app"] * 2
    assert (connections["DEFAULT"], connections["app"]) == (0, 1)


@pytest.mark.trap("C21")
def test_news_of_one_group_makes_all_groups_of_the_process_rebalance():
    lists = {}
    for name in ("DEFAULT", "app"):

        async def script(stage: Stage) -> None:
            await stage.at_ms(30_000)
            await stage.stop("c2")

        trace = execute(two_groups(name), script, for_ms=31_500)
        lists[name] = len(requested(trace, "c1", "broker-a", LIST, after_ms=30_000))

    # One group has two topics, its own and the one for retries; both groups have four.
    assert (lists["DEFAULT"], lists["app"]) == (2, 4)


@pytest.mark.trap("C45")
def test_a_paused_consumer_makes_every_group_of_its_process_rebalance_each_second_and_keeps_its_share():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.node("c1").consumers[OTHER].suspend()
        await stage.at_ms(90_000)

    trace = execute(two_groups("app", rate_per_s=10), script)

    passes = trace.passes("c1", after_ms=52_000)
    assert len(passes) >= 30
    assert {round(after - before) for before, after in pairwise(passes)} == {1_004}
    # Who is paused does nothing in its turn, and is counted on as before.
    assert trace.select("ownership", node="c1", event="dropped") == []
    assert trace.owners(topic=OTHER_TOPIC)["broker-a", 0] == ["c1"]


def test_one_thread_heartbeats_and_commits_for_all_groups_of_a_client():
    trace = execute(two_groups("app"), for_ms=70_000)

    assert len(requested(trace, "c1", "broker-a", HEARTBEAT, after_ms=20_000)) == 2


def test_a_paused_consumer_pulls_nothing_until_it_is_resumed():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.node("c1").suspend()
        await stage.at_ms(60_000)
        await stage.node("c1").resume()
        await stage.at_ms(70_000)

    trace = execute(a_scenario(consumers=1, rate_per_s=10), script)

    consumed = [row.at_ms for row in trace.select("messages", event="consumed", topic=TOPIC)]
    # Pulls that brokers held when it was paused were answered once more.
    assert [at_ms for at_ms in consumed if 31_000 < at_ms < 60_000] == []
    assert max(consumed) > 69_000
    assert set(trace.consumed()) >= {item for item in trace.stored() if item[2] < 100}


@pytest.mark.trap("C48")
def test_who_resumes_a_consumer_rebalances_on_a_thread_of_his_own_next_to_the_one_for_it():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        stage.node("c1").suspend()
        await stage.at_ms(100_000)
        await stage.node("c1").resume()
        await stage.at_ms(110_000)

    # A pass takes 1.6 s; while the consumer is paused, one begins each second.
    trace = execute(a_scenario(consumers=1, network=Network(400)), script)

    arrived = requested(trace, "c1", "broker-a", LIST, after_ms=100_000, until_ms=103_000)
    # On one thread two questions are at least 800 ms apart.
    assert min(after - before for before, after in pairwise(arrived)) < 800


@pytest.mark.trap("C5")
def test_two_processes_with_one_client_id_count_twice_and_get_one_share_so_that_queues_have_no_owner():
    twins = ConsumerGroupSpec(GROUP, ("c1", "c2"), (TOPIC,), ConsumerConfig(instance_name="same"), one_address=True)
    third = attrs.evolve(twins, names=("c3",), config=ConsumerConfig(), one_address=False)
    trace = execute(a_scenario(consumers=(twins, third), queues=9), for_ms=60_000)

    owners = trace.owners()
    assert {queue_id: owners.get(("broker-a", queue_id), []) for queue_id in range(9)} == {
        **{queue_id: ["c1", "c2"] for queue_id in (0, 1, 2)},
        **{queue_id: [] for queue_id in (3, 4, 5)},
        **{queue_id: ["c3"] for queue_id in (6, 7, 8)},
    }


@pytest.mark.trap("C49")
def test_all_queues_that_go_are_dropped_first_and_then_committed_one_by_one():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(35_500)
        stage.start("c2")
        await stage.at_ms(50_000)

    trace = execute(
        a_scenario(consumers=consumer_group(2, orderly(), consume_ms=3_000), queues=4, rate_per_s=20), script
    )

    dropped = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    assert {row.queue_id for row in dropped} == {2, 3}
    assert dropped[0].at_ms == dropped[1].at_ms
    commits = requested(trace, "c1", "broker-a", COMMIT, after_ms=dropped[0].at_ms, until_ms=dropped[0].at_ms + 900)
    # Half a second for the listener of the first, who does not let go; only then the second is committed.
    assert max(commits) - min(commits) >= 500
