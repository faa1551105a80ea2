"""What guests that call proxies believe, as rows of the trace: members of which group, who receive from where."""

import json

import pytest

from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import (
    Address,
    Broker,
    Endpoints,
    FilterExpression,
    MessageQueue,
    Publishing,
    Resource,
    Settings,
    Status,
    Subscription,
    SubscriptionEntry,
)
from nodes.protocol.v2.enums import AddressScheme, ClientType, Code, FilterType
from support.watched_nodes import BROKER, PORTS, executed, guest_rows

OK = Status(Code.OK, "OK")
ENDPOINTS = Endpoints(AddressScheme.IPv4, (Address("127.1.1.9", 8_081),))


def settings(group="g", topic="t", tags="*", kind=FilterType.TAG):
    entry = SubscriptionEntry(Resource(topic), FilterExpression(kind, tags))
    return Settings(ClientType.SIMPLE_CONSUMER, subscription=Subscription(Resource(group), (entry,)))


class Calls:
    """The calls of one connection of a guest; any node does for a proxy here."""

    def __init__(self, stage, program="shop"):
        self.connection = stage.dial(BROKER, program)

    def call(self, code, request, client_id):
        return self.connection.say(code, CallMetadataHeader(client_id, "JAVA"), request)

    def come(self, client_id, reported, *, status=ResponseCode.SUCCESS, led=0):
        requested = self.call(RequestCode.V2_TELEMETRY, service.TelemetryCommand(settings=reported), client_id)
        self.connection.answer(requested, service.TelemetryCommand(OK, reported), code=status, led=led)

    def receive(self, client_id, *, group="g", topic="t", broker="broker-a"):
        queue = MessageQueue(Resource(topic), -1, broker=Broker(broker))
        self.call(RequestCode.V2_RECEIVE_MESSAGE, service.ReceiveMessageRequest(Resource(group), queue), client_id)

    def route(self, client_id, topic="t", led=0, status=OK):
        requested = self.call(RequestCode.V2_QUERY_ROUTE, service.QueryRouteRequest(Resource(topic)), client_id)
        queue = MessageQueue(Resource(topic), 0, broker=Broker("broker-a", 0, ENDPOINTS))
        self.connection.answer(requested, service.QueryRouteResponse(status, (queue,)), led=led)

    def leave(self, client_id):
        request = service.NotifyClientTerminationRequest(Resource("g"))
        self.call(RequestCode.V2_NOTIFY_CLIENT_TERMINATION, request, client_id)


def test_settings_that_a_proxy_accepts_introduce_a_member_and_its_subscription():
    async def scene(stage):
        Calls(stage).come("c@1", settings(tags="a || b"))

    run = executed(scene)

    assert guest_rows(run, "lifecycle", "node", "role", "event", "detail") == [
        ("shop", "consumer", "started", "c@1"),
        ("shop", "consumer", "ready", "g"),
    ]
    ((subject, value),) = guest_rows(run, "beliefs", "subject", "value", kind="subscription")
    assert subject == "g/t"
    assert json.loads(value) == {"delivery": "proxy", "expression": "a || b", "model": "CLUSTERING", "type": "TAG"}


@pytest.mark.parametrize(("kind", "shown"), [(FilterType.SQL, "SQL92"), (FilterType.FILTER_TYPE_UNSPECIFIED, "TAG")])
def test_the_kind_of_an_expression(kind, shown):
    async def scene(stage):
        Calls(stage).come("c@1", settings(kind=kind))

    ((value,),) = guest_rows(executed(scene), "beliefs", "value", kind="subscription")
    assert json.loads(value)["type"] == shown


def test_settings_that_a_proxy_refuses_introduce_nobody():
    async def scene(stage):
        calls = Calls(stage)
        calls.come("c@1", settings(), status=ResponseCode.GRPC_ERROR)
        calls.receive("c@1")

    run = executed(scene)
    assert guest_rows(run, "lifecycle", "event") == guest_rows(run, "ownership", "event") == []


def test_settings_that_change_are_another_subscription_of_the_same_member():
    async def scene(stage):
        calls = Calls(stage)
        calls.come("c@1", settings())
        calls.come("c@1", settings(tags="a"))
        calls.come("c@1", settings(tags="a"))

    run = executed(scene)
    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",)]
    assert len(guest_rows(run, "beliefs", "value", kind="subscription")) == 2


def test_a_member_receives_from_a_broker_once_and_owns_no_queue():
    async def scene(stage):
        calls = Calls(stage)
        calls.come("c@1", settings())
        for broker in ("broker-a", "broker-a", "broker-b"):
            calls.receive("c@1", broker=broker)
        calls.receive("c@1", group="another")

    assert guest_rows(executed(scene), "ownership", "event", "group", "broker_name", "queue_id", "offset") == [
        ("pop_acquired", "g", "broker-a", -1, -1),
        ("pop_acquired", "g", "broker-b", -1, -1),
    ]


def test_a_route_that_came_before_the_settings_is_believed_with_them():
    async def scene(stage):
        calls = Calls(stage)
        calls.route("c@1", led=11)
        calls.route("c@2", led=12)
        calls.come("c@1", settings())
        calls.route("c@1", led=13)  # the same once more
        calls.route("c@1", topic="u", led=14, status=Status(Code.TOPIC_NOT_FOUND, "no"))

    run = executed(scene)
    assert guest_rows(run, "beliefs", "node", "subject", "source", "cause", kind="proxy_route") == [
        ("shop", "t", PORTS[BROKER], 11)
    ]
    ((value,),) = guest_rows(run, "beliefs", "value", kind="proxy_route")
    assert json.loads(value) == {"broker-a": {"endpoints": ["127.1.1.9:8081"], "ids": [0], "queues": 1}}


def test_many_clients_may_call_over_one_connection():
    async def scene(stage):
        calls = Calls(stage)
        for number in range(3):
            calls.come(f"c@{number}", settings())
        await stage.after(20_000)
        for number in range(3):
            calls.receive(f"c@{number}")
        calls.connection.end()
        await stage.after(20_000)

    run = executed(scene)
    assert guest_rows(run, "ownership", "node") == [("shop",), ("shop/2",), ("shop/3",)]
    assert guest_rows(run, "lifecycle", "node", event="killed") == [("shop",), ("shop/2",), ("shop/3",)]


def test_a_client_that_terminates_has_stopped_and_one_that_ends_otherwise_was_killed():
    async def scene(stage):
        gone, lost = Calls(stage), Calls(stage)
        gone.come("c@1", settings())
        lost.come("c@2", settings())
        gone.leave("c@1")
        gone.connection.end()
        await stage.after(2_000)
        lost.connection.end()
        await stage.after(20_000)

    assert guest_rows(executed(scene), "lifecycle", "node", "event")[-2:] == [("shop", "stopped"), ("shop/2", "killed")]


def test_a_producer_has_a_process_and_no_group():
    async def scene(stage):
        publishing = Publishing((Resource("t"),))
        Calls(stage).come("p@1", Settings(ClientType.PRODUCER, publishing=publishing))

    run = executed(scene)
    assert guest_rows(run, "lifecycle", "role", "event", "detail") == [
        ("producer", "started", "p@1"),
        ("producer", "ready", ""),
    ]


def test_calls_that_no_proxy_answers_do_not_pile_up():
    async def scene(stage):
        calls = Calls(stage)
        for number in range(3_000):
            request = service.QueryRouteRequest(Resource("t"))
            calls.call(RequestCode.V2_QUERY_ROUTE, request, f"c@{number}")
        return len(calls.connection.watched.calls.waiting)

    assert executed(scene).result == 1_000
