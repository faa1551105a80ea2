"""What clients of guests believe and hold, as rows of the trace: who is a member, who reported what, who is gone.

Their frames are said and reported here in virtual time; programs that come in through a socket are run elsewhere.
"""

import json
from itertools import count

import pytest

from emulator.guest_views.holds import PULL_AGAIN_MS, PULL_UNANSWERED_MS
from emulator.guest_views.views import BACK_MS, HEARTBEAT_MS, SCAN_EVERY_MS, GuestViews
from emulator.testing.worlds import execute_world, listening, process_of, until_ms
from nodes.cause import cause
from nodes.protocol import bodies, headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.model import (
    BrokerData,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    ProducerData,
    QueueData,
    SubscriptionData,
    TopicRouteData,
)
from nodes.protocol.registry import encode_body, encode_header

NAMESERVER, BROKER = "ns-1", "broker-a"
PUSH, POP, PULL = ConsumeType.CONSUME_PASSIVELY, ConsumeType.CONSUME_POP, ConsumeType.CONSUME_ACTIVELY
CLUSTERING, BROADCASTING = MessageModel.CLUSTERING, MessageModel.BROADCASTING
PORTS = {NAMESERVER: "127.1.1.1:10911", BROKER: "127.1.1.2:10911", "broker-b": "127.1.1.3:10911"}


def consumer(*topics, group="g", kind=PUSH, model=CLUSTERING):
    subscriptions = tuple(SubscriptionData(topic) for topic in topics or ("t",))
    return ConsumerData(group, kind, model, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, subscriptions)


def route(**queues):
    names = {name.replace("_", "-"): number for name, number in queues.items()}
    return TopicRouteData(
        tuple(QueueData(name, number, number, 6) for name, number in names.items()),
        tuple(BrokerData("c", name, {0: PORTS[name]}) for name in names),
    )


class Connection:
    """One connection of a guest, at its end."""

    opaques = count(1)

    def __init__(self, watched):
        self.watched = watched

    def say(self, code, header=None, body=None, *, oneway=False):
        fields = {} if header is None else encode_header(header)
        raw = None if body is None else encode_body(body)
        flag = CommandFlag.ONEWAY if oneway else 0
        return self.watched.on_request(Command(code, flag, next(self.opaques), ext_fields=fields, body=raw))

    def answer(self, requested, body=None, *, code=ResponseCode.SUCCESS, led=0):
        cause.set(led)
        self.watched.on_frame(requested.answer(code, None, body=None if body is None else encode_body(body)))

    def heartbeat(self, client_id, *consumers, producers=()):
        self.say(RequestCode.HEART_BEAT, None, HeartbeatData(client_id, tuple(map(ProducerData, producers)), consumers))

    def route(self, topic, reported, led=0):
        self.answer(
            self.say(RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(topic)), reported, led=led
        )

    def members(self, *client_ids, group="g", led=0):
        requested = self.say(RequestCode.GET_CONSUMER_LIST_BY_GROUP, headers.ConsumerGroupRequestHeader(group))
        self.answer(requested, bodies.GetConsumerListByGroupResponseBody(client_ids), led=led)
        return requested

    def pull(self, queue_id, offset=0, *, group="g", topic="t", code=RequestCode.PULL_MESSAGE):
        return self.say(code, headers.PullMessageRequestHeader(group, topic, queue_id, offset, 32, 2, 0, 15_000, 0))

    def nothing_found(self, requested):
        self.answer(requested, code=ResponseCode.PULL_NOT_FOUND)

    def lock(self, client_id, *queue_ids, granted):
        body = bodies.LockBatchRequestBody("g", client_id, queues(*queue_ids))
        self.answer(self.say(RequestCode.LOCK_BATCH_MQ, None, body), bodies.LockBatchResponseBody(queues(*granted)))

    def unlock(self, client_id, *queue_ids):
        self.say(RequestCode.UNLOCK_BATCH_MQ, None, bodies.LockBatchRequestBody("g", client_id, queues(*queue_ids)))

    def unregister(self, client_id, group="g"):
        header = headers.UnregisterClientRequestHeader(client_id, consumer_group=group)
        self.say(RequestCode.UNREGISTER_CLIENT, header)

    def end(self, *, by_node=False):
        self.watched.on_end(by_node=by_node)


def queues(*queue_ids):
    return tuple(MessageQueue("t", BROKER, queue_id) for queue_id in queue_ids)


class WatchedNodes:
    """Nodes to dial, and whoever watches those who do."""

    def __init__(self, world):
        self.world = world
        self.names = {}
        self.hosts = {}
        self.views = GuestViews(world.fabric, {BROKER: BROKER, "broker-b": "broker-b"}, self.names)

    async def open(self):
        for number, name in enumerate((NAMESERVER, BROKER, "broker-b"), start=1):
            self.hosts[name], _ = await listening(self.world, number, name)
        return self

    def dial(self, node=BROKER, program="shop"):
        ip, _, port = PORTS[node].partition(":")
        return Connection(self.views.watch(program, self.world.fabric.listeners[ip, int(port)]))

    def member(self, client_id, program="shop", *consumers):
        connection = self.dial(program=program)
        connection.heartbeat(client_id, *(consumers or (consumer(),)))
        return connection

    async def after(self, duration_ms):
        await until_ms(self.world, self.world.timeline.now_ns // 1_000_000 + duration_ms)


def executed(scene):
    async def main(world):
        return await scene(await WatchedNodes(world).open())

    return execute_world(main)


def guest_rows(run, table, *columns, **fields):
    rows = [row for row in run.trace.select(table, **fields) if row["node"].startswith(("shop", "mail"))]
    return [tuple(row[column] for column in columns) for row in rows]


def owned(run):
    return guest_rows(run, "ownership", "node", "event", "queue_id")


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


def test_a_dead_broker_takes_no_queue_from_anybody_and_gives_time_to_come_back():
    async def scene(stage):
        broker, other = stage.member("c@1"), stage.dial("broker-b")
        other.heartbeat("c@1", consumer())
        broker.pull(0)
        await stage.hosts[BROKER].kill()
        broker.end(by_node=True)
        for _ in range(120):
            other.heartbeat("c@1", consumer())
            await stage.after(1_000)
        before = len(stage.world.fabric.listeners)
        await stage.hosts[BROKER].restart()
        process_of(stage.hosts[BROKER]).listen(10_911, None)
        for _ in range(20):
            other.heartbeat("c@1", consumer())
            await stage.after(1_000)
        return before

    run = executed(scene)

    assert run.result == 2
    assert owned(run) == [("shop", "acquired", 0), ("shop", "dropped", 0)]
    (dropped,) = run.trace.select("ownership", event="dropped")
    assert 120_000 < dropped["t_ns"] / 1e6 < 120_000 + PULL_AGAIN_MS + 2 * SCAN_EVERY_MS


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


def test_who_says_farewell_gives_up_all_of_that_group_and_is_stopped_when_its_connections_end():
    async def scene(stage):
        broker = stage.member("c@1", "shop", consumer(), consumer(group="h"))
        broker.pull(0)
        broker.pull(0, group="h")
        broker.unregister("c@1")
        await stage.after(1_000)
        broker.unregister("c@1", "h")
        broker.end()
        await stage.after(1_000)

    run = executed(scene)

    assert guest_rows(run, "ownership", "event", "group") == [
        ("acquired", "g"),
        ("acquired", "h"),
        ("dropped", "g"),
        ("dropped", "h"),
    ]
    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",), ("stopped",)]


def test_all_connections_at_once_are_the_end_of_a_process_and_what_comes_then_is_the_next_one():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        broker.end()
        nameserver.end()
        await stage.after(1_000)
        stage.member("c@2")
        return stage.names

    run = executed(scene)

    assert guest_rows(run, "lifecycle", "node", "incarnation", "event") == [
        ("shop", 1, "started"),
        ("shop", 1, "ready"),
        ("shop", 1, "killed"),
        ("shop", 2, "started"),
        ("shop", 2, "ready"),
    ]
    assert run.result == {"c@1": "shop", "c@2": "shop"}


@pytest.mark.parametrize(("by_node", "patience_ms"), [(False, BACK_MS), (True, HEARTBEAT_MS)])
def test_who_does_not_come_back_after_its_last_connection_is_over(by_node, patience_ms):
    async def scene(stage):
        stage.dial(NAMESERVER)
        stage.member("c@1").end(by_node=by_node)
        await stage.after(60_000)

    (killed,) = executed(scene).trace.select("lifecycle", event="killed")

    assert patience_ms <= killed["t_ns"] / 1e6 <= patience_ms + SCAN_EVERY_MS


def test_who_closes_a_connection_and_dials_again_has_never_been_away():
    async def scene(stage):
        stage.dial(NAMESERVER)
        broker = stage.member("c@1")
        broker.pull(0)
        broker.end()
        await stage.after(3_000)
        again = stage.dial()
        for _ in range(60):
            again.nothing_found(again.pull(0))
            await stage.after(1_000)

    run = executed(scene)

    assert owned(run) == [("shop", "acquired", 0)]
    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",)]


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


def test_a_world_that_ends_says_nothing_of_its_guests():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        nameserver.end()
        broker.end()

    assert guest_rows(executed(scene), "lifecycle", "event") == [("started",), ("ready",)]
