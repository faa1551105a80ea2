"""The remoting port of a proxy with ACL 2.0: the same users and policies, and answers that no broker gives.

The codes and texts are those of a real proxy of 5.3.3.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from emulator.testing import Stage, Trace
from nodes.config.auth import STATEFUL_AUTHENTICATION
from nodes.protocol import headers
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import HeartbeatData, ProducerData
from nodes.protocol.v2.enums import Code
from nodes.secret import Secret
from support.proxy_auth import scenario
from support.proxy_guest import ProxyGuest, a_message
from support.proxy_users import BILLING, NO_USER, NOBODY, SHOP, UNKNOWN_USER, WRONG, WRONG_KEY, denied
from support.remoting_guest import RemotingGuest, pulled, runs_remoting

PROXY, BROKER, GROUP, TOPIC = "proxy-1", "broker-a", "billing", "orders"
ROUTE = headers.GetRouteInfoRequestHeader(TOPIC)
PULL = attrs.evolve(pulled(), consumer_group=GROUP, topic=TOPIC)
OFFSET = headers.GetMaxOffsetRequestHeader(TOPIC, 0, bname=BROKER)
HEARTBEATS = '[[topic]]\nname = "DefaultHeartBeatSyncerTopic"\nqueues = 1'
"""A topic that the proxy need not create, for which a broker would refuse it."""
Script = Callable[[Stage, RemotingGuest], Awaitable[None]]
Answer = tuple[int, str | None]


def executed(script: Script, **given: str) -> Trace:
    """The trace of a script in a cluster without emulated clients."""

    async def main(stage: Stage, guest: RemotingGuest) -> None:
        await stage.for_ms(5_000)
        await script(stage, guest)

    return runs_remoting(scenario(consumer=None, producer=None, **given), main)


async def answer(guest: RemotingGuest, code: RequestCode, header: Any = None, body: Any = None) -> Answer:
    """The code and the remark of an answer of the proxy."""
    found = await guest.ask(PROXY, code, header, body)
    return found.code, found.remark


async def route(guest: RemotingGuest) -> Answer:
    return await answer(guest, RequestCode.GET_ROUTEINFO_BY_TOPIC, ROUTE)


@pytest.mark.trap("A18")
@pytest.mark.parametrize(
    ("signs", "why"),
    [(None, NO_USER), (WRONG, WRONG_KEY), (NOBODY, UNKNOWN_USER), (SHOP, None)],
    ids=["no key", "wrong key", "no user", "right key"],
)
def test_a_route_needs_the_signature_of_a_user_and_a_refusal_is_a_system_error(
    signs: SessionCredentials | None, why: str | None
) -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        guest.signs = signs
        assert await route(guest) == (ResponseCode.SUCCESS if why is None else ResponseCode.SYSTEM_ERROR, why)

    executed(script)


@pytest.mark.trap("A18")
def test_a_broker_refuses_the_same_request_with_another_code() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        found = await guest.ask(BROKER, RequestCode.GET_MAX_OFFSET, OFFSET)
        assert (found.code, found.remark) == (ResponseCode.NO_PERMISSION, NO_USER)
        assert await answer(guest, RequestCode.GET_MAX_OFFSET, OFFSET) == (ResponseCode.SYSTEM_ERROR, NO_USER)

    executed(script)


def test_each_request_needs_what_it_needs_at_a_broker() -> None:
    error = ResponseCode.SYSTEM_ERROR

    async def script(_: Stage, guest: RemotingGuest) -> None:
        guest.signs = SHOP
        sent = attrs.evolve(guest.sent(TOPIC), bname=BROKER)
        assert (await answer(guest, RequestCode.SEND_MESSAGE_V2, sent, b"x"))[0] == ResponseCode.SUCCESS
        assert await answer(guest, RequestCode.PULL_MESSAGE, PULL) == (error, denied("rocketmq-shop", "Topic:orders"))
        members = headers.ConsumerGroupRequestHeader(GROUP)
        refused = (error, denied("rocketmq-shop", "Group:billing"))
        assert await answer(guest, RequestCode.GET_CONSUMER_LIST_BY_GROUP, members) == refused
        producer = HeartbeatData("c@1", (ProducerData("pg"),), ())
        assert await answer(guest, RequestCode.HEART_BEAT, None, producer) == (ResponseCode.SUCCESS, "")
        assert (await guest.beat(PROXY, group=GROUP, topics=(TOPIC,))).remark == refused[1]
        guest.signs = BILLING
        assert await answer(guest, RequestCode.SEND_MESSAGE_V2, sent, b"x") == (
            error,
            denied("rocketmq-billing", "Topic:orders"),
        )
        assert (await guest.beat(PROXY, group=GROUP, topics=(TOPIC,))).code == ResponseCode.SUCCESS
        assert (await answer(guest, RequestCode.PULL_MESSAGE, PULL))[0] != error

    executed(script)


def test_a_request_that_the_port_does_not_know_is_not_checked() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        code, remark = await answer(guest, RequestCode.GET_ALL_TOPIC_CONFIG)
        assert code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert "21 not supported" in (remark or "")

    executed(script)


def test_white_lists_name_codes_there() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        assert (await route(guest))[0] == ResponseCode.SUCCESS
        assert await answer(guest, RequestCode.GET_MAX_OFFSET, OFFSET) == (ResponseCode.SYSTEM_ERROR, NO_USER)

    executed(script, proxy='authenticationWhitelist = "105"\nauthorizationWhitelist = "105"')


@pytest.mark.trap("A18")
def test_without_authentication_any_name_is_believed_there_and_none_at_the_other_port() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        guest.signs = SessionCredentials("rocketmq-root", Secret("not-its-secret"))
        assert (await route(guest))[0] == ResponseCode.SUCCESS
        caller = ProxyGuest(stage, guest.host, guest.node)
        caller.signs = guest.signs
        assert (await caller.send(a_message(topic=TOPIC))).status.code is Code.UNAUTHORIZED

    executed(script, authentication="false")


def test_a_stateful_strategy_believes_a_connection() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        for signs in (SHOP, WRONG):
            guest.signs = signs
            assert (await route(guest))[0] == ResponseCode.SUCCESS

    executed(script, proxy=f'authenticationStrategy = "{STATEFUL_AUTHENTICATION}"')


@pytest.mark.trap("A19")
def test_a_proxy_that_does_not_sign_passes_keys_on_with_what_it_forwards_and_sends_without_any() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        refused = ResponseCode.NO_PERMISSION
        assert await answer(guest, RequestCode.GET_MAX_OFFSET, OFFSET) == (refused, NO_USER)
        guest.signs = WRONG
        assert await answer(guest, RequestCode.GET_MAX_OFFSET, OFFSET) == (refused, WRONG_KEY)
        guest.signs = SHOP
        assert (await answer(guest, RequestCode.GET_MAX_OFFSET, OFFSET))[0] == ResponseCode.SUCCESS
        code, remark = await answer(guest, RequestCode.SEND_MESSAGE_V2, guest.sent(TOPIC), b"x")
        text = "TopicMessageType validate failed, the expected type is UNSPECIFIED, but actual type is NORMAL"
        assert (code, remark) == (ResponseCode.MESSAGE_ILLEGAL, text)

    executed(script, authentication="false", authorization="false", signs="false", topics=HEARTBEATS)


def test_a_denial_is_recorded_with_the_code_of_the_request() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        guest.signs = SHOP
        await answer(guest, RequestCode.PULL_MESSAGE, PULL)
        await stage.for_ms(100)

    (row,) = executed(script).select("beliefs", node=PROXY, kind="denied")
    assert row.subject == "rocketmq-shop/127.1.200.1/PULL_MESSAGE/Topic:orders"
    assert row.held["reason"] == denied("rocketmq-shop", "Topic:orders")
