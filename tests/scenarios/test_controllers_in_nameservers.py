"""Controllers in the processes of nameservers: one process, one death, and what both of its parts do meanwhile."""

import json

import pytest

from emulator.analysis.judge import judge_run
from emulator.machine.power import PowerState
from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.testing import execute
from emulator.testing.trace import Trace
from emulator.trace.run_directory import open_run
from faults.target import CONTROLLERS, Lead
from nodes.config.controller import CONTROLLER_PORT
from nodes.protocol import headers_controller as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke

EXAMPLE = "examples/controller/in_nameservers.toml"
NAMES = ("ns-1", "ns-2", "ns-3")
TEXT = """
[scenario]
name = "in-nameservers"
run_for_s = 150
preset = "controller"
[nameserver]
count = 3
options = { enableControllerInNamesrv = true, electMasterMaxRetryCount = 4 }
[[broker]]
name = "ba"
replicas = 3
[[topic]]
name = "orders"
queues = 4
"""


def leaders(stage):
    return stage.operator._targets.leads(Lead.LEADER, CONTROLLERS)


def newest(trace, kind, node, **wanted):
    """What a node believes last of a kind."""
    return json.loads(trace.select("beliefs", kind=kind, node=node, **wanted)[-1].value)


def masters(trace, nodes=NAMES):
    """The address under id 0 in the last route of each nameserver."""
    return {node: newest(trace, "route", node, subject="orders")["ba"]["addrs"].get("0") for node in nodes}


def replaced_at_s(trace):
    """When a controller first knew of a second master."""
    return min(row.at_s for row in trace.select("beliefs", kind="sync_state") if json.loads(row.value)["epoch"] == 2)


def led_at_s(trace, after_s):
    """When another controller served as leader."""
    rows = trace.select("beliefs", kind="controller_role", after_ms=after_s * 1_000)
    return next(row.at_s for row in rows if json.loads(row.value)["serves"])


def killed_in(trace):
    """The node that the target "leader of controllers" meant."""
    (begin,) = trace.select("faults", event="begin", fault_id="leader-away")
    return begin.subject


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    trace = Trace()
    run = run_scenario(load(EXAMPLE), runs=tmp_path_factory.mktemp("example"), listeners=(trace.note,))
    return trace, judge_run(open_run(run.path))


def test_when_the_process_that_leads_dies_another_leads_and_replaces_the_master_that_died_meanwhile(example):
    trace, report = example
    others = [node for node in NAMES if node != killed_in(trace)]

    assert len(others) == 2
    assert 64 < led_at_s(trace, 60) < replaced_at_s(trace) < 80
    assert newest(trace, "controller_leader", others[0])["term"] > 2
    assert report["elections"] == ()
    assert sum(row.lost for row in report["losses"]) == 0


def test_the_nameservers_that_live_know_at_once_that_the_master_is_gone_and_after_the_election_the_new_one(example):
    trace, _ = example
    for node in (item for item in NAMES if item != killed_in(trace)):
        rows = trace.select("beliefs", kind="route", node=node, subject="orders", after_ms=60_500, until_ms=90_000)
        shown = [(row.at_s, json.loads(row.value)["ba"]["addrs"].get("0")) for row in rows]
        (gone_s, no_node), (back_s, master) = shown
        assert gone_s < 61.1
        assert no_node is None
        assert master not in (None, "127.1.2.1:10911")
        assert replaced_at_s(trace) < back_s < replaced_at_s(trace) + 0.2
    assert len(set(masters(trace).values())) == 1, "the one that came back knows the new master, too"


def test_both_parts_of_a_process_start_die_and_come_back_together():
    seen = {}

    async def both_answer(stage, caller, node):
        """Whether the nameserver, and the controller of a node, answer within a second."""
        ports = ((9_876, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER), (CONTROLLER_PORT, 1_005))
        answered = []
        for port, code in ports:
            try:
                await invoke(caller.node.rpc, f"{stage.host(node).ip}:{port}", RequestCode(code), timeout_ms=1_000)
                answered.append(True)
            except RemotingError:
                answered.append(False)
        return tuple(answered)

    async def script(stage):
        caller = await stage.probe()
        await stage.at_ms(20_000)
        (node,) = leaders(stage)
        before = await both_answer(stage, caller, node)
        await stage.kill(node)
        dead = await both_answer(stage, caller, node)
        await stage.at_ms(40_000)
        (other,) = leaders(stage)
        stage.start(node)
        held = stage.node(node).controller.state.sync
        await stage.for_ms(100)
        back = await both_answer(stage, caller, node)
        await stage.host(other).suspend()
        frozen = await both_answer(stage, caller, other)
        seen.update(before=before, dead=dead, back=back, frozen=frozen, node=node, other=other, held=dict(held))
        await stage.host(other).resume()
        await stage.at_ms(80_000)
        seen["sync"] = {item: stage.node(item).controller.state.sync["ba"].sync_state_set for item in NAMES}
        tables = {item: stage.node(item).nameserver.routes for item in NAMES}
        seen["routes"] = {item: dict(table.member_group("", "ba").broker_addrs) for item, table in tables.items()}

    trace = execute(loads(TEXT, "text"), script)

    assert seen["before"] == seen["back"] == (True, True)
    assert seen["dead"] == seen["frozen"] == (False, False)
    assert seen["node"] != seen["other"]
    events = [row.event for row in trace.select("lifecycle", node=seen["node"])]
    assert events == ["started", "ready", "killed", "started", "ready"]
    assert seen["held"] == {}, "what was committed is applied when a leader says so"
    assert seen["sync"] == dict.fromkeys(NAMES, (1, 2, 3))
    assert len(seen["routes"]["ns-1"]) == 3
    assert seen["routes"]["ns-1"] == seen["routes"]["ns-2"] == seen["routes"]["ns-3"]


def test_a_frozen_process_holds_up_the_election_and_then_the_registration_of_the_new_master():
    """A registration waits 24 s for a nameserver that is silent, and the next one of the broker waits for it."""
    seen = {}

    async def script(stage):
        await stage.at_ms(30_000)
        (frozen,) = leaders(stage)
        await stage.host(frozen).suspend()
        await stage.at_ms(31_000)
        await stage.kill("ba")
        await stage.at_ms(70_000)
        seen.update(frozen=frozen, leader=leaders(stage), asleep=masters(stage.trace))
        await stage.host(frozen).resume()
        await stage.at_ms(100_000)
        seen.update(awake=masters(stage.trace), leader_later=leaders(stage))

    trace = execute(loads(TEXT, "text"), script)
    frozen, old = seen["frozen"], "127.1.2.1:10911"
    item, other = (node for node in NAMES if node != frozen)
    routes = trace.select("beliefs", kind="route", node=item, subject="orders", after_ms=32_000)
    reported_s = next(row.at_s for row in routes if "0" in json.loads(row.value)["ba"]["addrs"])

    assert seen["leader"] == seen["leader_later"]
    assert seen["leader"][0] in (item, other)
    assert 35 < replaced_at_s(trace) < 50
    assert 15 < reported_s - replaced_at_s(trace) < 24
    assert seen["asleep"][frozen] == old
    assert seen["asleep"][item] == seen["asleep"][other]
    assert seen["asleep"][item] not in (None, old)
    assert seen["awake"] == dict.fromkeys(NAMES, seen["asleep"][item])
    assert newest(trace, "controller_leader", frozen) == newest(trace, "controller_leader", item)


def test_controllers_are_a_pool_of_faults_and_the_nodes_are_the_nameservers():
    seen = []

    async def script(stage):
        await stage.at_ms(5_000)
        await stage.begin("suspend controllers")
        seen.extend(stage.host(node).power_state for node in NAMES)

    execute(loads(TEXT, "text"), script)
    assert seen == [PowerState.SUSPENDED] * 3


def test_controllers_answer_operators_on_their_own_port_and_nameservers_do_not_answer_for_them():
    seen = {}

    async def script(stage):
        caller = await stage.probe()
        await stage.at_ms(20_000)
        (leader,) = leaders(stage)
        address = f"{stage.host(leader).ip}:{CONTROLLER_PORT}"

        async def ask(code, body=None):
            return await invoke(caller.node.rpc, address, code, None, body, timeout_ms=3_000)

        answer = await ask(RequestCode.CONTROLLER_GET_METADATA_INFO)
        metadata = decode_header(headers.GetMetaDataResponseHeader, answer.ext_fields)
        wrong = await caller.ask(leader, RequestCode.CONTROLLER_GET_METADATA_INFO)
        seen.update(
            leads=(metadata.controller_leader_address == address, metadata.is_leader),
            peers=metadata.peers,
            wrong=wrong.code,
        )
        await ask(RequestCode.UPDATE_CONTROLLER_CONFIG, b"notifyBrokerRoleChanged=false\n")
        await caller.ask(leader, RequestCode.UPDATE_NAMESRV_CONFIG, None, b"electMasterMaxRetryCount=5\n")
        seen["before"] = (await ask(RequestCode.GET_CONTROLLER_CONFIG)).body.splitlines()
        await stage.kill(leader)
        stage.start(leader)
        await stage.for_ms(1_000)
        seen["after"] = (await ask(RequestCode.GET_CONTROLLER_CONFIG)).body.splitlines()

    execute(loads(TEXT, "text"), script)

    assert seen["leads"] == (True, True)
    assert seen["peers"] == "n0:127.1.1.1:9878;n1:127.1.1.2:9878;n2:127.1.1.3:9878;"
    assert seen["wrong"] == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert {b"electMasterMaxRetryCount=4", b"notifyBrokerRoleChanged=false"} <= set(seen["before"])
    assert {b"electMasterMaxRetryCount=5", b"notifyBrokerRoleChanged=true"} <= set(seen["after"])
