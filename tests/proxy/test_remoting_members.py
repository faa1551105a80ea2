"""Members of groups at the remoting port of a proxy: registered with proxies and no broker, and not notified."""

import pytest

from emulator.testing import Stage
from nodes.protocol import headers
from nodes.protocol.bodies_admin import ConsumerConnection
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import decode_body
from support.proxy_guest import BROKER, GROUP, PROXY, TOPIC, ProxyGuest, proxies
from support.remoting_guest import (
    CLIENT,
    PRODUCERS,
    RemotingGuest,
    a_remoting_guest,
    reason,
    runs_remoting,
)

OTHER = "proxy-2"
NULL_LIST = (
    'Cannot invoke "org.apache.rocketmq.broker.client.ConsumerGroupInfo.getAllClientId()" '
    'because "consumerGroupInfo" is null'
)
LIST = RequestCode.GET_CONSUMER_LIST_BY_GROUP


@pytest.mark.trap("G12")
def test_the_list_of_an_unknown_group_is_a_null_pointer() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        header = headers.ConsumerGroupRequestHeader("unknown")
        assert reason(await guest.ask(PROXY, LIST, header)) == (ResponseCode.SYSTEM_ERROR, NULL_LIST)

    runs_remoting(proxies(), script)


def test_a_heartbeat_registers_with_all_proxies_and_no_broker() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await stage.for_ms(5_000)  # until proxies read what others report
        assert reason(await guest.beat()) == (ResponseCode.SUCCESS, "")
        await stage.for_ms(1_000)
        assert (await guest.members(), await guest.members(OTHER)) == ((CLIENT,), (CLIENT,))
        header = headers.ConsumerGroupRequestHeader(GROUP)
        assert (await guest.ask(BROKER, LIST, header)).code == ResponseCode.SYSTEM_ERROR
        assert reason(await guest.leave()) == (ResponseCode.SUCCESS, "")
        await stage.for_ms(1_000)
        assert (await guest.members(), await guest.members(OTHER)) == (None, None)
        assert reason(await guest.leave()) == (ResponseCode.SUCCESS, "")

    runs_remoting(proxies(PROXY, OTHER), script)


@pytest.mark.trap("G50")
def test_the_end_of_a_connection_is_seen_at_once_and_at_other_proxies_after_two_minutes() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        watcher = await a_remoting_guest(stage, 1)
        await stage.for_ms(5_000)
        await guest.beat()
        await stage.for_ms(1_000)
        guest.node.rpc.close_all()
        await stage.for_ms(100)
        assert (await watcher.members(), await watcher.members(OTHER)) == (None, (CLIENT,))
        assert not stage.node(PROXY)._clients.producers.group_online(PRODUCERS)
        await stage.for_ms(131_000)
        assert await watcher.members(OTHER) is None

    runs_remoting(proxies(PROXY, OTHER), script)


def test_a_silent_client_loses_its_connection_with_all_its_groups() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        watcher = await a_remoting_guest(stage, 1)
        await guest.beat()
        connection = guest.node.rpc.channel(guest.address(PROXY))
        assert connection is not None
        for _ in range(13):  # requests keep a connection alive, heartbeats a member
            await stage.for_ms(10_000)
            await guest.ask(PROXY, RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(TOPIC))
        assert await watcher.members() is None
        assert connection.closed

    runs_remoting(proxies(), script)


@pytest.mark.trap("G49")
def test_members_are_not_notified_of_others() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        other = await a_remoting_guest(stage, 1)
        await guest.beat()
        await other.beat(client_id="client@2")
        await other.leave(client_id="client@2")
        await stage.for_ms(1_000)
        assert guest.node.requested == []

    runs_remoting(proxies(), script)


def test_clients_of_both_kinds_are_members_of_one_group() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        five = ProxyGuest(guest.stage, guest.host, guest.node)
        await five.come(client_id="five", language="GO")
        await guest.beat()
        assert await guest.members() == (CLIENT, "five")
        header = headers.ConsumerGroupRequestHeader(GROUP)
        answer = await guest.ask(PROXY, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        body = decode_body(ConsumerConnection, answer.body)
        assert [(c.client_id, c.language, c.version) for c in body.connection_set] == [
            ("five", "GO", 479),
            (CLIENT, "PYTHON", 479),
        ]
        assert list(body.subscription_table) == [TOPIC]
        unknown = headers.ConsumerGroupRequestHeader("unknown")
        refused = await guest.ask(PROXY, RequestCode.GET_CONSUMER_CONNECTION_LIST, unknown)
        assert reason(refused) == (ResponseCode.CONSUMER_NOT_ONLINE, "the consumer group[unknown] not online")

    runs_remoting(proxies(), script)


def test_a_group_for_which_there_is_no_room_leaves_nothing_behind() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        clients = stage.node(PROXY)._clients
        clients.producers._max_groups = clients.consumers._max_groups = 1
        assert (await guest.beat()).code == ResponseCode.SUCCESS
        for more in ({"producers": ("another",)}, {"group": "another", "producers": ()}):
            assert (await guest.beat(**more)).code == ResponseCode.SYSTEM_BUSY
        remoting = clients.remoting
        assert [list(groups.channels) for groups in (remoting._producers, remoting._consumers)] == [
            [PRODUCERS],
            [GROUP],
        ]

    runs_remoting(proxies(), script)


def test_each_subscription_is_fine() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.CHECK_CLIENT_CONFIG)
        assert reason(answer) == (ResponseCode.SUCCESS, "")

    runs_remoting(proxies(), script)
