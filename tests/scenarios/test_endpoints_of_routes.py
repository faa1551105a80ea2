"""Clients of RocketMQ 5 call the endpoints of routes; which those are decides what the death of a proxy costs them."""

from itertools import pairwise

import attrs
import pytest

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import ConsumerGroupSpec, ConsumerMode, Scenario
from emulator.testing import GROUP, TOPIC, Stage, Trace, a_scenario, execute
from nodes.beliefs import BeliefKind
from nodes.config.client5 import Producer5Config, PushConsumer5Config
from nodes.config.proxy import ProxyConfig
from nodes.protocol.codes import RequestCode

PORTS = {"proxy-1": 18_081, "proxy-2": 18_083}
DEATH_MS, ASKED_AGAIN_MS = 15_000, 40_000
"""Clients ask for routes 10 s after they have started, and then every 30 s."""
OWN_PORTS, PORTS_OF_REQUESTS = False, True
CLIENTS = [("c1", "consumed"), ("p1", "stored")]
"""Clients, and what happens to messages through them."""


def two_proxies(*, from_request: bool, consume_ms: int = 0, messages: int = 0) -> Scenario:
    """Two proxies with different ports, as on one machine; `c1` and `p1` know both."""
    config = ProxyConfig(use_endpoint_port_from_request=from_request)
    producer = ProducerSpec("p1", "pg", TOPIC, 10, messages=messages, endpoints=tuple(PORTS), config5=Producer5Config())
    group = ConsumerGroupSpec(
        GROUP, ("c1",), (TOPIC,), consume_ms=consume_ms, mode=ConsumerMode.PUSH5, config5=PushConsumer5Config()
    )
    return attrs.evolve(
        a_scenario(),
        proxies=tuple(ProxySpec(name, attrs.evolve(config, grpc_server_port=port)) for name, port in PORTS.items()),
        consumers=(group,),
        producers=(producer,),
    )


def proxy_of(stage: Stage, client: str) -> str:
    """The proxy that a client has asked for its route."""
    source = stage.trace.beliefs(BeliefKind.PROXY_ROUTE, TOPIC, node=client)[-1].source
    return next(name for name in PORTS if source == f"{stage.cluster.addresses[name]}:{PORTS[name]}")


def after_a_death(scenario: Scenario, client: str, until_ms: float) -> Trace:
    """The trace, if the proxy of a client dies and stays dead."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(DEATH_MS)
        await stage.kill(proxy_of(stage, client))
        await stage.at_ms(until_ms)

    return execute(scenario, script)


def longest_pause_ms(trace: Trace, event: str) -> float:
    """The longest time between two messages that were stored, or consumed, after the death."""
    rows = trace.select("messages", event=event, topic=TOPIC, after_ms=DEATH_MS)
    instants = [DEATH_MS, *(row.at_ms for row in rows), trace.end_ms]
    return max(later - earlier for earlier, later in pairwise(instants))


def ports_in_routes(trace: Trace, node: str) -> list[list[int]]:
    """The ports of the endpoints that a client knows, one after the other."""
    beliefs = trace.beliefs(BeliefKind.PROXY_ROUTE, TOPIC, node=node)
    return [[int(address.rpartition(":")[2]) for address in row.held["broker-a"]["endpoints"]] for row in beliefs]


@pytest.mark.trap("G8")
@pytest.mark.parametrize(("client", "event"), CLIENTS)
def test_a_client_calls_the_port_of_a_dead_proxy_until_it_asks_for_a_route_again(client: str, event: str) -> None:
    trace = after_a_death(two_proxies(from_request=OWN_PORTS), client, 60_000)
    assert sorted(ports_in_routes(trace, client)) == [[18_081, 18_081], [18_083, 18_083]]
    asks_again_after_ms = ASKED_AGAIN_MS - DEATH_MS
    assert asks_again_after_ms < longest_pause_ms(trace, event) < asks_again_after_ms + 6_000


@pytest.mark.trap("G8")
@pytest.mark.parametrize(("client", "event"), CLIENTS)
def test_a_client_whose_route_has_the_ports_that_it_has_asked_with_fails_over_at_once(client: str, event: str) -> None:
    trace = after_a_death(two_proxies(from_request=PORTS_OF_REQUESTS), client, 30_000)
    assert ports_in_routes(trace, client) == [[18_081, 18_083]]
    assert longest_pause_ms(trace, event) < 3_000


@pytest.mark.parametrize(("from_request", "times"), [(PORTS_OF_REQUESTS, 1), (OWN_PORTS, 2)])
def test_a_message_is_acknowledged_at_the_endpoints_that_it_was_received_from(from_request: bool, times: int) -> None:
    """The listener takes longer than the client takes for finding the other proxy."""
    scenario = two_proxies(from_request=from_request, consume_ms=30_000, messages=5)
    trace = after_a_death(scenario, "c1", 120_000)
    assert len(trace.select("messages", event="consumed", node="c1")) == 5 * times


def test_an_access_point_that_no_route_names_is_asked_for_routes_alone() -> None:
    trace = execute(two_proxies(from_request=OWN_PORTS), for_ms=45_000)
    codes: dict[int, set[int]] = {}
    for row in trace.select("rpc", src="c1", kind="request", event="delivered"):
        codes.setdefault(row.connection, set()).add(row.code)
    of_access_point, of_route = sorted(codes.values(), key=len)
    assert of_access_point == {RequestCode.V2_QUERY_ROUTE}
    assert of_route == {
        RequestCode.V2_TELEMETRY,
        RequestCode.V2_HEARTBEAT,
        RequestCode.V2_QUERY_ASSIGNMENT,
        RequestCode.V2_RECEIVE_MESSAGE,
        RequestCode.V2_ACK_MESSAGE,
    }


def test_clients_of_one_access_point_spread_over_its_proxies() -> None:
    scenario = two_proxies(from_request=PORTS_OF_REQUESTS)
    names = tuple(f"c{number}" for number in range(1, 13))
    scenario = attrs.evolve(scenario, consumers=(attrs.evolve(scenario.consumers[0], names=names),))
    chosen: dict[str, str] = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(1_000)
        chosen.update({name: proxy_of(stage, name) for name in names})

    execute(scenario, script)
    assert 3 <= list(chosen.values()).count("proxy-1") <= 9


def test_a_client_that_ends_reports_it_to_the_endpoints_of_its_routes() -> None:
    proxies: list[str] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(DEATH_MS)
        proxies.append(proxy_of(stage, "c1"))
        await stage.stop("c1")

    trace = execute(two_proxies(from_request=OWN_PORTS), script, for_ms=45_000)
    reported = trace.select("rpc", src="c1", code=int(RequestCode.V2_NOTIFY_CLIENT_TERMINATION), kind="request")
    assert [row.dst for row in reported] == proxies
    assert trace.beliefs(BeliefKind.PROXY_MEMBERS, GROUP, node=proxies[0])[-1].held == {}
