"""What clients of guests believe and hold, as rows of the trace: who is a member, and who reported what.

Their frames are sent and received here in virtual time; programs that come in through a socket are run elsewhere.
"""

import json

import pytest

from emulator.guests.views.guest_views import SCAN_EVERY_MS
from emulator.guests.views.holds import PULL_AGAIN_MS, PULL_UNANSWERED_MS
from emulator.guests.watch import WATCHED_FRAMES, WATCHED_REQUESTS
from nodes.cause import cause
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    HeartbeatData,
)
from nodes.protocol.registry import encode_header
from support.watched_nodes import (
    BROADCASTING,
    BROKER,
    CLUSTERING,
    NAMESERVER,
    POP,
    PORTS,
    PULL,
    PUSH,
    consumer,
    executed,
    guest_rows,
    owned,
    route,
)


def test_two_clients_of_one_program_are_two_members():
    async def scene(stage):
        stage.member("c@1").pull(0, 7)
        stage.member("c@2").pull(0, 7)
        return stage.names

    run = executed(scene)

    assert guest_rows(run, "lifecycle", "node", "role", "event", "detail") == [
        ("shop", "consumer", "started", "c@1"),
        ("shop", "consumer", "ready", "g"),
        ("shop/2", "consumer", "started", "c@2"),
        ("shop/2", "consumer", "ready", "g"),
    ]
    assert guest_rows(run, "ownership", "node", "event", "broker_name", "queue_id", "offset") == [
        ("shop", "acquired", BROKER, 0, 7),
        ("shop/2", "acquired", BROKER, 0, 7),
    ]
    assert run.result == {"c@1": "shop", "c@2": "shop/2"}


def test_one_client_has_a_connection_to_each_broker_and_is_one_member():
    async def scene(stage):
        for node in (BROKER, "broker-b"):
            connection = stage.dial(node)
            connection.heartbeat("c@1", consumer())
            connection.pull(0)

    run = executed(scene)

    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",)]
    assert guest_rows(run, "ownership", "node", "broker_name") == [("shop", BROKER), ("shop", "broker-b")]


def test_a_pass_is_seen_from_the_members_and_the_route_that_it_was_reported():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        nameserver.route("t", route(broker_a=4, broker_b=2), led=11)
        broker.members("c@2", "c@1", led=12)
        broker.pull(0)
        broker.members("c@2", "c@1", led=13)

    run = executed(scene)

    assert guest_rows(run, "beliefs", "kind", "subject", "source", "cause") == [
        ("subscription", "g/t", "", 0),
        ("route", "t", PORTS[NAMESERVER], 11),
        ("view", "g/t", PORTS[BROKER], 12),
    ]
    assert guest_rows(run, "beliefs", "value", kind="view") == [
        ('{"cids":["c@1","c@2"],"queues":{"broker-a":4,"broker-b":2}}',)
    ]
    assert guest_rows(run, "ownership", "cause") == [(12,)]


def test_what_was_reported_before_anybody_said_who_it_is_is_believed_then():
    async def scene(stage):
        stage.dial(NAMESERVER).route("t", route(broker_a=1), led=11)
        await stage.after(1_000)
        stage.member("c@1")

    assert guest_rows(executed(scene), "beliefs", "node", "kind", "t_ns", "cause") == [
        ("shop", "subscription", 1_000_000_000, 0),
        ("shop", "route", 1_000_000_000, 11),
    ]


def test_the_connection_that_asks_for_a_retry_topic_is_of_a_consumer_of_that_group():
    async def scene(stage):
        producers, consumers = stage.dial(NAMESERVER), stage.dial(NAMESERVER)
        producers.route("t", route(broker_a=1))
        consumers.route("t", route(broker_a=2))
        consumers.route("%RETRY%g", route(broker_a=1))
        stage.dial().heartbeat("p@1", producers=["till"])
        await stage.after(10)
        stage.member("c@2")
        producers.route("t", route(broker_a=3))
        consumers.route("t", route(broker_a=4))

    run = executed(scene)

    reported = guest_rows(run, "beliefs", "node", "value", kind="route", subject="t")
    newest = {node: json.loads(value)[BROKER]["queues"][0] for node, value in reported}
    assert newest == {"shop": 3, "shop/2": 4}


def test_a_pass_follows_the_notice_that_members_have_changed():
    async def scene(stage):
        broker = stage.member("c@1")
        fields = encode_header(headers.ConsumerGroupRequestHeader("g"))
        cause.set(77)
        broker.watched.on_frame(Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, CommandFlag.ONEWAY, ext_fields=fields))
        soon = broker.members("c@1").cause
        await stage.after(20_000)
        return soon, broker.members("c@1").cause

    assert executed(scene).result == (77, 0)


def test_what_is_not_in_the_route_any_more_is_dropped_by_the_next_pass():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        nameserver.route("t", route(broker_a=2))
        broker.members("c@1")
        broker.pull(0)
        broker.pull(1)
        nameserver.route("t", route(broker_a=1))
        broker.members("c@1")

    assert owned(executed(scene)) == [("shop", "acquired", 0), ("shop", "acquired", 1), ("shop", "dropped", 1)]


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_a_queue_that_is_not_pulled_any_more_is_dropped_while_its_owner_goes_on(code):
    async def scene(stage):
        broker = stage.member("c@1")
        broker.nothing_found(broker.pull(1, code=code))
        for _ in range(20):
            broker.nothing_found(broker.pull(0, code=code))
            await stage.after(500)

    run = executed(scene)

    assert owned(run) == [("shop", "acquired", 1), ("shop", "acquired", 0), ("shop", "dropped", 1)]
    (dropped,) = run.trace.select("ownership", event="dropped")
    assert PULL_AGAIN_MS <= dropped["t_ns"] / 1e6 <= PULL_AGAIN_MS + SCAN_EVERY_MS


def test_a_queue_of_a_connection_that_ends_is_dropped_unless_it_is_pulled_over_another_one():
    async def scene(stage):
        broker, again, other = stage.member("c@1"), stage.member("c@1"), stage.dial("broker-b")
        broker.pull(0)
        broker.pull(1)
        broker.end()
        again.pull(1)
        for _ in range(20):
            other.heartbeat("c@1", consumer())
            await stage.after(1_000)

    run = executed(scene)

    assert owned(run) == [("shop", "acquired", 0), ("shop", "acquired", 1), ("shop", "dropped", 0)]
    (dropped,) = run.trace.select("ownership", event="dropped")
    assert PULL_AGAIN_MS <= dropped["t_ns"] / 1e6 <= PULL_AGAIN_MS + SCAN_EVERY_MS


def test_two_who_pull_one_queue_both_hold_it_until_one_is_silent():
    async def scene(stage):
        shop, mail = stage.member("c@1"), stage.member("c@2", "mail")
        shop.pull(0)
        await stage.after(1_000)
        for _ in range(50):
            mail.nothing_found(mail.pull(0))
            shop.heartbeat("c@1", consumer())
            await stage.after(1_000)

    run = executed(scene)

    assert owned(run) == [("shop", "acquired", 0), ("mail", "acquired", 0), ("shop", "dropped", 0)]
    (dropped,) = run.trace.select("ownership", event="dropped")
    assert PULL_UNANSWERED_MS <= dropped["t_ns"] / 1e6 <= PULL_UNANSWERED_MS + SCAN_EVERY_MS


def test_a_frozen_client_keeps_what_it_holds():
    async def scene(stage):
        stage.member("c@1").pull(0)
        await stage.after(600_000)

    assert owned(executed(scene)) == [("shop", "acquired", 0)]


def test_locks_are_reported_when_they_are_granted_and_given_back_with_the_queue():
    async def scene(stage):
        broker = stage.member("c@1")
        broker.lock("c@1", 0, 1, granted=[0])
        broker.pull(0)
        broker.lock("c@1", 0, 1, granted=[0, 1])
        broker.lock("c@1", 0, 1, granted=[0])
        broker.unlock("c@1", 0)

    assert owned(executed(scene)) == [
        ("shop", "locked", 0),
        ("shop", "acquired", 0),
        ("shop", "locked", 1),
        ("shop", "unlocked", 1),
        ("shop", "unlocked", 0),
        ("shop", "dropped", 0),
    ]


def test_a_pull_of_which_no_one_knows_whose_it_is_belongs_to_no_one():
    async def scene(stage):
        for client_id in ("c@1", "c@2"):
            stage.member(client_id).end(by_node=True)
        stage.dial().pull(0)
        stage.dial(program="mail").pull(0)

    assert owned(executed(scene)) == []


@pytest.mark.parametrize(
    "answer",
    [
        consumer(model=BROADCASTING),
        consumer(kind=POP),
        consumer("another topic", kind=PULL),
    ],
)
def test_who_shares_no_queues_out_owns_none(answer):
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1", "shop", answer)
        nameserver.route("t", route(broker_a=1))
        broker.pull(0)
        broker.members("c@1")

    run = executed(scene)

    assert owned(run) == []
    assert guest_rows(run, "beliefs", "kind") == [("subscription",), ("route",)]


def test_a_heartbeat_without_subscriptions_takes_none_away():
    async def scene(stage):
        broker = stage.member("c@1")
        known = ConsumerData("g", PUSH, CLUSTERING, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ())
        bare = HeartbeatData("c@1", (), (known,), heartbeat_fingerprint=1, without_sub=True)
        broker.say(RequestCode.HEART_BEAT, None, bare)
        broker.pull(0)

    assert owned(executed(scene)) == [("shop", "acquired", 0)]


def test_a_frame_that_is_none_says_nothing_and_is_passed_on():
    async def scene(stage):
        broker = stage.member("c@1")
        broken = Command(RequestCode.HEART_BEAT, 0, 1, body=b"\xc1")
        response = Command(RequestCode.PULL_MESSAGE, CommandFlag.RESPONSE, 2)
        passed = [broker.watched.on_request(broken), broker.watched.on_request(response)]
        requested = broker.say(RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader("t"))
        broker.watched.on_frame(requested.answer(0, None, body=b"\xc1"))
        return passed == [broken, response]

    run = executed(scene)

    assert run.result is True
    assert guest_rows(run, "beliefs", "kind") == [("subscription",)]


def test_the_frames_that_are_watched_are_those_for_which_a_watch_has_a_handler():
    async def scene(stage):
        watched = stage.dial().watched
        return frozenset(watched._request_handlers), frozenset(watched._frame_handlers)

    assert executed(scene).result == (WATCHED_REQUESTS, WATCHED_FRAMES)
