"""Nodes that fetch the list of nameservers from the address server, or look a domain name up."""

from typing import Any

import attrs

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec import from_dict, to_dict
from emulator.spec.model.scenario import AddressServerSpec, DomainSpec, Scenario
from emulator.testing import Stage, Trace, a_scenario, broker_groups, consumer_group, execute
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig, ConsumerConfig, ProducerConfig
from nodes.protocol.codes import RequestCode

REGISTER, ROUTE, GET = (
    int(code)
    for code in (RequestCode.REGISTER_BROKER, RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_NAMESERVER_LIST)
)
DOMAIN = "nameservers.example"
FETCHES = {"fetch_namesrv_addr_by_address_server": True}
AT_DOMAIN = {"namesrv_addr": f"{DOMAIN}:9876"}
ALL = ("ns-1", "ns-2")


def a_cluster(broker: dict[str, Any], client: dict[str, Any], listed: tuple[str, ...] = ALL) -> Scenario:
    """Two nameservers, an address server and a domain name with the same list, one broker and one consumer."""
    made = a_scenario(nameservers=2, brokers=broker_groups(), consumers=consumer_group(1), rate_per_s=5)
    return attrs.evolve(
        made,
        address_server=AddressServerSpec(listed),
        domains=(DomainSpec(DOMAIN, listed),),
        brokers=tuple(attrs.evolve(spec, config=BrokerConfig(**broker)) for spec in made.brokers),
        consumers=tuple(attrs.evolve(spec, config=ConsumerConfig(**client)) for spec in made.consumers),
        producers=tuple(attrs.evolve(spec, config=ProducerConfig(**client)) for spec in made.producers),
    )


def with_act(scenario: Scenario, line: str, at_ms: int = 60_000) -> Scenario:
    return attrs.evolve(scenario, acts=(TimedAct("change", act_of(line), at_ms),))


def asked(trace: Trace, code: int, src: str, from_ms: float = 0, until_ms: float = 1e9) -> list[str]:
    """The nodes that were sent a request, each once, in order of name."""
    rows = trace.select("rpc", src=src, code=code, kind="request", after_ms=from_ms)
    return sorted({row.dst for row in rows if row.at_ms <= until_ms})


def fetched_at_s(trace: Trace, src: str) -> list[float]:
    return [round(row.at_ms / 1_000) for row in trace.select("rpc", src=src, code=GET, kind="request")]


def test_a_broker_has_no_nameserver_until_its_first_fetch_and_registers_40_s_after_its_start():
    """As measured with 5.3.3: the registration at 10 s comes before the scan that finds the nameserver available."""
    trace = execute(a_cluster(FETCHES, {}), for_ms=55_000)
    assert fetched_at_s(trace, "broker-a") == [10, 20, 30, 40, 50]
    first = trace.select("rpc", src="broker-a", code=REGISTER, kind="request")[0]
    assert 40_000 <= first.at_ms < 40_100
    assert asked(trace, REGISTER, "broker-a") == ["ns-1", "ns-2"]
    # The same text again is no news: the broker leaves no nameserver, and chooses none.
    assert not trace.select("beliefs", kind=BeliefKind.NAMESERVER, node="broker-a")


def test_a_client_fetches_before_it_asks_for_routes_and_then_every_two_minutes():
    trace = execute(a_cluster({}, FETCHES), for_ms=140_000)
    start_s = fetched_at_s(trace, "c1")[0]
    assert fetched_at_s(trace, "c1") == [start_s, start_s + 10, start_s + 130]
    assert trace.select("messages", event="consumed", client_id="c1") or asked(trace, ROUTE, "c1")
    assert trace.select("messages", event="stored")


def test_a_changed_list_is_used_after_the_next_fetch():
    trace = execute(with_act(a_cluster(FETCHES, FETCHES), "update-address-server ns-2"), for_ms=200_000)
    assert asked(trace, REGISTER, "broker-a", 71_000) == ["ns-2"]
    assert asked(trace, ROUTE, "c1", 140_000) == ["ns-2"]


def test_the_only_nameserver_of_a_broker_forgets_it_as_soon_as_the_broker_fetches_another_list():
    """As measured with 5.3.3."""
    trace = execute(with_act(a_cluster(FETCHES, {}, ("ns-1",)), "update-address-server ns-2", 85_000), for_ms=120_000)
    (forgotten,) = trace.select("beliefs", kind=BeliefKind.LIVE_BROKERS, node="ns-1", value="null")
    assert 89_990 < forgotten.at_ms < 90_100
    assert asked(trace, REGISTER, "broker-a", 90_000) == ["ns-2"]


def test_a_client_that_does_not_leave_a_removed_nameserver_goes_on_with_it():
    """Upstream 2042: brokers left it, so it forgets them, and the client has no route of a new topic."""
    client = {**FETCHES, "leaves_removed_nameserver": False}
    kept = a_cluster({"namesrv_addr": "ns-2"}, client, ("ns-1",))
    trace = execute(with_act(kept, "update-address-server ns-2"), for_ms=300_000)
    assert asked(trace, ROUTE, "c1", 200_000) == ["ns-1"]


def test_an_empty_list_changes_nothing():
    trace = execute(with_act(a_cluster(FETCHES, FETCHES), "update-address-server"), for_ms=120_000)
    assert asked(trace, REGISTER, "broker-a", 90_000) == ["ns-1", "ns-2"]


def test_without_the_address_server_nodes_keep_what_they_have_and_a_new_consumer_does_not_start():
    async def script(stage: Stage) -> None:
        await stage.at_ms(50_000)
        await stage.kill("address-server")
        await stage.at_ms(60_000)
        await stage.end(await stage.begin("restart c1"))
        await stage.at_ms(90_000)

    trace = execute(a_cluster(FETCHES, FETCHES), script)
    assert asked(trace, REGISTER, "broker-a", 61_000) == ["ns-1", "ns-2"]
    failed = [row for row in trace.select("lifecycle", node="c1", event="stopping") if "start failed" in row.detail]
    assert len(failed) == 1


def test_a_frozen_address_server_delays_what_shares_the_thread_by_three_seconds():
    async def script(stage: Stage) -> None:
        await stage.at_ms(65_000)
        await stage.begin("suspend address-server")
        await stage.at_ms(105_000)

    trace = execute(a_cluster(FETCHES, {}), script)
    registered = [
        row.at_ms for row in trace.select("rpc", src="broker-a", code=REGISTER, kind="request", after_ms=65_000)
    ]
    assert 72_990 < registered[0] < 73_010


def test_a_list_survives_the_process_of_the_address_server():
    async def script(stage: Stage) -> None:
        await stage.at_ms(70_000)
        await stage.kill("address-server")
        stage.start("address-server")
        await stage.at_ms(75_000)
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.at_ms(120_000)

    trace = execute(with_act(a_cluster(FETCHES, {}), "update-address-server ns-2"), script)
    assert asked(trace, REGISTER, "broker-a", 76_000) == ["ns-2"]


def test_an_act_that_cannot_reach_the_address_server_fails():
    async def script(stage: Stage) -> None:
        await stage.at_ms(50_000)
        await stage.kill("address-server")
        await stage.at_ms(100_000)

    trace = execute(with_act(a_cluster(FETCHES, {}), "update-address-server ns-2"), script)
    assert len(trace.select("lifecycle", event="command_failed")) == 1
    assert asked(trace, REGISTER, "broker-a", 61_000) == ["ns-1", "ns-2"]


def test_a_broker_that_looks_its_domain_name_up_registers_with_all_addresses_and_follows_changes():
    broker = {**AT_DOMAIN, "fetch_name_srv_addr_by_dns_lookup": True}
    trace = execute(with_act(a_cluster(broker, {}), f"update-domain {DOMAIN} ns-2"), for_ms=200_000)
    assert asked(trace, REGISTER, "broker-a", 0, 60_000) == ["ns-1", "ns-2"]
    assert asked(trace, REGISTER, "broker-a", 61_000, 125_000) == ["ns-1", "ns-2"]
    assert asked(trace, REGISTER, "broker-a", 131_000) == ["ns-2"]


def test_a_broker_that_cannot_look_its_domain_name_up_goes_on_with_the_list_that_it_has():
    broker = {**AT_DOMAIN, "fetch_name_srv_addr_by_dns_lookup": True}
    trace = execute(with_act(a_cluster(broker, {}), f"update-domain {DOMAIN}"), for_ms=200_000)
    assert asked(trace, REGISTER, "broker-a", 131_000) == ["ns-1", "ns-2"]


def test_without_the_look_up_a_domain_name_is_one_nameserver_and_a_change_waits_for_a_new_connection():
    async def script(stage: Stage) -> None:
        await stage.at_ms(200_000)
        await stage.kill("ns-1")
        await stage.at_ms(300_000)

    made = with_act(a_cluster(AT_DOMAIN, AT_DOMAIN, ("ns-1",)), f"update-domain {DOMAIN} ns-2")
    trace = execute(made, script)
    assert asked(trace, REGISTER, "broker-a", 0, 199_000) == ["ns-1"]
    assert asked(trace, ROUTE, "c1", 0, 199_000) == ["ns-1"]
    assert asked(trace, REGISTER, "broker-a", 201_000) == ["ns-2"]
    assert asked(trace, ROUTE, "c1", 201_000) == ["ns-2"]


def test_a_domain_name_that_stands_for_no_machine_is_refused_at_once():
    trace = execute(a_cluster({}, AT_DOMAIN, ()), for_ms=20_000)
    (failed,) = trace.select("lifecycle", node="c1", event="stopping")
    assert "nameservers.example:9876 has an unknown domain name" in failed.detail
    assert failed.at_ms < 2_000
    assert not trace.select("messages", event="stored")


def test_which_of_several_addresses_a_connection_has_is_drawn_for_each():
    made = [attrs.evolve(a_cluster(AT_DOMAIN, {}), seed=seed) for seed in range(1, 9)]
    chosen = [asked(execute(scenario, for_ms=20_000), REGISTER, "broker-a") for scenario in made]
    assert ["ns-1"] in chosen
    assert ["ns-2"] in chosen


def test_a_scenario_with_an_address_server_and_a_domain_is_the_same_after_it_was_written():
    made = a_cluster(FETCHES, AT_DOMAIN)
    assert from_dict(to_dict(made)) == made
