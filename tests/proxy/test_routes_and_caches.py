"""Routes, types and groups as a proxy caches them."""

import attrs
import pytest

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Stage, broker_groups
from nodes.config.proxy import ProxyConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_admin import CreateTopicRequestHeader
from nodes.protocol.model import SubscriptionGroupConfig
from nodes.protocol.v2.enums import Code, MessageType
from nodes.proxy.tables.topic_types import TopicMessageType
from support.proxy_guest import BROKER, ENDPOINTS, GROUP, PROXY, TOPIC, ProxyGuest, a_message, proxies, runs

OTHER = "broker-b"
TWO = (BROKER, OTHER)


async def create(guest: ProxyGuest, topic: str, node: str = BROKER) -> None:
    """Create a topic at a broker."""
    header = CreateTopicRequestHeader(topic, "TBW102", 2, 2, 6, "SINGLE_TAG", 0)
    answer = await guest.ask(node, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert answer.code == ResponseCode.SUCCESS


def test_the_route_of_a_topic_has_the_type_of_the_topic() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        types = {}
        for topic in ("plain", "mixed"):
            types[topic] = (await guest.route(topic)).message_queues[0].accept_message_types
        assert types["plain"] == (MessageType.NORMAL,)
        assert types["mixed"] == (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)

    topics = (TopicSpec("plain", (BROKER,), 1), TopicSpec("mixed", (BROKER,), 1, TopicMessageType.MIXED))
    runs(proxies(topics=topics), script)


@pytest.mark.trap("G8")
@pytest.mark.parametrize(("from_request", "ports"), [(True, [18_081, 18_083]), (False, [8_081, 8_081])])
def test_endpoints_are_the_hosts_of_the_request_with_its_ports_or_with_the_port_of_the_proxy(
    from_request: bool, ports: list[int]
) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        (first, *_others) = (await guest.route()).message_queues
        addresses = first.broker.endpoints.addresses
        assert [address.host for address in addresses] == [address.host for address in ENDPOINTS.addresses]
        assert [address.port for address in addresses] == ports

    runs(proxies(config=ProxyConfig(use_endpoint_port_from_request=from_request)), script)


@pytest.mark.trap("G6")
@pytest.mark.trap("G7")
def test_a_topic_that_was_unknown_stays_so_for_20_s_and_one_use_more() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        assert (await guest.route("new")).status.code is Code.TOPIC_NOT_FOUND
        await create(guest, "new")
        await stage.for_ms(19_000)
        assert (await guest.route("new")).status.code is Code.TOPIC_NOT_FOUND
        await stage.for_ms(60_000)
        assert (await guest.route("new")).status.code is Code.TOPIC_NOT_FOUND
        await stage.for_ms(100)
        assert (await guest.route("new")).status.code is Code.OK

    runs(proxies(), script)


def test_a_route_that_was_not_used_for_300_s_is_loaded_again() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        assert (await guest.route("new")).status.code is Code.TOPIC_NOT_FOUND
        await create(guest, "new")
        await stage.for_ms(300_000)
        assert (await guest.route("new")).status.code is Code.OK

    runs(proxies(), script)


def test_cached_routes_live_on_without_a_nameserver_and_unknown_ones_fail_at_once() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        assert (await guest.route()).status.code is Code.OK
        await stage.kill("ns-1")
        await stage.for_ms(27_000)
        assert (await guest.route()).status.code is Code.OK
        failed = (await guest.route("unknown")).status
        assert (failed.code, failed.message) == (
            Code.INTERNAL_SERVER_ERROR,
            "connect to null failed. RemotingConnectException",
        )

    runs(proxies(), script)


@pytest.mark.trap("G18")
def test_names_of_brokers_and_of_the_cluster_are_topics_of_the_cache() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        routes = stage.node(PROXY)._transactions._routes
        for name in (BROKER, "DefaultCluster"):
            assert (await routes.view(name)).master_address(BROKER) is not None

    trace = runs(proxies(), script)
    assert {row.subject for row in trace.select("beliefs", node=PROXY, kind="route")} >= {BROKER, "DefaultCluster"}


@pytest.mark.trap("G43")
@pytest.mark.trap("G5")
def test_a_topic_whose_only_broker_is_dead_is_first_unreachable_then_unknown_and_then_of_no_type() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        assert (await guest.send(a_message())).status.code is Code.OK
        await stage.for_ms(1_000)
        await stage.kill(BROKER)
        await stage.for_ms(1_000)
        failed = (await guest.send(a_message())).status
        assert (failed.code, "connect to" in failed.message) == (Code.INTERNAL_SERVER_ERROR, True)
        await stage.for_ms(20_000)
        await guest.send(a_message())
        await stage.for_ms(100)
        assert (await guest.send(a_message())).status.code is Code.TOPIC_NOT_FOUND
        await stage.for_ms(20_000)
        await guest.send(a_message())
        await stage.for_ms(100)
        refused = (await guest.send(a_message())).status
        assert refused.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        assert "the expected type is UNSPECIFIED" in refused.message
        # A client that starts now finds no type, and gives up; one that runs keeps its old route.
        stage.start(BROKER)
        await stage.for_ms(21_000)
        await guest.route()
        await stage.for_ms(100)
        assert (await guest.route()).message_queues[0].accept_message_types == (MessageType.MESSAGE_TYPE_UNSPECIFIED,)

    runs(proxies(), script)


@pytest.mark.trap("G5")
def test_a_send_to_a_topic_that_no_one_knows_is_refused_for_its_type() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        refused = (await guest.send(a_message(topic="unknown"))).status
        assert refused.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        assert refused.message.startswith("org.apache.rocketmq.proxy.common.ProxyException: TopicMessageType validate")

    runs(proxies(), script)


@pytest.mark.trap("G10")
def test_a_second_consumer_changes_no_assignment() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        before = (await guest.assignment()).assignments
        await guest.come(client_id="client-2")
        assert (await guest.assignment()).assignments == before
        assert [item.message_queue.broker.name for item in before] == [BROKER, OTHER]

    runs(proxies(brokers=TWO), script)


@pytest.mark.trap("G15")
@pytest.mark.trap("G16")
@pytest.mark.trap("G17")
def test_a_master_that_is_gone_fails_assignments_and_its_acknowledgements_go_to_a_nameserver() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        for number in range(4):
            await guest.send(a_message(message_id=f"id-{number}"))
        received = await guest.receive(maximum=1, invisible_ms=60_000)
        assert len(received.messages) == 1
        await stage.for_ms(3_000)
        await stage.kill(BROKER)
        await stage.for_ms(21_000)
        await guest.assignment()
        await guest.ack(received.messages[0])
        await stage.for_ms(100)
        failed = (await guest.assignment()).status
        assert (failed.code, "NullPointerException" in failed.message) == (Code.INTERNAL_SERVER_ERROR, True)
        abnormal = await guest.ack(received.messages[0])
        assert (abnormal.code, abnormal.message) == (
            Code.INTERNAL_SERVER_ERROR,
            "ack failed: status is abnormal",
        )
        forbidden = (await guest.send(a_message())).status
        assert (forbidden.code, "no writable queue" in forbidden.message) == (Code.FORBIDDEN, True)

    trace = runs(proxies(brokers=broker_groups(slaves=1)), script)
    at_nameserver = [row for row in trace.select("rpc", dst="ns-1") if row.code == RequestCode.ACK_MESSAGE]
    assert at_nameserver


@pytest.mark.trap("G20")
def test_deliveries_are_the_retries_of_the_group_plus_one_as_the_proxy_has_cached_them() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        groups = stage.node(BROKER).context.groups
        changed = attrs.evolve(groups.groups[GROUP], retry_max_times=1)
        groups.update_subscription_group_config(changed, now_ms=0)
        assert isinstance(changed, SubscriptionGroupConfig)
        await stage.for_ms(15_000)
        merged = await guest.come()
        assert merged.backoff_policy is not None
        assert merged.backoff_policy.max_attempts == 17
        await stage.for_ms(6_000)
        await guest.come()
        await stage.for_ms(100)
        merged = await guest.come()
        assert merged.backoff_policy is not None
        assert merged.backoff_policy.max_attempts == 2

    runs(proxies(), script)


def test_an_illegal_topic_is_refused_before_it_is_looked_up() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        for topic in ("", "a b", "TBW102", "x" * 128):
            assert (await guest.route(topic)).status.code is Code.ILLEGAL_TOPIC
        assert (await guest.assignment(group="CID_RMQ_SYS_X")).status.code is Code.ILLEGAL_CONSUMER_GROUP

    runs(proxies(), script)
    assert TOPIC
