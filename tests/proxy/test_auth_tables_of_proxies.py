"""Whose a call is, and what it needs: answers read off the source of 5.3.3, a case for each branch."""

from typing import Any

import pytest

from nodes.broker.tables.auth.errors import AuthenticationError, AuthorizationError
from nodes.protocol.acl_signature import SessionCredentials, authorization_of, date_time_of
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import (
    Message,
    MessageQueue,
    Publishing,
    Resource,
    Settings,
    Subscription,
    SubscriptionEntry,
)
from nodes.protocol.v2.enums import ClientType
from nodes.proxy.tables.authentication import CallAuthentication, authentication_of
from nodes.proxy.tables.authorization import contexts_of_call, name_of_call
from nodes.proxy.tables.errors import JavaExceptionError
from nodes.secret import Secret
from support.every_case import each_case

DATE_TIME = "20250101T000000Z"
HEX, BASE64 = "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9", "3nybhbi3iqa8ino29wqQcBydtNk="
"""The HMAC-SHA1 of `The quick brown fox jumps over the lazy dog` under the key `key`, a known answer."""


def claimed(authorization: str | None, date_time: str | None = DATE_TIME) -> CallAuthentication:
    return authentication_of(CallMetadataHeader("c", authorization=authorization, date_time=date_time))


# --- whose a call is ------------------------------------------------------------------


def test_a_client_signs_the_instant_as_java_does() -> None:
    text = "The quick brown fox jumps over the lazy dog"
    signed = authorization_of(SessionCredentials("shop", Secret("key")), text)
    assert signed == f"MQv2-HMAC-SHA1 Credential=shop, SignedHeaders=x-mq-date-time, Signature={HEX.upper()}"
    assert claimed(signed, text) == CallAuthentication("shop", BASE64, text.encode())
    assert date_time_of(1_735_689_600_999) == DATE_TIME


@each_case(
    ("authorization", "username", "signature"),
    [
        (f"MQv2-HMAC-SHA1 Credential=shop, Signature={HEX}", "shop", BASE64),
        (f"anything Signature={HEX.upper()},Credential=shop/region/service", "shop", BASE64),
        ("x Credential=shop", "shop", None),
        ("x Credential=shop, Signature=", "shop", ""),
        ("x Credential=", "", None),
        ("x Credential=/shop", "", None),
        ("x Credential=a=b", "a=b", None),
        ("x Credential=a, Credential=b", "b", None),
        ("x credential=shop", None, None),
        (" Credential=shop", "shop", None),
        ("x ,", None, None),
        ("x Credential=shop,,", "shop", None),
    ],
)
def test_what_a_call_claims(authorization: str, username: str | None, signature: str | None) -> None:
    assert claimed(authorization) == CallAuthentication(username, signature, DATE_TIME.encode())


@pytest.mark.parametrize("authorization", [None, ""])
def test_a_call_without_authorization_claims_nothing_and_needs_no_instant(authorization: str | None) -> None:
    assert claimed(authorization, None) == CallAuthentication()


@each_case(
    ("authorization", "date_time", "text"),
    [
        ("x Credential=shop", None, "datetime is null."),
        ("x Credential=shop", "", "datetime is null."),
        ("MQv2-HMAC-SHA1", DATE_TIME, "authentication header is incorrect."),
        ("x ", DATE_TIME, "authentication keyValues length is incorrect, actual length=1."),
        ("x Credential", DATE_TIME, "authentication keyValues length is incorrect, actual length=1."),
        (
            "x Credential=shop,,Signature=00",
            DATE_TIME,
            "authentication keyValues length is incorrect, actual length=1.",
        ),
        ("x Credential=/", DATE_TIME, "authentication credential length is incorrect, actual length=0."),
        ("x Signature=abc", DATE_TIME, "create authentication context error."),
        ("x Signature=0g", DATE_TIME, "create authentication context error."),
        ("x Signature=00 00", DATE_TIME, "create authentication context error."),
    ],
)
def test_what_cannot_be_read_is_refused(authorization: str, date_time: str | None, text: str) -> None:
    with pytest.raises(AuthenticationError) as refused:
        claimed(authorization, date_time)
    assert str(refused.value) == text


# --- what a call needs ----------------------------------------------------------------

T, G, RETRY = Resource("orders"), Resource("billing"), Resource("%RETRY%billing")
TOPIC_SUB, TOPIC_PUB, GROUP_SUB = "Sub Topic:orders", "Pub Topic:orders", "Sub Group:billing"
PUBLISHES, NEITHER = Settings(publishing=Publishing((T, Resource("bills")))), Settings(ClientType.PRODUCER)
SUBSCRIBES = Settings(
    subscription=Subscription(G, (SubscriptionEntry(T), SubscriptionEntry(RETRY))),
)


def needed(request: Any) -> list[str]:
    return [f"{' or '.join(context.actions)} {context.resource.key}" for context in contexts_of_call(request)]


@each_case(
    ("request_", "needs"),
    [
        (service.QueryRouteRequest(T), ["Pub or Sub Topic:orders"]),
        (service.QueryRouteRequest(RETRY), ["Pub or Sub Topic:%RETRY%billing"]),
        (service.QueryAssignmentRequest(T, G), [GROUP_SUB, TOPIC_SUB]),
        (service.SendMessageRequest((Message(T), Message(Resource("other")))), [TOPIC_PUB]),
        (service.RecallMessageRequest(T), [TOPIC_PUB]),
        (service.EndTransactionRequest(T), [TOPIC_PUB]),
        (service.HeartbeatRequest(G, ClientType.PRODUCER), []),
        (service.HeartbeatRequest(None, ClientType.PRODUCER), []),
        (service.HeartbeatRequest(G), []),
        (service.HeartbeatRequest(G, ClientType.PUSH_CONSUMER), [GROUP_SUB]),
        (service.HeartbeatRequest(RETRY, ClientType.SIMPLE_CONSUMER), [GROUP_SUB]),
        (service.HeartbeatRequest(G, ClientType.PULL_CONSUMER), [GROUP_SUB]),
        (service.ReceiveMessageRequest(G, MessageQueue(T)), [GROUP_SUB, TOPIC_SUB]),
        (service.AckMessageRequest(G, T), [GROUP_SUB, TOPIC_SUB]),
        (service.ForwardMessageToDeadLetterQueueRequest(G, T), [GROUP_SUB, TOPIC_SUB]),
        (service.ChangeInvisibleDurationRequest(G, T), [GROUP_SUB]),
        (service.NotifyClientTerminationRequest(G), [GROUP_SUB]),
        (service.NotifyClientTerminationRequest(Resource(" ")), []),
        (service.NotifyClientTerminationRequest(None), []),
        (service.TelemetryCommand(settings=PUBLISHES), [TOPIC_PUB, "Pub Topic:bills"]),
        (service.TelemetryCommand(settings=SUBSCRIBES), [GROUP_SUB, TOPIC_SUB, "Sub Topic:%RETRY%billing"]),
        (service.TelemetryCommand(thread_stack_trace=service.ThreadStackTrace("1")), []),
    ],
)
def test_what_each_call_needs(request_: Any, needs: list[str]) -> None:
    assert needed(request_) == needs


@each_case(
    ("request_", "text"),
    [
        (service.QueryRouteRequest(), "topic is null."),
        (service.SendMessageRequest(), "message is null."),
        (service.SendMessageRequest((Message(Resource(" ")),)), "topic is null."),
        (service.EndTransactionRequest(), "topic is null."),
        (service.HeartbeatRequest(None, ClientType.PUSH_CONSUMER), "group is null."),
        (service.ReceiveMessageRequest(), "messageQueue is null."),
        (service.ReceiveMessageRequest(Resource(), MessageQueue(T)), "group is null."),
        (service.ReceiveMessageRequest(G, MessageQueue(id=1)), "topic is null."),
        (service.AckMessageRequest(G), "topic is null."),
        (service.ChangeInvisibleDurationRequest(), "group is null."),
        (service.TelemetryCommand(settings=Settings(subscription=Subscription())), "group is null."),
    ],
)
def test_a_call_without_a_name_is_refused(request_: Any, text: str) -> None:
    with pytest.raises(AuthorizationError) as refused:
        contexts_of_call(request_)
    assert str(refused.value) == text


def test_settings_of_neither_kind_are_an_error_of_java() -> None:
    with pytest.raises(JavaExceptionError) as refused:
        contexts_of_call(service.TelemetryCommand(settings=NEITHER))
    assert str(refused.value) == "settings command doesn't have publishing or subscription.. AclException"


def test_white_lists_have_the_names_of_messages() -> None:
    assert name_of_call(service.AckMessageRequest()) == "apache.rocketmq.v2.AckMessageRequest"
