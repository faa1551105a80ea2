"""`restart NODES with {...}` and `upgrade`: options that stay, orders, and what they do not touch."""

import json

import pytest

from emulator.testing import GROUP, Stage, a_scenario, broker_groups, execute
from nodes.config import NameserverConfig
from nodes.protocol.codes import RequestCode
from support.grouped import a_group, acting, believed

PAIRS = ("broker-a", "broker-b")


def stops(trace):
    """Nodes in the order in which they began to shut down, with the whole second."""
    return [(row.node, int(row.at_ms) // 1_000) for row in trace.select("lifecycle", event="stopping")]


def reported(trace, node):
    """What each process of a node reported about changed options: (incarnation, options)."""
    return [(row.incarnation, row.detail) for row in trace.select("lifecycle", event="configured", node=node)]


def test_a_process_shuts_down_in_order_and_the_next_one_has_the_options_and_so_has_each_later_one():
    seen = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.begin("restart c1 with {pullBatchSize = 16}")
        seen.append(stage.node("c1"))
        await stage.at_ms(25_000)
        await stage.kill("c1")
        stage.start("c1")
        await stage.at_ms(30_000)
        await stage.begin("restart c1 with {pullInterval = 5}")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=2), script)

    events = [row.event for row in trace.select("lifecycle", node="c1", after_ms=19_000, until_ms=24_000)]
    assert events == ["stopping", "stopped", "started", "configured", "ready"]
    assert reported(trace, "c1") == [
        (2, "pullBatchSize = 16"),
        (3, "pullBatchSize = 16"),
        (4, "pullBatchSize = 16, pullInterval = 5"),
    ]
    assert reported(trace, "c2") == []
    assert [json.loads(row.parameters) for row in trace.select("faults", event="begin")] == [
        {"options": {"pullBatchSize": 16}},
        {"options": {"pullInterval": 5}},
    ]


def test_a_strategy_changes_with_the_restart():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.begin(f"restart members of {GROUP} with {{allocateMessageQueueStrategy = AVG_BY_CIRCLE}}")
        await stage.at_ms(60_000)

    trace = execute(a_scenario(consumers=2, queues=4), script)

    before, after = ({}, {})
    for row in trace.select("beliefs", kind="assignment"):
        if row.subject.endswith("/orders"):
            (before if row.at_ms < 20_000 else after)[row.node] = json.loads(row.value)
    assert before["c1"] == [["broker-a", 0], ["broker-a", 1]]
    assert after["c1"] == [["broker-a", 0], ["broker-a", 2]]


def test_a_version_step_is_raised_by_a_restart():
    steps = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.begin("restart broker-a with {consumerOffsetUpdateVersionStep = 7}")
        await stage.at_ms(25_000)
        steps.append(stage.node("broker-a").context.config.consumer_offset_update_version_step)

    execute(a_scenario(), script)
    assert steps == [7]


def test_a_node_that_is_down_stays_down_and_has_the_options_from_its_next_start_on():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        kill = await stage.begin("kill broker-a")
        await stage.begin("restart brokers with {slaveReadEnable = true}")
        await stage.at_ms(30_000)
        assert stage.host("broker-a").power_state.value == "down"
        await stage.end(kill)
        await stage.at_ms(35_000)

    trace = execute(a_scenario(brokers=PAIRS), script)

    assert stops(trace) == [("broker-b", 20)]
    assert trace.select("lifecycle", node="broker-a", event="started")[-1].at_ms == 30_000
    assert reported(trace, "broker-a") == [(2, "slaveReadEnable = true")]


@pytest.mark.parametrize(
    ("order", "nodes"),
    [
        ("slaves first", ["broker-a-s1", "broker-b-s1", "broker-a", "broker-b"]),
        ("masters first", ["broker-a", "broker-b", "broker-a-s1", "broker-b-s1"]),
        ("by name", ["broker-a", "broker-a-s1", "broker-b", "broker-b-s1"]),
    ],
)
def test_an_upgrade_takes_one_node_after_the_other_in_its_order(order, nodes):
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.begin(f"upgrade brokers with {{slaveReadEnable = true}} one every 10s, {order}")
        await stage.at_ms(70_000)

    trace = execute(a_scenario(brokers=broker_groups(*PAIRS, slaves=1)), script)

    assert stops(trace) == [(node, 20 + 10 * number) for number, node in enumerate(nodes)]


def test_a_tenth_consumer_comes_after_the_ninth():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.begin(f"upgrade members of {GROUP} one every 1s")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=10), script)

    assert [node for node, _ in stops(trace)] == [f"c{number}" for number in range(1, 11)]


def test_an_upgrade_that_is_healed_goes_no_further_and_undoes_nothing():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        upgrade = await stage.begin("upgrade brokers with {slaveReadEnable = true} one every 10s")
        await stage.at_ms(25_000)
        await stage.end(upgrade)
        await stage.at_ms(60_000)
        assert [stage.node(name).context.config.slave_read_enable for name in PAIRS] == [True, False]

    trace = execute(a_scenario(brokers=PAIRS), script)
    assert stops(trace) == [("broker-a", 20)]


def test_what_an_administrator_changed_before_gives_way_to_the_restart():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(20_000)
        await probe.ask("broker-a", RequestCode.UPDATE_BROKER_CONFIG, None, b"slaveReadEnable=true\nmaxMessageSize=9\n")
        await stage.begin("restart broker-a with {slaveReadEnable = false}")
        await stage.at_ms(25_000)
        config = stage.node("broker-a").context.config
        assert (config.slave_read_enable, config.max_message_size) == (False, 9)

    execute(a_scenario(), script)


def test_an_older_nameserver_becomes_a_newer_one_and_answers_heartbeats():
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.begin("restart ns-1 with {release = 5.3.3, supportActingMaster = true}")
        await stage.at_ms(90_000)

    old = NameserverConfig(knows_member_groups=False)
    trace = execute(a_group(nameserver=old, slaves=1, config=acting(compatible_with_old_name_srv=False)), script)

    stages = [stage for at_ms, stage in believed(trace, "ba", "online_stage")]
    assert stages[:2] == ["isolated", "fetching member group"]
    assert stages[-1] == "online"
    assert min(at_ms for at_ms, stage in believed(trace, "ba", "online_stage") if stage == "online") > 40_000


def test_a_broker_of_an_older_release_has_no_timer_and_does_not_act():
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.begin("restart brokers with {release = 4.9}")
        await stage.at_ms(60_000)
        assert not stage.node("ba").context.config.enable_slave_acting_master

    trace = execute(a_group(slaves=1), script)

    beats = trace.select("rpc", src="ba", dst="ns-1", code=int(RequestCode.BROKER_HEARTBEAT), after_ms=45_000)
    beats += trace.select("rpc", src="ba", dst="ns-1", code=int(RequestCode.QUERY_DATA_VERSION), after_ms=45_000)
    assert beats == []
