"""When a nameserver learns of brokers and when it forgets them, to the millisecond."""

import pytest

from emulator.spec.model.scenario import NameserverSpec, Network, TopicSpec
from emulator.testing import TOPIC, Caller, Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig, NameserverConfig
from nodes.protocol import headers
from nodes.protocol.bodies import ClusterInfo, RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    DataVersion,
    HeartbeatData,
    MessageModel,
    TopicConfig,
    TopicRouteData,
)
from nodes.protocol.registry import decode_body

REPORTS_ITS_TIMEOUT = BrokerConfig(enable_slave_acting_master=True, register_name_server_period=60_000)


def live(trace, nameserver="ns-1", subject="broker-a"):
    """When the nameserver took the broker in (True) and out (False)."""
    rows = trace.select("beliefs", node=nameserver, kind="live_brokers", subject=subject)
    return [(row.at_ms, row.value != "null") for row in rows]


@pytest.mark.trap("M4")
def test_a_killed_broker_is_out_of_the_route_when_its_fin_arrives():
    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.kill("broker-a")
        await stage.for_ms(1_000)

    trace = execute(a_scenario(brokers=("broker-a", "broker-b")), script)

    assert live(trace) == [(3, True), (12_001, False)]
    left = trace.select("beliefs", node="ns-1", kind="route", subject=TOPIC)[-1]
    assert left.at_ms == 12_001
    assert "broker-a" not in left.value
    assert "broker-b" in left.value


@pytest.mark.trap("Y2")
@pytest.mark.trap("M3")
@pytest.mark.trap("M24")
@pytest.mark.parametrize(("first_scan_ms", "removed_ms"), [(5, 160_005), (4_999, 164_999), (0, 165_000)])
def test_a_silent_broker_goes_at_the_first_scan_that_is_more_than_120_s_after_its_last_registration(
    first_scan_ms, removed_ms
):
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        stage.cut("broker-a", "ns-1")

    config = NameserverConfig(first_scan_delay_ms=first_scan_ms, server_channel_max_idle_time_seconds=3_600)
    trace = execute(
        a_scenario(network=Network(0), nameservers=(NameserverSpec("ns-1", config),)), script, for_ms=170_000
    )

    registrations = trace.select("rpc", dst="ns-1", code=103, event="delivered", kind="request")
    assert [row.at_ms for row in registrations] == [0, 10_000, 40_000]
    assert live(trace) == [(0, True), (removed_ms, False)]


def test_the_connection_of_a_silent_broker_is_idle_before_a_scan_finds_it_expired():
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        stage.cut("broker-a", "ns-1")

    trace = execute(a_scenario(network=Network(0)), script, for_ms=170_000)

    # Registered at 40 s over a connection that carried nothing since: closed after 120 s, which evicts at once.
    assert live(trace) == [(0, True), (160_000, False)]


@pytest.mark.trap("M2")
@pytest.mark.trap("M25")
def test_data_version_queries_keep_a_broker_alive_that_registers_too_rarely():
    trace = execute(a_scenario(brokers=broker_groups(config=REPORTS_ITS_TIMEOUT)), for_ms=69_000)

    registrations = trace.select("rpc", dst="ns-1", code=103, event="delivered", kind="request")
    assert [round(row.at_ms, -3) for row in registrations] == [0, 10_000]
    beats = trace.select("rpc", dst="ns-1", code=322, event="delivered", kind="oneway")
    assert len(beats) == 68
    assert trace.select("rpc", code=904) == []
    assert trace.select("rpc", code=901) == []
    assert live(trace) == [(3, True)]


def test_without_heartbeats_the_same_broker_is_lost_after_10_s():
    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        stage.cut("broker-a", "ns-1")

    trace = execute(a_scenario(brokers=broker_groups(config=REPORTS_ITS_TIMEOUT)), script, for_ms=40_000)

    last_beat = trace.select("rpc", dst="ns-1", code=322, event="delivered")[-1].at_ms
    removed = live(trace)[-1][0]
    assert removed == 25_005
    assert 10_000 < removed - last_beat < 15_000


@pytest.mark.trap("M1")
@pytest.mark.parametrize("compatible", [True, False])
def test_heartbeats_of_an_evicted_broker_arrive_and_change_nothing(compatible):
    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        stage.cut("broker-a", "ns-1")
        await stage.at_ms(40_000)
        stage.heal("broker-a", "ns-1")

    config = BrokerConfig(
        enable_slave_acting_master=True, register_name_server_period=60_000, compatible_with_old_name_srv=compatible
    )
    trace = execute(a_scenario(brokers=broker_groups(config=config)), script, for_ms=75_000)

    code = 322 if compatible else 904
    healed = trace.select(
        "rpc", dst="ns-1", code=code, kind="oneway", event="delivered", after_ms=41_000, until_ms=70_000
    )
    assert len(healed) > 25
    assert trace.select("rpc", kind="oneway", code=904 if compatible else 322) == []
    assert [known for _, known in live(trace)] == [True, False, True]
    assert live(trace)[-1][0] == trace.select("rpc", dst="ns-1", code=103, event="delivered", after_ms=60_000)[0].at_ms


def test_a_broker_with_default_options_sends_no_heartbeats():
    trace = execute(a_scenario(), for_ms=30_000)

    assert [row.code for row in trace.select("rpc", dst="ns-1", kind="oneway")] == []


@pytest.mark.trap("M7")
def test_after_a_restart_a_nameserver_refuses_a_single_new_topic_until_the_broker_registers_all():
    seen = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.host("ns-1").restart()
        await stage.at_ms(15_000)
        probe = await stage.probe()
        late = ConsumerData(
            "late",
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            (),
        )
        await probe.ask("broker-a", RequestCode.HEART_BEAT, None, HeartbeatData("stranger", (), (late,)))
        await stage.at_ms(20_000)
        seen.append(decode_body(ClusterInfo, (await probe.ask("ns-1", RequestCode.GET_BROKER_CLUSTER_INFO)).body))
        header = headers.GetRouteInfoRequestHeader(TOPIC)
        seen.append((await probe.ask("ns-1", RequestCode.GET_ROUTEINFO_BY_TOPIC, header)).code)
        await stage.at_ms(41_000)

    trace = execute(a_scenario(), script)

    assert [row.detail for row in trace.select("rpc", src="ns-1", code=103, status=1)] == ["register broker failed"]
    info, code = seen
    assert {name: dict(data.broker_addrs) for name, data in info.broker_addr_table.items()} == {"broker-a": {}}
    assert code == ResponseCode.TOPIC_NOT_EXIST
    assert [round(at_ms, -1) for at_ms, _ in live(trace)] == [0, 40_000]


@pytest.mark.trap("M6")
def test_an_unregistration_removes_the_registration_that_came_after_it():
    codes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(5_000)
        probe = await stage.probe()
        unregister = headers.UnregisterBrokerRequestHeader("broker-x", "127.1.9.9:10911", "DefaultCluster", 0)
        register = headers.RegisterBrokerRequestHeader(
            "broker-x", "127.1.9.9:10911", "DefaultCluster", "127.1.9.9:10912", 0
        )
        topics = {name: TopicConfig(name, 4, 4) for name in ("t1", "t2")}
        body = RegisterBrokerBody(TopicConfigSerializeWrapper(topics, DataVersion()))

        async def say(code, header, content=None) -> None:
            codes.append((await probe.ask("ns-1", code, header, content)).code)

        await say(RequestCode.REGISTER_BROKER, register, body)
        stage.world.nursery.start_soon(say, RequestCode.UNREGISTER_BROKER, unregister)
        stage.world.nursery.start_soon(say, RequestCode.REGISTER_BROKER, register, body)
        await stage.for_ms(1_000)

    trace = execute(a_scenario(network=Network(10)), script)

    assert codes == [0, 0, 0]
    assert [row.code for row in trace.select("rpc", src="probe", kind="request")] == [103, 104, 103]
    assert live(trace, subject="broker-x")[-1][1] is False


@pytest.mark.trap(
    "Y13",
    status="simplified",
    note="port, HA service and process end together as soon as the last farewell is answered",
)
@pytest.mark.trap("M41")
def test_a_broker_that_stops_leaves_every_nameserver_before_it_closes_its_port():
    answered = []

    async def connect_late(probe: Caller) -> None:
        answered.append((await probe.ask("broker-a", RequestCode.GET_MAX_OFFSET, header)).code)

    header = headers.GetMaxOffsetRequestHeader(TOPIC, 0)

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(11_990)
        stage.world.nursery.start_soon(connect_late, probe)
        await stage.at_ms(12_000)
        await stage.stop("broker-a")
        await stage.for_ms(2_000)

    trace = execute(a_scenario(network=Network(20), nameservers=2, rate_per_s=100), script)

    assert answered == [0]
    farewells = trace.select("rpc", src="broker-a", code=104, kind="request")
    assert [(row.dst, row.sent_ms) for row in farewells] == [("ns-1", 12_000), ("ns-2", 12_040)]
    assert live(trace, "ns-1")[-1] == (12_020, False)
    assert live(trace, "ns-2")[-1] == (12_060, False)
    served = trace.select("messages", event="stored", after_ms=12_020)
    assert 0 < len(served) <= 7
    assert trace.select("lifecycle", node="broker-a", event="stopped")[0].at_ms == 14_080


def test_a_nameserver_that_is_frozen_between_registrations_forgets_no_one():
    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.suspend("ns-1", 40_000)
        await stage.for_ms(30_000)

    trace = execute(a_scenario(consumers=1), script)

    assert live(trace) == [(3, True)]
    assert trace.owners() == {("broker-a", i): ["c1"] for i in range(4)}


@pytest.mark.trap("M6")
def test_a_thawed_nameserver_takes_the_close_of_an_old_connection_for_the_loss_of_a_registered_broker():
    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.suspend("ns-1", 60_000)
        await stage.for_ms(30_000)

    trace = execute(a_scenario(), script)

    # The registration of 40 s timed out, its connection was closed, and that of 70 s came over a new one.
    handled = trace.select("rpc", dst="ns-1", code=103, event="delivered", after_ms=71_000, until_ms=73_000)
    assert [round(row.sent_ms, -1) for row in handled] == [40_000, 70_010]
    assert [known for _, known in live(trace)] == [True, False, True]
    assert live(trace)[1][0] == 72_000
    assert round(live(trace)[2][0], -1) == 100_000


def test_registrations_come_10_s_after_the_start_and_every_30_s_from_there():
    trace = execute(a_scenario(nameservers=2), for_ms=75_000)

    for name in ("ns-1", "ns-2"):
        sent = [row.sent_ms for row in trace.select("rpc", dst=name, code=103, kind="request")]
        assert [round(instant, -1) for instant in sent] == [0, 10_000, 40_000, 70_000]


def test_both_nameservers_serve_the_same_route_on_a_calm_cluster():
    routes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        probe = await stage.probe()
        for name in ("ns-1", "ns-2"):
            answer = await probe.ask(name, RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(TOPIC))
            routes.append(decode_body(TopicRouteData, answer.body))

    topics = (TopicSpec(TOPIC, ("broker-a", "broker-b"), 2),)
    execute(a_scenario(nameservers=2, brokers=("broker-a", "broker-b"), topics=topics), script)

    assert routes[0] == routes[1]
    assert [data.broker_name for data in routes[0].queue_datas] == ["broker-a", "broker-b"]
