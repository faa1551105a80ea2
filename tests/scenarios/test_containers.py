"""Containers of brokers: one process, one connection to each nameserver, and brokers that come and go in it."""

import json
from pathlib import Path

import pytest

from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Stage, Trace, execute
from emulator.time.mode import TimeMode
from nodes.container.tables.broker_file import read_broker_file
from nodes.container.tables.brokers import BrokerOfContainer, ContainerBrokers
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.properties import properties_to_text
from nodes.rpc.errors import RemotingTimeoutError
from support.contained import CLUSTER, add, broker, crossed, in_containers, remove
from support.popping_guest import popping_guest

ONLINE_MS = 30_000
"""By then all brokers of a crossed pair have registered."""


def live(trace: Trace, group: str, **between: float) -> list[tuple[float, list[str]]]:
    """Which broker ids of a group the nameserver held: (ms, ids)."""
    rows = trace.select("beliefs", node="ns-1", kind="live_brokers", subject=group, **between)
    return [(row.at_ms, sorted(json.loads(row.value) or ())) for row in rows]


def lives(trace: Trace, node: str, **between: float) -> list[str]:
    return [row.event for row in trace.select("lifecycle", node=node, **between)]


def test_all_brokers_of_a_container_use_one_connection_to_each_nameserver():
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)

    trace = execute(in_containers(*crossed()), script)

    opened = [(row.src, row.dst) for row in trace.select("rpc", event="connected", dst="ns-1")]
    assert opened == [("box0", "ns-1"), ("box1", "ns-1")]
    assert [ids for _, ids in live(trace, "ba")][-1] == [ids for _, ids in live(trace, "bb")][-1] == ["0", "1"]
    addresses = json.loads(trace.select("beliefs", node="ns-1", kind="live_brokers", subject="bb")[-1].value)
    assert addresses == {"0": "127.1.180.2:10911", "1": "127.1.180.1:10921"}


@pytest.mark.trap("M5")
@pytest.mark.trap("P43")
def test_when_a_container_is_killed_all_its_brokers_die_but_a_nameserver_forgets_only_one_of_them_at_once():
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        await stage.kill("box1")
        await stage.at_ms(60_000)

    trace = execute(in_containers(*crossed()), script)

    killed = [(row.node, row.at_ms) for row in trace.select("lifecycle", event="killed")]
    assert killed == [("bb", ONLINE_MS), ("ba-s1", ONLINE_MS), ("box1", ONLINE_MS)]
    forgotten = sorted(live(trace, "ba", after_ms=ONLINE_MS) + live(trace, "bb", after_ms=ONLINE_MS))
    assert len(forgotten) == 2
    assert forgotten[0][0] < ONLINE_MS + 10
    assert ONLINE_MS + 9_000 < forgotten[1][0] < ONLINE_MS + 15_100


@pytest.mark.trap("P43")
def test_a_scan_that_evicts_a_silent_broker_evicts_a_healthy_neighbour_through_their_channel():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)

    alone = {"total_replicas": 1}
    silent = broker("bb", 0, "box0", 0, **alone, broker_heartbeat_interval=1_000_000)
    healthy = broker("ba", 0, "box0", 1, **alone)
    trace = execute(in_containers(silent, healthy), script)

    assert [] in [ids for _, ids in live(trace, "bb")]
    gone = [at_ms for at_ms, ids in live(trace, "ba") if ids == []]
    back = [at_ms for at_ms, ids in live(trace, "ba", after_ms=gone[0] + 1) if ids == ["0"]]
    assert back[0] - gone[0] <= 30_000


@pytest.mark.trap("P40")
def test_a_container_answers_no_request_but_its_four():
    lines = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(ONLINE_MS)
        with pytest.raises(RemotingTimeoutError):
            await probe.ask("box0", RequestCode.GET_BROKER_RUNTIME_INFO, timeout_ms=3_000)
        lines.append(await probe.ask("box0", RequestCode.GET_BROKER_CONFIG))
        lines.append(await probe.ask("box0", RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerConfigPaths=x\n"))
        lines.append(await probe.ask("box0", RequestCode.UPDATE_BROKER_CONFIG, None, b"connectTimeoutMillis=2000\n"))
        lines.append(await probe.ask("box0", RequestCode.GET_BROKER_CONFIG))
        lines.append(await probe.ask("ba", RequestCode.GET_BROKER_RUNTIME_INFO))

    execute(in_containers(*crossed()), script)

    codes = [ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION, *[ResponseCode.SUCCESS] * 3]
    assert [answer.code for answer in lines] == codes
    assert b"brokerConfigPaths=conf/ba.conf:conf/bb-s1.conf" in lines[0].body
    assert b"connectTimeoutMillis=2000" in lines[3].body


@pytest.mark.trap("P41")
def test_the_port_for_replication_is_one_above_the_port_whatever_the_file_says():
    found = read_broker_file("brokerName=ba\nlistenPort=20911\nhaListenPort=9\n", "host")
    assert (found.config.listen_port, found.ha_listen_port) == (20_911, 20_912)

    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        assert stage.node("bb").context.ha_address == "127.1.180.2:10912"

    trace = execute(in_containers(*crossed()), script)
    dialled = trace.select("rpc", event="connected", src="bb-s1", dst="bb")
    assert dialled
    assert json.loads(trace.select("beliefs", node="bb-s1", kind="ha_state")[-1].value)["state"] == "transfer"


async def send_delayed(probe, node: str, topic: str) -> None:
    """A message that is due after 10 s."""
    properties = properties_to_text({"DELAY": "3"})
    header = headers.SendMessageRequestHeader("pg", topic, "TBW102", 4, 0, 0, 0, 0, properties)
    assert (await probe.ask(node, RequestCode.SEND_MESSAGE, header)).code == ResponseCode.SUCCESS


def stored(trace: Trace, topic: str, **between: float) -> list[str]:
    """Which brokers stored messages of a topic."""
    return [row.node for row in trace.select("messages", event="stored", topic=topic, **between)]


def first_master(*names: str) -> str:
    """The first of some masters in the table of a container."""
    brokers: ContainerBrokers[str] = ContainerBrokers()
    for name in names:
        brokers.put(BrokerOfContainer(CLUSTER, name, 0), name)
    found = brokers.peek_master()
    assert found is not None
    return found


@pytest.mark.trap("P42")
def test_an_acting_slave_puts_what_is_due_into_the_first_master_with_it_even_if_that_lacks_the_topic():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(65_000)
        await send_delayed(probe, "ba", "bills")
        await stage.for_ms(1_000)
        await stage.kill("ba")
        await stage.for_ms(30_000)

    brokers = (
        broker("ba", 0, None),
        broker("ba", 1, "box0", 0),
        broker("bb", 0, "box0", 1, total_replicas=1),
        broker("bc", 0, "box0", 2, total_replicas=1),
        broker("bd", 0, "box0", 3, total_replicas=1),
    )
    trace = execute(in_containers(*brokers, topics=(TopicSpec("bills", ("ba",), 4),)), script)

    assert stored(trace, "bills", after_ms=67_000) == [first_master("bb", "bc", "bd")]
    sends = trace.select("rpc", src="box0", code=int(RequestCode.SEND_MESSAGE_V2))
    assert sends == []


@pytest.mark.trap("M63")
def test_what_escapes_inside_a_container_may_land_in_a_master_that_is_not_registered():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(65_000)
        await remove(probe, "box0", "bb", 0)
        await send_delayed(probe, "ba", "orders")
        await stage.for_ms(1_000)
        await stage.kill("ba")
        await stage.for_ms(8_000)
        assert (await add(probe, "box0", "bb")).code == ResponseCode.SUCCESS
        await stage.for_ms(10_000)

    # The slave of bb is on a machine of its own, so that bb waits for its replication before it registers.
    brokers = (broker("ba", 0, None), broker("ba", 1, "box0", 0), broker("bb", 0, "box0", 1), broker("bb", 1, None))
    trace = execute(in_containers(*brokers), script)

    (due,) = trace.select("messages", event="stored", topic="orders", after_ms=67_000)
    assert due.node == "bb"
    online = [row.at_ms for row in trace.select("beliefs", node="bb", kind="online_stage") if "online" in row.value]
    assert due.at_ms < online[-1]


def test_a_message_of_a_dead_master_is_revived_from_its_slave_in_the_container_without_a_request():
    popped = []

    async def script(stage: Stage) -> None:
        guest = await popping_guest(stage)
        await stage.at_ms(65_000)
        header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, "")
        assert (await guest.ask("ba", RequestCode.SEND_MESSAGE, header, b"x")).code == ResponseCode.SUCCESS
        await stage.for_ms(1_000)
        await stage.kill("ba")
        await stage.for_ms(15_000)
        popped.append(await guest.pop("ba-s1", topic="orders", group="TOOLS_CONSUMER", invisible_ms=10_000))
        await stage.for_ms(40_000)

    brokers = (broker("ba", 0, None), broker("ba", 1, "box0", 0), broker("bb", 0, "box0", 1, total_replicas=1))
    trace = execute(in_containers(*brokers), script)

    assert len(popped[0].messages) == 1
    # Its check point escapes into the log of bb, which revives it, and reads the message in the store of ba-s1.
    assert [(row.node, row.broker_name) for row in trace.select("messages", event="check_point")] == [("ba-s1", "ba")]
    assert [(row.node, row.broker_name) for row in trace.select("messages", event="revived")] == [("bb", "ba")]
    assert trace.select("rpc", src="box0", code=int(RequestCode.PULL_MESSAGE)) == []


@pytest.mark.parametrize(("container", "code"), [("box0", ResponseCode.SUCCESS), (None, ResponseCode.SYSTEM_ERROR)])
def test_what_a_consumer_sends_back_to_an_acting_slave_is_stored_by_a_master_with_it_if_there_is_one(container, code):
    lines = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(65_000)
        header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, "")
        assert (await probe.ask("ba", RequestCode.SEND_MESSAGE, header, b"x")).code == ResponseCode.SUCCESS
        await stage.for_ms(1_000)
        await stage.kill("ba")
        await stage.for_ms(15_000)
        back = headers.ConsumerSendMsgBackRequestHeader(0, "TOOLS_CONSUMER", 3)
        lines.append(await probe.ask("ba-s1", RequestCode.CONSUMER_SEND_MSG_BACK, back))
        await stage.for_ms(15_000)

    brokers = (broker("ba", 0, None), broker("ba", 1, "box0", 0), broker("bb", 0, container, 1, total_replicas=1))
    trace = execute(in_containers(*brokers), script)

    assert lines[0].code == code
    assert stored(trace, "%RETRY%TOOLS_CONSUMER") == (["bb"] if container else [])


@pytest.mark.trap("P44")
def test_a_file_that_is_refused_ends_the_container_and_earlier_brokers_were_registered_for_a_moment():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)

    good = broker("ba", 0, "box0", 0, total_replicas=1)
    bad = broker("bb", 0, "box0", 1, total_replicas=1, in_sync_replicas=2)
    trace = execute(in_containers(good, bad), script)

    assert [ids for _, ids in live(trace, "ba")] == [["0"], []]
    assert lives(trace, "ba") == ["started", "ready", "stopped"]
    assert lives(trace, "box0") == ["started", "stopped"]
    assert lives(trace, "bb") == []


def test_brokers_are_removed_and_added_while_the_others_go_on():
    lines = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(ONLINE_MS)
        for name, broker_id in (("bb", 1), ("bb", 1), ("bb", 7)):
            lines.append(await remove(probe, "box0", name, broker_id))
        lines.extend([await add(probe, "box0", node) for node in ("bb-s1", "bb-s1", "", "nobody", "bb")])
        await stage.for_ms(20_000)

    trace = execute(in_containers(*crossed()), script)

    assert [(answer.code, answer.remark) for answer in lines] == [
        (0, None),
        (211, "Broker not exist"),
        (211, "Broker not exist"),
        (0, None),
        (1, f"{CLUSTER}_bb_1 has already been added to current broker container"),
        (1, "addBroker config path is empty"),
        (1, "addBroker properties empty"),
        (1, "addBroker properties empty"),
    ]
    assert lives(trace, "bb-s1") == ["started", "ready", "stopped", "started", "ready"]
    assert lives(trace, "box0") == ["started", "ready"]
    assert [ids for _, ids in live(trace, "bb", after_ms=ONLINE_MS)] == [["0"], ["0", "1"]]
    assert live(trace, "ba", after_ms=ONLINE_MS) == []


def test_a_broker_is_stopped_and_restarted_with_other_options_while_its_container_runs():
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        stop = await stage.begin("stop bb-s1")
        await stage.for_ms(10_000)
        await stage.end(stop)
        await stage.for_ms(15_000)
        await stage.begin("restart ba with {maxMessageSize = 99}")
        await stage.for_ms(20_000)
        assert stage.node("ba").context.config.max_message_size == 99

    trace = execute(in_containers(*crossed()), script)

    assert lives(trace, "bb-s1") == ["started", "ready", "stopping", "stopped", "started", "ready"]
    assert lives(trace, "ba") == ["started", "ready", "stopping", "stopped", "started", "configured", "ready"]
    assert lives(trace, "box0") == ["started", "ready"]
    assert live(trace, "ba")[-1][1] == ["0", "1"]


@pytest.mark.parametrize("whom", ["box0", "bb-s1", "containers", "slaves of bb"])
def test_a_fault_of_the_process_hits_all_of_its_brokers_and_so_does_its_end(whom):
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        kill = await stage.begin(f"kill {whom}")
        await stage.for_ms(5_000)
        await stage.end(kill)
        await stage.for_ms(20_000)

    trace = execute(in_containers(*crossed()[:2], *crossed()[2:] if whom != "containers" else ()), script)

    for node in ("box0", "ba", "bb-s1"):
        assert lives(trace, node) == ["started", "ready", "killed", "started", "ready"]
    assert trace.select("faults", event="end")[0].hits == 1


def test_a_suspended_container_is_silent_and_goes_on_where_it_was():
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        suspend = await stage.begin("suspend box0")
        await stage.for_ms(30_000)
        assert [stage.host(name).power_state.value for name in ("box0", "ba", "bb-s1")] == ["suspended"] * 3
        await stage.end(suspend)
        await stage.for_ms(40_000)

    trace = execute(in_containers(*crossed()), script)

    meanwhile = trace.select("beliefs", node="ba", after_ms=ONLINE_MS + 1, until_ms=ONLINE_MS + 29_999)
    assert meanwhile == []
    assert lives(trace, "ba", after_ms=ONLINE_MS - 1) == ["suspended", "resumed"]
    assert [live(trace, group)[-1][1] for group in ("ba", "bb")] == [["0", "1"]] * 2


def test_a_cut_of_a_container_cuts_all_of_its_brokers():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(ONLINE_MS)
        await stage.begin("cut box0")
        for node in ("box0", "ba", "bb-s1"):
            with pytest.raises(Exception, match="did not answer"):
                await probe.ask(node, RequestCode.GET_BROKER_CONFIG, timeout_ms=2_000)

    trace = execute(in_containers(*crossed()), script)
    assert trace.select("faults", event="begin")[0].subject == "box0, ba, bb-s1 <-> *"


def test_each_broker_has_its_own_log_and_tables_and_they_survive_a_kill():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(ONLINE_MS)
        header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, "")
        for node in ("ba", "bc"):
            for _ in range(2 if node == "ba" else 1):
                assert (await probe.ask(node, RequestCode.SEND_MESSAGE, header, b"x")).code == ResponseCode.SUCCESS
        await stage.kill("box0")
        stage.start("box0")
        await stage.for_ms(5_000)
        sizes = [stage.node(node).context.store.max_offset("orders", 0) for node in ("ba", "bc")]
        assert sizes == [2, 1]

    alone = {"total_replicas": 1}
    execute(in_containers(broker("ba", 0, "box0", 0, **alone), broker("bc", 0, "box0", 1, **alone)), script)


def test_a_slave_in_a_container_sends_a_consumer_back_to_its_living_master():
    lines = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(ONLINE_MS)
        header = headers.PullMessageRequestHeader("TOOLS_CONSUMER", "orders", 0, 0, 32, 4, 0, 1_000, "*", 0, "TAG")
        lines.append(await probe.ask("ba-s1", RequestCode.PULL_MESSAGE, header))
        await stage.kill("box0")
        await stage.for_ms(10_000)
        lines.append(await probe.ask("ba-s1", RequestCode.PULL_MESSAGE, header))

    execute(in_containers(*crossed()), script)
    assert [answer.code for answer in lines] == [ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_NOT_FOUND]


@pytest.mark.slow
def test_memory_and_sockets_carry_containers_alike():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.kill("box0")
        await stage.at_ms(35_000)
        stage.start("box0")
        await stage.at_ms(50_000)

    scenario = in_containers(*crossed(), consumers=1, rate_per_s=2)
    in_memory, over_sockets = (execute(scenario, script, mode=mode) for mode in (TimeMode.SIM, TimeMode.FAST))
    assert in_memory.rows["lifecycle"] == over_sockets.rows["lifecycle"]
    assert in_memory.rows["beliefs"] == over_sockets.rows["beliefs"]


@pytest.mark.slow
def test_the_example_loses_no_message_when_a_container_is_killed(tmp_path):
    trace = Trace()
    scenario = load(Path(__file__).parents[2] / "examples" / "containers.toml")
    run_scenario(scenario, runs=tmp_path, listeners=(trace.note,))

    assert sorted(trace.consumed()) == trace.stored()
    acting = trace.select("beliefs", node="broker-b-s1", kind="special_service", after_ms=120_000)
    assert [json.loads(row.value) for row in acting] == [True, False]


@pytest.mark.parametrize("line", ["cut ba ns-1", "drop REGISTER_BROKER from ba to ns-1"])
def test_a_fault_of_the_links_of_one_broker_hits_the_connections_of_its_container(line):
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        fault = await stage.begin(line)
        await stage.for_ms(35_000)
        await stage.end(fault)

    trace = execute(in_containers(*crossed()), script)

    (begin,) = trace.select("faults", event="begin")
    assert "ba, box0" in begin.subject
    (end,) = trace.select("faults", event="end")
    assert end.hits > 1
    # ba and the slave of bb share the connection of box0; the master of bb has that of box1.
    assert [registrations(trace, name) for name in ("box0", "box1")] == [0, 2]


def registrations(trace: Trace, src: str) -> int:
    """How many reach the nameserver after the fault has begun."""
    code = int(RequestCode.REGISTER_BROKER)
    return len(trace.select("rpc", src=src, dst="ns-1", code=code, event="delivered", after_ms=ONLINE_MS + 100))


def test_a_fault_of_links_to_one_broker_of_a_container_does_not_hit_what_its_neighbours_get():
    async def script(stage: Stage) -> None:
        await stage.at_ms(ONLINE_MS)
        await stage.begin("cut p1 ba")
        await stage.for_ms(20_000)

    trace = execute(in_containers(*crossed(), rate_per_s=5), script)

    stored = trace.select("messages", event="stored", topic="orders", after_ms=ONLINE_MS + 100)
    assert {row.node for row in stored} == {"bb"}
