"""A proxy with ACL 2.0 refuses calls that no user has signed, and calls that no policy of their user allows."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from emulator.testing import Stage, Trace
from nodes.config.auth import STATEFUL_AUTHENTICATION, STATEFUL_AUTHORIZATION
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_auth import SubjectHeader, UserHeader
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import MessageQueue, Resource, Settings
from nodes.protocol.v2.enums import ClientType, Code
from support.auth_cluster import ask
from support.proxy_auth import scenario
from support.proxy_guest import ProxyGuest, a_message, consumer_settings, producer_settings, runs
from support.proxy_users import BILLING, NO_USER, NOBODY, ROOT, SHOP, UNKNOWN_USER, WRONG, WRONG_KEY, denied

GROUP, OTHER = "billing", "audit"
NOT_ASKED = "Authentication failed. Please verify the credentials and try again."
NO_RIGHTS = "Authorization failed. Please verify your access rights and try again."
Script = Callable[[Stage, ProxyGuest], Awaitable[None]]


def executed(script: Script, **given: str) -> Trace:
    """The trace of a script in a cluster without emulated clients."""

    async def main(stage: Stage, guest: ProxyGuest) -> None:
        await stage.for_ms(5_000)
        await script(stage, guest)

    return runs(scenario(consumer=None, producer=None, **given), main)


async def text_of(guest: ProxyGuest, code: RequestCode, request: Any) -> str:
    """Why a call is denied; empty: it is not."""
    status = (await guest.call(code, request)).status
    return status.message if status.code is Code.UNAUTHORIZED else ""


def sends(topic: str = "orders") -> service.SendMessageRequest:
    return service.SendMessageRequest((a_message(topic=topic),))


# --- whose calls they are --------------------------------------------------------------


@pytest.mark.parametrize(
    ("signs", "why"),
    [(None, NO_USER), (WRONG, WRONG_KEY), (NOBODY, UNKNOWN_USER), (SHOP, "")],
    ids=["no key", "wrong key", "no user", "right key"],
)
@pytest.mark.parametrize("authorization", ["true", "false"])
def test_a_send_needs_the_signature_of_a_user(signs: SessionCredentials | None, why: str, authorization: str) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = signs
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == why

    executed(script, authorization=authorization)


def test_authentication_comes_before_the_client_id() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        assert (await guest.heartbeat(client_id="")).message == NO_USER
        guest.signs = ROOT
        assert (await guest.heartbeat(client_id="")).code is Code.CLIENT_ID_REQUIRED

    executed(script)


def test_without_both_options_signatures_are_not_looked_at() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        for signs in (None, WRONG):
            guest.signs = signs
            assert (await guest.send(a_message())).status.code is Code.OK

    executed(script, authentication="false", authorization="false")


def test_without_a_provider_no_user_is_known() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = SHOP
        why = "The authenticationMetadataProvider is not configured"
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == why

    executed(script, users="")


def test_authorization_without_authentication_knows_no_user_so_that_nothing_passes() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = ROOT
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == NO_RIGHTS

    executed(script, authentication="false")


@pytest.mark.trap("A13")
def test_a_client_with_a_user_of_its_own_may_name_another_whose_permissions_count() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = BILLING
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == denied("rocketmq-billing", "Topic:orders")
        guest.claims = "rocketmq-root"
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == ""
        guest.signs = None
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == NO_USER

    executed(script)


# --- what each call needs ---------------------------------------------------------------

T, G = Resource("orders"), Resource(GROUP)
CALLS: tuple[tuple[RequestCode, Any], ...] = (
    (RequestCode.V2_QUERY_ROUTE, service.QueryRouteRequest(T)),
    (RequestCode.V2_QUERY_ASSIGNMENT, service.QueryAssignmentRequest(T, G)),
    (RequestCode.V2_HEARTBEAT, service.HeartbeatRequest(G, ClientType.PUSH_CONSUMER)),
    (RequestCode.V2_NOTIFY_CLIENT_TERMINATION, service.NotifyClientTerminationRequest(G)),
    (RequestCode.V2_TELEMETRY, service.TelemetryCommand(settings=producer_settings("orders"))),
    (RequestCode.V2_TELEMETRY, service.TelemetryCommand(settings=consumer_settings(GROUP, "orders"))),
    (RequestCode.V2_SEND_MESSAGE, sends()),
    (RequestCode.V2_RECALL_MESSAGE, service.RecallMessageRequest(T)),
    (RequestCode.V2_END_TRANSACTION, service.EndTransactionRequest(T)),
    (RequestCode.V2_RECEIVE_MESSAGE, service.ReceiveMessageRequest(G, MessageQueue(T))),
    (RequestCode.V2_ACK_MESSAGE, service.AckMessageRequest(G, T)),
    (RequestCode.V2_CHANGE_INVISIBLE_DURATION, service.ChangeInvisibleDurationRequest(G, T)),
    (
        RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE,
        service.ForwardMessageToDeadLetterQueueRequest(G, T),
    ),
)


@pytest.mark.parametrize(
    ("signs", "allowed"),
    [
        (ROOT, "1111111111111"),
        (SHOP, "1000101110000"),  # it may publish to the topic: routes, its settings, sends, recalls, ends
        (BILLING, "1111010001111"),  # it may subscribe to the topic, and be in the group
        (None, "0000000000000"),
    ],
)
def test_each_call_passes_for_users_whose_policies_allow_it(signs: SessionCredentials | None, allowed: str) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = signs
        passed = [str(int(not await text_of(guest, code, request))) for code, request in CALLS]
        assert "".join(passed) == allowed

    executed(script)


def test_settings_without_publishing_or_subscription_are_an_internal_error_where_permissions_are_checked() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = ROOT
        status = (await guest.report(Settings(ClientType.PRODUCER))).status
        assert status.code is Code.INTERNAL_SERVER_ERROR
        assert status.message.endswith("AclException")

    executed(script)


def test_white_lists_name_messages() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == ""
        assert await text_of(guest, RequestCode.V2_QUERY_ROUTE, service.QueryRouteRequest(T)) == NO_USER

    names = '"apache.rocketmq.v2.SendMessageRequest, 310"'
    executed(script, proxy=f"authenticationWhitelist = {names}\nauthorizationWhitelist = {names}")


# --- what a proxy knows of users and policies -------------------------------------------


@pytest.mark.trap("A14")
def test_a_user_that_was_unknown_is_unknown_for_twenty_seconds_and_one_more_call() -> None:
    asked: list[tuple[int, str]] = []

    async def script(stage: Stage, guest: ProxyGuest) -> None:
        guest.signs = NOBODY
        await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends())
        await ask(
            guest, RequestCode.AUTH_CREATE_USER, UserHeader("rocketmq-nobody"), UserInfo(None, "secret-of-nobody")
        )
        begin_ms = stage.now_ms
        for at_s in (1, 19, 21, 22):
            await stage.for_ms(begin_ms + at_s * 1_000 - stage.now_ms)
            asked.append((at_s, await text_of(guest, RequestCode.V2_QUERY_ROUTE, service.QueryRouteRequest(T))))

    executed(script, authorization="false")
    assert asked == [(1, UNKNOWN_USER), (19, UNKNOWN_USER), (21, UNKNOWN_USER), (22, "")]


@pytest.mark.parametrize("refresh_s", [5, 20])
def test_a_policy_that_is_withdrawn_allows_until_the_cache_is_old(refresh_s: int) -> None:
    allowed_s: list[int] = []

    async def script(stage: Stage, guest: ProxyGuest) -> None:
        guest.signs = BILLING
        await text_of(guest, RequestCode.V2_QUERY_ROUTE, service.QueryRouteRequest(T))
        policy = PolicyInfo(None, (PolicyEntryInfo("Topic:*", ("Sub",), None, "Deny"),))
        acl = AclInfo("User:rocketmq-billing", (policy,))
        answer = await ask(guest, RequestCode.AUTH_UPDATE_ACL, SubjectHeader("User:rocketmq-billing"), acl)
        assert answer.code == 0
        for second in range(30):
            await stage.for_ms(1_000)
            if not await text_of(guest, RequestCode.V2_RECEIVE_MESSAGE, CALLS[9][1]):
                allowed_s.append(second)

    executed(script, proxy=f"aclCacheRefreshSeconds = {refresh_s}")
    assert allowed_s == list(range(refresh_s))


@pytest.mark.trap("A16")
def test_a_proxy_that_cannot_ask_for_users_refuses_all_of_them() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        stage.cut("proxy-1", "broker-a")
        await stage.for_ms(100)
        guest.signs = ROOT
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == NOT_ASKED

    executed(script)


# --- strategies and what shows -----------------------------------------------------------


@pytest.mark.parametrize(("strategy", "why"), [(STATEFUL_AUTHENTICATION, ""), ("", WRONG_KEY)])
def test_with_the_stateful_strategy_a_wrong_signature_passes_after_a_right_one(strategy: str, why: str) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        guest.signs = SHOP
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == ""
        guest.signs = WRONG
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == why

    executed(script, proxy=f'authenticationStrategy = "{strategy}"')


@pytest.mark.parametrize(("strategy", "is_denied"), [(STATEFUL_AUTHORIZATION, False), ("", True)])
def test_with_the_stateful_strategy_a_policy_holds_for_a_minute(strategy: str, *, is_denied: bool) -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        guest.signs = SHOP
        assert await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends()) == ""
        await ask(guest, RequestCode.AUTH_DELETE_ACL, SubjectHeader("User:rocketmq-shop"))
        await stage.for_ms(25_000)
        await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends())
        await stage.for_ms(1_000)
        assert bool(await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends())) == is_denied

    executed(script, proxy=f'authorizationStrategy = "{strategy}"')


def test_a_denial_is_recorded_as_brokers_record_it_and_ends_when_the_same_is_allowed() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        for signs in (None, BILLING, SHOP):
            guest.signs = signs
            await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends())
            await stage.for_ms(100)
        guest.signs = None
        await text_of(guest, RequestCode.V2_SEND_MESSAGE, sends())

    rows = executed(script).select("beliefs", node="proxy-1", kind="denied")
    found = [(row.subject, None if row.held is None else (row.held["actions"], row.held["reason"])) for row in rows]
    assert found[:2] == [
        ("127.1.200.1/V2_SEND_MESSAGE", ([], NO_USER)),
        (
            "rocketmq-billing/127.1.200.1/V2_SEND_MESSAGE/Topic:orders",
            (["Pub"], denied("rocketmq-billing", "Topic:orders")),
        ),
    ]
