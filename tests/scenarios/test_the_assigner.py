"""One broker allocates the queues of a group for all its members: what that gains, and what it costs."""

import json

import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from support.ordered import requested

QUERY, LIST = RequestCode.QUERY_ASSIGNMENT, RequestCode.GET_CONSUMER_LIST_BY_GROUP
BROKERS = ("broker-a", "broker-b")
SUBJECT = f"{GROUP}/{TOPIC}"


def pinned(**options):
    return ConsumerConfig(client_rebalance=False, pinned_assigner=True, **options)


def believed(trace, kind, node, subject=SUBJECT):
    rows = trace.select("beliefs", kind=kind, node=node, subject=subject)
    return [(row.at_ms, json.loads(row.value)) for row in rows if row.value_hash]


def double_owners(trace, after_ms=0):
    return [
        (at_ms, queue, owners)
        for at_ms, held in trace.owners_over_time()
        for queue, owners in held.items()
        if len(owners) > 1 and at_ms > after_ms
    ]


def test_all_members_ask_the_broker_with_the_smallest_name_and_own_all_queues_together():
    trace = execute(
        a_scenario(consumers=consumer_group(3, pinned()), brokers=BROKERS, queues=4, rate_per_s=10), for_ms=60_000
    )

    assert sorted(map(len, trace.owners().values())) == [1] * 8
    for name in ("c1", "c2", "c3"):
        assert [value for _, value in believed(trace, "assigner", name)] == ["broker-a"]
        assert (len(requested(trace, name, "broker-a", QUERY)) > 4, requested(trace, name, "broker-b", QUERY)) == (
            True,
            [],
        )
        assert requested(trace, name, "broker-a", LIST) == []
    assert len(believed(trace, "allocation", "broker-a")) == len(
        trace.select("beliefs", kind="allocation", subject=SUBJECT)
    )
    assert set(trace.consumed()) == set(trace.stored())


def test_members_that_join_and_leave_get_one_new_allocation_each():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c2")
        await stage.at_ms(60_000)
        stage.start("c2")
        await stage.for_ms(40_000)

    trace = execute(a_scenario(consumers=consumer_group(3, pinned()), queues=6), script)

    divisions = [(at_ms // 30_000, len(value["shares"])) for at_ms, value in believed(trace, "allocation", "broker-a")]
    assert [allocated_queues for allocated_queues in divisions if allocated_queues[0]] == [(1, 2), (2, 3)]
    assert sorted(map(len, trace.owners().values())) == [1] * 6


def test_a_new_assigner_collects_claims_first_so_that_no_queue_moves():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("broker-a")
        await stage.for_ms(120_000)

    broker = BrokerConfig(assigner_grace_period_ms=10_000)
    trace = execute(
        a_scenario(consumers=consumer_group(2, pinned()), brokers=broker_groups(*BROKERS, config=broker), queues=4),
        script,
    )

    assert [value for _, value in believed(trace, "assigner", "c1")] == ["broker-a", "broker-b"]
    ((made_ms, made),) = believed(trace, "allocation", "broker-b")
    assert made["epoch"] == 2
    before, after = trace.owners(at_ms=59_000), trace.owners(at_ms=made_ms)
    assert [after["broker-b", i] for i in range(4)] == [before["broker-b", i] for i in range(4)]
    answers = [row.event for row in trace.select("passes", node="c1", topic=TOPIC) if 60_000 < row.at_ms < made_ms]
    assert set(answers) == {"unanswered"}


def test_members_whose_routes_differ_have_two_assigners_and_queues_two_owners():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c2", "broker-a")
        await stage.for_ms(300_000)

    trace = execute(a_scenario(consumers=consumer_group(2, pinned()), brokers=BROKERS, queues=4), script)

    # c2 asks broker-a, gets no answer, and keeps its queues; broker-a forgets c2 after two minutes, and c1 gets all.
    assert [value for _, value in believed(trace, "assigner", "c2")] == ["broker-a"]
    assert double_owners(trace, after_ms=130_000) != []


@pytest.mark.parametrize("revokes", [False, True])
def test_revoking_before_assigning_leaves_no_instant_with_two_owners(revokes):
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        stage.start("c3")
        await stage.for_ms(60_000)

    async def joins(stage: Stage) -> None:
        await stage.stop("c3")
        await script(stage)

    # Consumers are not reported about changes, so each member learns of the new allocation in its own round.
    broker = BrokerConfig(notify_consumer_ids_changed_enable=False)
    config = pinned(revoke_before_assign=revokes)
    trace = execute(
        a_scenario(consumers=consumer_group(3, config), queues=6, brokers=broker_groups(config=broker)), joins
    )

    assert bool(double_owners(trace)) is not revokes
    assert sorted(map(len, trace.owners().values())) == [1] * 6


def test_the_heir_of_a_released_queue_is_reported_and_asks_at_once():
    async def script(stage: Stage) -> None:
        await stage.stop("c3")
        await stage.at_ms(30_000)
        stage.start("c3")
        await stage.for_ms(15_000)

    trace = execute(a_scenario(consumers=consumer_group(3, pinned(revoke_before_assign=True)), queues=6), script)

    taken = [
        row.at_ms for row in trace.select("ownership", node="c3", event="acquired", topic=TOPIC) if row.at_ms > 30_000
    ]
    assert len(taken) == 2
    assert max(taken) < 33_000


def test_ordered_members_ask_the_assigner_too_and_lock_what_they_get():
    trace = execute(
        a_scenario(consumers=consumer_group(2, pinned(consume_orderly=True)), queues=4, rate_per_s=10), for_ms=60_000
    )

    assert requested(trace, "c1", "broker-a", QUERY)
    assert len(trace.select("ownership", event="locked", topic=TOPIC)) == 4
    assert set(trace.consumed()) == set(trace.stored())


def test_broadcasting_members_ask_no_one():
    trace = execute(a_scenario(consumers=consumer_group(2, pinned(message_model="BROADCASTING"))), for_ms=30_000)

    assert requested(trace, "c1", "broker-a", QUERY) == []
    assert {len(owners) for owners in trace.owners().values()} == {2}


def test_with_heartbeats_to_the_assigner_alone_other_brokers_refuse_the_pulls():
    config = pinned(heartbeat_to_assigner=True)
    trace = execute(
        a_scenario(consumers=consumer_group(1, config), brokers=BROKERS, queues=2, rate_per_s=10), for_ms=60_000
    )

    assert requested(trace, "c1", "broker-b", RequestCode.HEART_BEAT) == []
    refused = trace.select("rpc", kind="response", code=RequestCode.PULL_MESSAGE, src="broker-b")
    assert {row.status for row in refused} == {ResponseCode.SUBSCRIPTION_NOT_EXIST}
    assert {row.broker_name for row in trace.select("messages", event="consumed")} == {"broker-a"}


def test_an_operator_changes_who_allocates_the_queues_while_the_group_consumes():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        fault = await stage.begin(f"rebalance {GROUP} assigner")
        await stage.at_ms(90_000)
        await stage.end(fault)
        await stage.for_ms(60_000)

    trace = execute(a_scenario(consumers=2, brokers=BROKERS, queues=4, rate_per_s=10), script)

    for name in ("c1", "c2"):
        modes = [json.loads(row.value) for row in trace.select("beliefs", kind="rebalance_mode", node=name)]
        assert modes == ["assigner", "client"]
        # The brokers notify the members, so no one waits for the next round.
        requested_ms = [at_ms for at_ms, _ in believed(trace, "assigner", name)]
        assert requested_ms[0] < 32_500
        assert [value for _, value in believed(trace, "assigner", name)] == ["broker-a"]
    assert double_owners(trace, after_ms=30_000) == []
    assert set(trace.consumed()) == set(trace.stored())


def test_a_broker_that_was_down_does_not_hear_the_operator_but_its_members_follow_the_newest_setting_they_met():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("broker-b")
        await stage.at_ms(60_000)
        await stage.begin(f"rebalance {GROUP} assigner")
        await stage.at_ms(90_000)
        stage.start("broker-b")
        await stage.for_ms(120_000)

    trace = execute(a_scenario(consumers=2, brokers=BROKERS, queues=4), script)

    for name in ("c1", "c2"):
        modes = [json.loads(row.value) for row in trace.select("beliefs", kind="rebalance_mode", node=name)]
        assert modes == ["assigner"]


@pytest.mark.parametrize("strategy", ["STICKY", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "KAFKA_ROUND_ROBIN", "PR2169"])
def test_the_assigner_knows_every_strategy(strategy):
    config = pinned(allocate_message_queue_strategy=strategy)
    trace = execute(a_scenario(consumers=consumer_group(3, config), queues=6, rate_per_s=10), for_ms=60_000)

    assert sorted(map(len, trace.owners().values())) == [1] * 6
    assert set(trace.consumed()) == set(trace.stored())


def test_with_sticky_only_the_queues_of_the_departed_move():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c1")
        await stage.for_ms(30_000)

    def moved(strategy):
        config = pinned(allocate_message_queue_strategy=strategy)
        trace = execute(a_scenario(consumers=consumer_group(3, config), queues=12), script)
        before, after = trace.owners(at_ms=29_000), trace.owners()
        return sum(before[queue] != ["c1"] and before[queue] != after[queue] for queue in before)

    assert (moved("STICKY"), moved("AVG")) == (0, 2)


def test_an_operator_names_the_strategy_and_gives_the_parameters():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.begin(f"rebalance {GROUP} assigner CONSISTENT_HASH")
        await stage.for_ms(60_000)

    trace = execute(a_scenario(consumers=consumer_group(2, ConsumerConfig(virtual_node_cnt=0)), queues=8), script)

    # No place on the ring: no queue has an owner, and the assigner says so.
    ((_, allocated), *_) = believed(trace, "allocation", "broker-a")
    assert set(map(len, allocated["shares"].values())) == {0}


def test_with_the_prototype_of_2020_a_call_that_fails_drops_all_queues():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c1", "broker-a")
        await stage.for_ms(40_000)

    def owned_by_c1(strategy):
        config = pinned(allocate_message_queue_strategy=strategy)
        trace = execute(a_scenario(consumers=consumer_group(2, config), brokers=BROKERS, queues=4), script)
        return sum(owners == ["c1"] for owners in trace.owners().values())

    assert (owned_by_c1("PR2169"), owned_by_c1("STICKY")) == (0, 4)


def test_with_the_prototype_a_member_in_the_place_of_another_gets_no_queue():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("c2")
        stage.start("c2")
        await stage.for_ms(60_000)

    config = pinned(allocate_message_queue_strategy="PR2169")
    trace = execute(a_scenario(consumers=consumer_group(2, config), queues=8), script)

    assert sum(not owners for owners in trace.owners().values()) == 4
