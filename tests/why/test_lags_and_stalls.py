"""Why messages wait: each cause in a cluster, with its healthy twin, and the same causes in traces by hand."""

import attrs
import pytest

from emulator.run import run_scenario
from emulator.testing import ConsoleUser, consumer_group
from emulator.trace.schema import TraceLevel
from emulator.why.question import WhyError
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_admin import UpdateGroupForbiddenRequestHeader
from nodes.protocol.model import MessageModel
from why.why_runs import Requested, administrator, busy, has, requested, switch_off
from why.written_traces import TracedByHand

FILTERED = int(ResponseCode.PULL_RETRY_IMMEDIATELY)
DEAF = {50: "cut c1 ns-1", 51: "cut c2 ns-1"}
"""Consumers that do not hear of new routes."""


@pytest.fixture(scope="module")
def switched_off(tmp_path_factory):
    folder = tmp_path_factory.mktemp("switched_off")
    return requested(busy(), folder, act=lambda me: switch_off(me, "broker-a"), for_s=120)


def test_a_group_that_is_switched_off_is_named_first_with_its_broker_and_the_request_that_did_it(switched_off):
    reported = switched_off.why("lag g at 110s")

    assert reported[0].startswith("at 110.000 s 2")
    assert "messages wait for group g in 4 queues: pulls get NO_PERMISSION since 60.0" in reported[0]
    assert reported[0].endswith("because group g is switched off (consumeEnable false) at broker-a")
    assert has(reported, "broker-a refused", "pulls of c")
    assert has(reported, "orders/broker-a/0:", "the first, offset", "nothing has moved since 60.")
    assert has(reported, "broker-a    since UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) of probe arrived")


def test_before_it_was_switched_off_nothing_waits(switched_off):
    reported = switched_off.why("lag g at 55s")

    assert len(reported) == 1
    assert reported[0].startswith("at 55.000 s nothing of group g waits")


def test_the_stalled_queue_begins_with_what_stalls_it_and_the_other_broker_is_calm(switched_off):
    for question in ("stall orders/broker-a/0 at 110s", "stalled queue orders/broker-a/0 of g at 110s"):
        reported = switched_off.why(question)
        assert "messages of queue orders/broker-a/0 wait for group g, and none has moved since 60." in reported[0]
        assert reported[0].endswith("because group g is switched off (consumeEnable false) at broker-a")

    calm = switched_off.why("stall orders/broker-b/0 at 110s")
    assert len(calm) == 1
    assert "queue orders/broker-b/0 of group g is not stalled: no message waits" in calm[0]


def test_a_stalled_queue_leads_to_its_stall_before_its_start(switched_off):
    reported = switched_off.why("queue orders/broker-a/0 at 110s")

    assert "has one owner: c" in reported[0]
    assert "because group g is switched off" in reported[1]
    assert not has(reported, "acquired queue")
    assert has(switched_off.why("queue orders/broker-b/0 at 110s"), "acquired queue")


def test_a_group_that_is_switched_off_is_named_where_answers_are_only_counted(tmp_path):
    async def act(session):
        await switch_off(ConsoleUser(session), "broker-a")

    scenario = attrs.evolve(busy(), run_for_ms=100_000)
    path = run_scenario(scenario, runs=tmp_path, level=TraceLevel.FINDINGS, session_tasks=(act,)).path
    reported = Requested(path).why("lag g")

    assert "pulls get NO_PERMISSION since 60." in reported[0]
    assert "group g is switched off (consumeEnable false) at broker-a" in reported[0]


def test_a_topic_that_may_not_be_read_is_named_and_not_the_group(tmp_path):
    run = requested(busy(), tmp_path, {60: "permission broker-a 2 topic orders"}, for_s=110)
    reported = run.why("lag g")

    assert "the permission of orders at broker-a lacks read, so no consumer owns its queues" in reported[0]
    assert has(reported, "operator", "since the operator began permission-1 (permission broker-a")


def test_a_pull_of_a_topic_that_may_not_be_read_names_the_topic(tmp_path):
    run = requested(busy(), tmp_path, {**DEAF, 60: "permission broker-a 2 topic orders"}, for_s=90)

    assert "because the permission of topic orders lacks read at broker-a" in run.why("lag g")[0]


def test_a_broker_that_may_not_be_read_is_named(tmp_path):
    run = requested(busy(), tmp_path, {**DEAF, 60: "permission broker-a 2"}, for_s=90)

    assert run.why("lag g")[0].endswith(
        "because the permission of the broker lacks read (brokerPermission) at broker-a"
    )


def test_a_group_that_is_forbidden_to_read_one_topic_is_named(tmp_path):
    async def forbid(me):
        await me.at_ms(60_000)
        admin = await administrator(me)
        header = UpdateGroupForbiddenRequestHeader("g", "orders", readable=False)
        await admin.ask("broker-a", RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)

    reported = requested(busy(), tmp_path, act=forbid, for_s=110).why("lag g")

    assert "because group g is forbidden to read topic orders at broker-a" in reported[0]


def test_a_suspended_owner_is_named_with_the_fault_while_and_just_after_it_sleeps(tmp_path):
    run = requested(busy(), tmp_path, {60: "suspend c1", 90: "resume c1"}, for_s=120)
    reported = run.why("lag g at 85s")

    assert reported[0].endswith("its owner does not run: c1 (suspended at 60.000 s)")
    assert has(reported, "operator", "since the operator began suspend-1 (suspend c1)")
    assert "was suspended from 60.000 s to 90.000 s" in run.why("lag g at 90000.5ms")[0]
    calm = run.why("lag g at 119s")
    assert calm[0].startswith("at 119.000 s nothing of group g waits")
    assert has(calm, "stood still longest, from 60.", "ask `stall orders/")


def test_an_owner_that_does_not_reach_its_broker_is_named_with_the_cut(tmp_path):
    run = requested(busy(consumers=1), tmp_path, {40: "cut c1 broker-a"}, for_s=110)
    reported = run.why("lag g at 100s")

    assert "c1 does not reach broker-a since" in reported[0]
    assert has(reported, "cut-1 (cut c1 <-> broker-a), from 40.000 s", "it took")


def test_a_queue_without_owner_lists_what_its_members_do(tmp_path):
    run = requested(busy(consumers=1), tmp_path, {60: "kill c1"}, for_s=90)
    reported = run.why("lag g")

    assert "it has no owner: c1 lost it last, at 60.000 s" in reported[0]
    assert has(reported, "g has no member: the process of c1 at 60.000 s (killed) ended")
    assert has(reported, "operator", "since the operator began kill-1 (kill c1)")


def test_a_slow_listener_is_named_with_its_rate_and_a_fast_one_is_calm(tmp_path):
    slow = requested(busy(consumers=consumer_group(1, consume_ms=10_000), brokers=("broker-a",)), tmp_path, for_s=120)

    assert "the listener of c1 is slow: in the last 30 s" in slow.why("lag g")[0]
    assert "a second are consumed and 2.5 a second stored" in slow.why("lag g")[0]


def test_several_causes_each_have_their_own_lines(tmp_path):
    run = requested(busy(), tmp_path, {70: "suspend c2"}, act=lambda me: switch_off(me, "broker-a"), for_s=100)
    reported = run.why("lag g at 99s")

    assert "of them: pulls get NO_PERMISSION" in reported[0]
    assert has(reported, "messages in 4 queues: pulls get NO_PERMISSION")
    assert has(reported, "messages in 4 queues: its owner does not run: c2 (suspended at 70.000 s)")


def test_a_member_that_broadcasts_is_judged_alone(tmp_path):
    consumer = ConsumerConfig(message_model=MessageModel.BROADCASTING)
    run = requested(
        busy(consumers=consumer_group(2, consumer), brokers=("broker-a",)), tmp_path, {60: "suspend c2"}, for_s=90
    )
    reported = run.why("lag g at 89s")

    assert "its owner does not run: c2 (suspended at 60.000 s)" in reported[0]
    assert has(reported, "orders/broker-a/0 for c2:")
    assert not has(reported, "for c1:")


# --- traces by hand ---------------------------------------------------------------------------


@pytest.fixture
def traced(tmp_path):
    traced = TracedByHand(tmp_path)
    for node in ("broker-a", "c1", "c2"):
        traced.life(node, "started")
    for node in ("c1", "c2"):
        traced.belief(node, "subscription", "g/orders", {"expression": "*", "type": "TAG", "model": "CLUSTERING"})
    return traced


def test_an_owner_that_lost_its_lock_is_named_with_the_one_that_has_it(traced):
    traced.at(1).owned("c1", "acquired", offset=0)
    traced.owned("c1", "locked")
    traced.at(20).owned("c1", "unlocked")
    traced.belief("broker-a", "queue_locks", "g", {"orders@broker-a@3": "127.1.10.2@1401#7"})
    traced.at(21).message("broker-a", "stored", offset=0)
    traced.at(60).timer("c1", "RebalanceService")
    reported = traced.why("lag g")

    assert "c1 owns it and lost its lock at 20.000 s, so it does not consume in order" in reported[0]
    assert has(reported, "broker-a still holds a lock of c2")


def test_a_queue_that_a_dead_member_has_locked_is_named_with_its_lock(traced):
    traced.at(1).owned("c2", "acquired", offset=0)
    traced.owned("c2", "locked")
    traced.belief("broker-a", "queue_locks", "g", {"orders@broker-a@3": "127.1.10.2@1401#7"})
    traced.at(20).message("broker-a", "stored", offset=0)
    traced.life("c2", "killed")
    traced.at(60).timer("c1", "RebalanceService")
    reported = traced.why("lag g")

    assert reported[0].endswith("c2 lost it last, at 20.000 s, and broker-a still holds a lock of c2")


def test_a_message_that_the_owner_does_not_subscribe_to_is_named(traced):
    traced.belief("c1", "subscription", "g/orders", {"expression": "a", "type": "TAG", "model": "CLUSTERING"})
    traced.at(1).owned("c1", "acquired", offset=0)
    traced.at(21).message("broker-a", "stored", offset=0, tags="b")
    traced.at(60).timer("c1", "RebalanceService")

    assert "c1 owns it and subscribes to a, and the first message has tag b" in traced.why("lag g")[0]


def test_a_pull_of_which_the_filter_left_everything_out_is_no_refusal(traced):
    traced.at(1).owned("c1", "acquired", offset=0)
    traced.at(21).message("broker-a", "stored", offset=0)
    traced.at(22).frame("broker-a", "c1", RequestCode.PULL_MESSAGE, kind="response", status=FILTERED)
    traced.at(23).life("c1", "suspended")
    traced.at(40).timer("c2", "RebalanceService")

    assert traced.why("lag g")[0].endswith("its owner does not run: c1 (suspended at 23.000 s)")


def test_a_broker_that_is_gone_is_named(traced):
    traced.at(1).owned("c1", "acquired", offset=0)
    traced.at(21).message("broker-a", "stored", offset=0)
    traced.at(22).life("broker-a", "killed")
    traced.at(60).timer("c1", "RebalanceService")

    assert traced.why("lag g")[0].endswith(": no broker of broker-a runs: broker-a (killed at 22.000 s)")


def test_consumed_left_out_committed_and_reset_messages_do_not_wait(traced):
    traced.at(1).owned("c1", "acquired", offset=0)
    for offset in range(6):
        traced.at(2).message("broker-a", "stored", offset=offset)
    traced.at(3).message("c1", "consumed", group="g", offset=0)
    traced.message("broker-a", "filtered", group="g", offset=1)
    traced.message("broker-a", "committed", group="g", offset=3)
    traced.at(60).timer("c1", "RebalanceService")
    assert traced.why("lag g")[0].startswith("at 60.000 s 3 messages wait for group g in 1 queue")
    traced.message("broker-a", "reset", group="g", offset=6)

    assert traced.why("lag g") == ("at 60.000 s nothing of group g waits", *traced.why("lag g")[1:])


def test_unknown_groups_queues_and_topics_lead_to_the_nearest_question(traced):
    traced.at(1).owned("c1", "acquired", offset=0)
    traced.message("broker-a", "stored", offset=0)
    traced.message("broker-a", "stored", offset=0, queue="logs/broker-a/0")
    for question, reported in {
        "lag gg": "there is no group gg; ask `lag g`",
        "stall orders/broker-a/4": "there is no queue orders/broker-a/4; ask `stall orders/broker-a/3`",
        "stall ordrs/broker-a/3": "there is no topic ordrs; ask `topic orders`",
        "stall orders/broker-a/3 of gg": "there is no group gg; ask `stall orders/broker-a/3 of g`",
        "stall logs/broker-a/0": "no group consumes logs; ask `topic logs`",
    }.items():
        with pytest.raises(WhyError) as refused:
            traced.why(question)
        assert str(refused.value) == reported
