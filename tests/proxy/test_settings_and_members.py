"""Clients come to proxies, and proxies report them to each other."""

import pytest
import trio

from emulator.testing import Stage
from nodes.protocol.bodies import GetConsumerListByGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import ConsumerGroupRequestHeader
from nodes.protocol.v2.definition import Publishing, Resource, Settings, Status, Subscription
from nodes.protocol.v2.enums import ClientType, Code
from support.proxy_guest import (
    BROKER,
    GROUP,
    PROXY,
    TOPIC,
    GrpcFailure,
    ProxyGuest,
    consumer_settings,
    producer_settings,
    proxies,
    runs,
)

OTHER = "proxy-2"
UNKNOWN = "cannot find client settings for this client"


def members(stage: Stage, proxy: str, group: str = GROUP) -> tuple[str, ...]:
    """Client ids of a group at a proxy."""
    ids: tuple[str, ...] = stage.node(proxy)._clients.consumers.client_ids(group)
    return ids


# --- settings -----------------------------------------------------------------------


def test_a_consumer_gets_the_settings_of_its_group() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        merged = await guest.come()
        assert merged.subscription is not None
        assert merged.backoff_policy is not None
        assert merged.backoff_policy.customized_backoff is not None
        assert (merged.subscription.fifo, merged.subscription.receive_batch_size) == (False, 32)
        assert merged.subscription.long_polling_timeout_ms == 20_000
        assert merged.backoff_policy.max_attempts == 17
        assert merged.backoff_policy.customized_backoff.next_ms[:3] == (1_000, 5_000, 10_000)
        assert merged.metric is not None
        assert not merged.metric.on

    runs(proxies(), script)


def test_a_producer_gets_the_settings_of_the_proxy() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        merged = (await guest.report(producer_settings())).settings
        assert merged.backoff_policy.max_attempts == 3
        backoff = merged.backoff_policy.exponential_backoff
        assert (backoff.initial_ms, backoff.max_ms, backoff.multiplier) == (10, 1_000, 2.0)
        assert (merged.publishing.max_body_size, merged.publishing.validate_message_type) == (4 * 1024 * 1024, True)

    runs(proxies(), script)


@pytest.mark.parametrize(
    ("settings", "status", "text"),
    [
        (Settings(ClientType.PRODUCER), 3, "there is no publishing or subscription data in settings"),
        (producer_settings("TBW102"), 3, "process client telemetryCommand failed. cannot access system topic"),
        (producer_settings("a b"), 3, "process client telemetryCommand failed. The specified topic[a b] contains"),
        (consumer_settings(group=" "), 3, "process client telemetryCommand failed. the specified group is blank"),
        (consumer_settings(kind=ClientType.PRODUCER), 13, "Client type is not consumer, type: PRODUCER"),
    ],
)
def test_refused_settings_end_the_stream(settings: Settings, status: int, text: str) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        failure = await guest.report(settings)
        assert isinstance(failure, GrpcFailure)
        assert (failure.grpc_status, text in failure.text) == (status, True)

    runs(proxies(), script)


def test_settings_with_an_unknown_language_end_the_stream() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        failure = await guest.report(producer_settings(), language="GOLANG")
        assert isinstance(failure, GrpcFailure)
        assert failure.grpc_status == 13
        assert "No enum constant" in failure.text

    runs(proxies(), script)


def test_a_call_without_a_client_id_is_refused() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        assert (await guest.heartbeat(client_id=" ")).code is Code.CLIENT_ID_REQUIRED
        assert (await guest.report(producer_settings(), client_id="")).status.code is Code.CLIENT_ID_REQUIRED

    runs(proxies(), script)


def test_settings_without_topics_are_taken_and_register_no_channel() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        answer = await guest.report(Settings(ClientType.PRODUCER, publishing=Publishing()))
        assert answer.status.code is Code.OK
        assert stage.node(PROXY)._clients.channels.get_channel(guest.client_id) is None

    runs(proxies(), script)


@pytest.mark.trap("G4")
def test_without_settings_a_heartbeat_a_termination_and_a_receive_fail_in_their_own_ways() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        for status in (await guest.heartbeat(), await guest.terminate()):
            assert (status.code, status.message) == (Code.UNRECOGNIZED_CLIENT_TYPE, UNKNOWN)
        received = (await guest.receive()).status
        assert received.code is Code.INTERNAL_SERVER_ERROR
        assert received.message.endswith('because "settings" is null. NullPointerException')

    runs(proxies(), script)


@pytest.mark.trap("G19")
def test_the_settings_of_an_unknown_group_make_a_broker_create_it() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        groups = stage.node(BROKER).context.groups
        assert not groups.contains_subscription_group(GROUP)
        await guest.come()
        assert groups.contains_subscription_group(GROUP)

    runs(proxies(), script)


# --- members ------------------------------------------------------------------------


@pytest.mark.trap("G11")
def test_brokers_know_nothing_of_consumers_behind_a_proxy() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        answer = await guest.ask(BROKER, RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequestHeader(GROUP))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert members(stage, PROXY) == (guest.client_id,)

    runs(proxies(), script)
    assert GetConsumerListByGroupResponseBody is not None


@pytest.mark.trap("G27")
def test_a_heartbeat_with_a_foreign_group_makes_a_member_of_both() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        assert (await guest.heartbeat(group="foreign")).code is Code.OK
        assert members(stage, PROXY) == members(stage, PROXY, "foreign") == (guest.client_id,)

    runs(proxies(), script)


@pytest.mark.trap("G24")
def test_a_silent_consumer_is_a_member_for_120_to_130_s_and_then_its_settings_are_gone() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        await stage.for_ms(119_000)
        assert members(stage, PROXY) == (guest.client_id,)
        await stage.for_ms(12_000)
        assert members(stage, PROXY) == ()
        await stage.for_ms(5_000)
        assert (await guest.heartbeat()).code is Code.UNRECOGNIZED_CLIENT_TYPE

    runs(proxies(), script)


def test_a_heartbeat_that_waits_for_a_proxy_which_sleeps_130_s_finds_its_settings() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        answers: list[Status] = []

        async def wait() -> None:
            answers.append(await guest.heartbeat())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.suspend, PROXY, 130_000)
            await stage.for_ms(110_000)
            nursery.start_soon(wait)
        await stage.for_ms(15_000)
        assert [answer.code for answer in answers] == [Code.OK]
        assert (await guest.heartbeat()).code is Code.OK

    runs(proxies(), script)


@pytest.mark.trap("G25")
def test_a_client_that_connects_again_is_the_same_channel() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        channels = stage.node(PROXY)._clients.channels
        before = channels.get_channel(guest.client_id)
        guest.node.rpc.close_all()
        await stage.for_ms(1_000)
        assert members(stage, PROXY) == (guest.client_id,)
        await guest.come()
        assert channels.get_channel(guest.client_id) is before

    runs(proxies(), script)


@pytest.mark.trap("G32")
def test_a_producer_of_two_topics_that_ends_leaves_the_second_one_behind() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.report(producer_settings("first", "second"))
        producers = stage.node(PROXY)._clients.producers
        assert (await guest.terminate(group=None)).code is Code.OK
        assert (producers.group_online("first"), producers.group_online("second")) == (False, True)
        await stage.for_ms(131_000)
        assert not producers.group_online("second")

    runs(proxies(), script)


# --- other proxies ------------------------------------------------------------------


@pytest.mark.trap("G23")
def test_a_consumer_is_known_to_another_proxy_within_a_second_and_its_settings_with_its_next_heartbeat() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await stage.for_ms(5_000)
        await guest.come()
        await stage.for_ms(1_500)
        assert members(stage, OTHER) == (guest.client_id,)
        assert (await guest.heartbeat(OTHER)).code is Code.UNRECOGNIZED_CLIENT_TYPE
        assert (await guest.heartbeat()).code is Code.OK
        await stage.for_ms(1_500)
        assert (await guest.heartbeat(OTHER)).code is Code.OK

    runs(proxies(PROXY, OTHER), script)


def test_a_consumer_that_leaves_is_gone_from_another_proxy_within_a_second() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await stage.for_ms(5_000)
        await guest.come()
        await stage.for_ms(1_500)
        assert members(stage, OTHER) == (guest.client_id,)
        assert (await guest.terminate()).code is Code.OK
        await stage.for_ms(1_500)
        assert members(stage, OTHER) == ()

    runs(proxies(PROXY, OTHER), script)


def test_a_proxy_that_starts_later_knows_a_consumer_after_its_next_heartbeat() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await stage.kill(OTHER)
        await guest.come()
        await stage.for_ms(5_000)
        stage.start(OTHER)
        await stage.for_ms(5_000)
        await guest.heartbeat()
        await stage.for_ms(1_500)
        assert members(stage, OTHER) == (guest.client_id,)

    runs(proxies(PROXY, OTHER), script)


def test_the_members_of_a_dead_proxy_stay_at_the_other_one_for_120_to_130_s() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await stage.for_ms(5_000)
        await guest.come()
        await stage.for_ms(1_500)
        await stage.kill(PROXY)
        await stage.for_ms(115_000)
        assert members(stage, OTHER) == (guest.client_id,)
        await stage.for_ms(17_000)
        assert members(stage, OTHER) == ()

    runs(proxies(PROXY, OTHER), script)


# --- life ---------------------------------------------------------------------------


def test_a_proxy_whose_cluster_no_nameserver_knows_ends_at_its_start() -> None:
    async def script(stage: Stage, _: ProxyGuest) -> None:
        await stage.kill(PROXY)
        await stage.kill(BROKER)
        await stage.for_ms(1_000)
        stage.start(PROXY)
        await stage.for_ms(5_000)

    trace = runs(proxies(), script)
    last = trace.select("lifecycle", node=PROXY)[-2:]
    assert [row.event for row in last] == ["stopping", "stopped"]
    assert "create system broadcast topic DefaultHeartBeatSyncerTopic failed" in last[0].detail


@pytest.mark.trap("G45")
def test_a_proxy_that_ends_refuses_calls_at_once_and_waits_30_s_for_streams() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        process = stage.host(PROXY).process
        assert process is not None
        stage.node(PROXY).request_shutdown()
        await stage.for_ms(100)
        refused = await guest.call(RequestCode.V2_QUERY_ROUTE, consumer_route())
        assert isinstance(refused, GrpcFailure)
        assert refused.grpc_status == 14
        await stage.for_ms(29_000)
        assert process.alive
        await stage.for_ms(2_000)
        assert not process.alive

    runs(proxies(), script)


def consumer_route() -> object:
    """The request for the route of the topic."""
    from nodes.protocol.v2.service import QueryRouteRequest

    return QueryRouteRequest(Resource(TOPIC))


def test_settings_without_a_group_are_refused_as_a_blank_one() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        failure = await guest.report(Settings(ClientType.SIMPLE_CONSUMER, subscription=Subscription()))
        assert isinstance(failure, GrpcFailure)
        assert "the specified group is blank" in failure.text

    runs(proxies(), script)
