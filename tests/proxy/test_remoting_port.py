"""The remoting port of a proxy: routes, what 5.3.3 does not do, its clients of RocketMQ 5, and its end."""

import pytest

from emulator.testing import Stage, broker_groups
from nodes.config.proxy import ProxyConfig
from nodes.protocol import headers, headers_pop
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.exchange import NodeRole
from nodes.protocol.model import TopicRouteData
from nodes.protocol.registry import codes_where, decode_body
from nodes.rpc.errors import RemotingSendRequestError, RemotingTimeoutError
from support.every_case import each_case
from support.proxy_guest import BROKER, GROUP, PROXY, TOPIC, ProxyGuest, a_message, proxies
from support.remoting_guest import (
    RemotingGuest,
    reason,
    runs_remoting,
)


async def route(guest: RemotingGuest, topic: str = TOPIC) -> TopicRouteData:
    header = headers.GetRouteInfoRequestHeader(topic)
    answer = await guest.ask(PROXY, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    assert answer.code == ResponseCode.SUCCESS, answer
    return decode_body(TopicRouteData, answer.body)


# --- routes ----------------------------------------------------------------------------


@pytest.mark.trap("G51")
def test_the_proxy_is_each_broker_of_a_route_slaves_too() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        address = f"{stage.cluster.addresses[PROXY]}:8080"
        (data,) = (await route(guest)).broker_datas
        assert (data.broker_name, dict(data.broker_addrs)) == (BROKER, {0: address, 1: address})

    runs_remoting(proxies(brokers=broker_groups(slaves=1)), script)


def test_the_address_in_routes_is_an_option() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        (data,) = (await route(guest)).broker_datas
        assert dict(data.broker_addrs) == {0: "10.0.0.1:9080"}

    config = ProxyConfig(remoting_access_addr="10.0.0.1", remoting_listen_port=9_080)
    runs_remoting(proxies(config=config), script)


def test_the_route_of_an_unknown_topic_is_that_of_a_nameserver_and_is_cached() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        header = headers.GetRouteInfoRequestHeader("nothing")
        for _ in range(2):
            answer = await guest.ask(PROXY, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
            assert (answer.remark or "").startswith("CODE: 17  DESC: No topic route info in name server")
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        asked = [row for row in stage.trace.select("rpc", src=PROXY, dst="ns-1") if row.code == code]
        assert len([row for row in asked if "nothing" in str(row)]) <= 1

    runs_remoting(proxies(), script)


# --- what 5.3.3 does not do --------------------------------------------------------------


@pytest.mark.trap("G47")
def test_pops_fail_since_they_are_read_as_pulls_and_their_acknowledgements_are_never_answered() -> None:
    null = (
        'Cannot invoke "java.lang.Integer.intValue()" because the return value of '
        '"org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader.getSysFlag()" is null'
    )

    async def script(_: Stage, guest: RemotingGuest) -> None:
        await guest.beat()
        pop = headers_pop.PopMessageRequestHeader(GROUP, TOPIC, -1, 32, 60_000, 0, 0, 0, bname=BROKER)
        assert reason(await guest.ask(PROXY, RequestCode.POP_MESSAGE, pop)) == (ResponseCode.SYSTEM_ERROR, null)
        ack = headers_pop.AckMessageRequestHeader(GROUP, TOPIC, 0, "handle", 0, bname=BROKER)
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.ACK_MESSAGE, ack)
        change = headers_pop.ChangeInvisibleTimeRequestHeader(GROUP, TOPIC, 0, "handle", 0, 1_000, bname=BROKER)
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change)

    runs_remoting(proxies(), script)


def test_requests_of_other_codes_are_unknown_and_those_of_other_versions_fail() -> None:
    null = (
        'Cannot invoke "java.util.HashMap.get(Object)" because the return value of '
        '"org.apache.rocketmq.remoting.protocol.RemotingCommand.getExtFields()" is null'
    )

    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.QUERY_ASSIGNMENT)
        assert reason(answer) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 400 not supported")
        answer = await guest.ask(PROXY, RequestCode.CONSUMER_SEND_MSG_BACK)
        assert reason(answer) == (ResponseCode.SYSTEM_ERROR, null)

    runs_remoting(proxies(), script)


@pytest.mark.trap("G48")
def test_the_answer_to_a_request_that_fails_has_another_id_so_its_client_waits() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        await stage.kill(BROKER)
        began_ms = stage.now_ms
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.SEND_MESSAGE_V2, guest.sent(), b"x", timeout_ms=3_000)
        assert stage.now_ms - began_ms >= 3_000
        header = headers.GetMaxOffsetRequestHeader(TOPIC, 0, bname="nobody")
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.GET_MAX_OFFSET, header, timeout_ms=3_000)

    runs_remoting(proxies(), script)


def test_a_request_for_a_master_that_is_gone_goes_to_a_nameserver() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        await stage.kill(BROKER)
        await stage.for_ms(21_000)
        await route(guest, BROKER)
        await stage.for_ms(100)
        header = headers.GetMinOffsetRequestHeader(TOPIC, 0, bname=BROKER)
        answer = await guest.ask(PROXY, RequestCode.GET_MIN_OFFSET, header)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(brokers=broker_groups(slaves=1)), script)


# --- calls of RocketMQ 5 -------------------------------------------------------------------


class AtRemotingPort(ProxyGuest):
    """A client of RocketMQ 5 that has dialed the other port."""

    def address(self, node: str) -> str:
        return super().address(node).replace(":8081", ":8080")


def test_the_port_serves_clients_of_rocketmq_5_too() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        five = AtRemotingPort(guest.stage, guest.host, guest.node)
        await five.come()
        assert (await five.send(a_message())).status.message == "OK"
        assert len((await five.receive()).messages) == 1

    runs_remoting(proxies(), script)


def test_an_option_leaves_the_port_to_clients_of_rocketmq_4() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.V2_QUERY_ROUTE)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(config=ProxyConfig(enable_remoting_local_proxy_grpc=False)), script)


# --- the end -------------------------------------------------------------------------------


def test_a_proxy_that_ends_closes_the_connections_of_the_port_at_once() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        five = ProxyGuest(stage, guest.host, guest.node)
        await five.come()
        await guest.beat()
        stage.node(PROXY).request_shutdown()
        with pytest.raises(RemotingSendRequestError):
            await guest.ask(PROXY, RequestCode.ACK_MESSAGE)
        await stage.for_ms(20_000)
        assert stage.host(PROXY).power_state == "running"

    runs_remoting(proxies(), script)


REMOTING = sorted(
    code
    for code in codes_where(lambda exchange: NodeRole.PROXY in exchange.answered_by)
    if code < RequestCode.V2_QUERY_ROUTE
)


@each_case("code", REMOTING, ids=lambda code: RequestCode(code).name.lower())
def test_each_request_of_the_port_is_known_even_without_a_header(code: int) -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        try:
            answer = await guest.ask(PROXY, RequestCode(code))
        except RemotingTimeoutError:
            assert code in (RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME)
        else:
            assert answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(), script)


def test_the_port_has_24_requests() -> None:
    assert len(REMOTING) == 24
