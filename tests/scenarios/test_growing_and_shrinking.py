"""A cluster that grows by brokers and nameservers, and shrinks, by acts of an administrator."""

from pathlib import Path

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.analysis.judge import broken, judge_run
from emulator.run import run_scenario
from emulator.spec import SpecError, from_dict, load, loads, to_dict
from emulator.spec.model.scenario import Scenario
from emulator.testing import Stage, Trace, execute
from emulator.trace.run_directory import open_run
from nodes.protocol.codes import RequestCode
from support.every_case import each_case
from support.mistakes import only_mistake

EXAMPLE = Path(__file__).parents[2] / "examples" / "growing_and_shrinking.toml"
FILE = """
[scenario]
name = "growing"
run_for_s = 300
[[nameserver]]
name = "ns-1"
[[nameserver]]
name = "ns-2"
added_later = true
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
added_later = true
[[broker]]
name = "broker-c"
container = "box"
[[broker]]
name = "broker-d"
container = "box"
added_later = true
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
[[producer]]
group = "p"
topic = "orders"
"""
REGISTER, UNREGISTER = int(RequestCode.REGISTER_BROKER), int(RequestCode.UNREGISTER_BROKER)


def growing(*lines: str) -> Scenario:
    """Acts at 30 s, 60 s, 90 s, ..."""
    acts = tuple(TimedAct(f"act-{i}", act_of(line), 30_000 * i) for i, line in enumerate(lines, 1))
    return attrs.evolve(loads(FILE, "growing.toml"), acts=acts)


def registered_at_s(trace: Trace, node: str, dst: str = "ns-1") -> list[int]:
    return [round(row.at_ms / 1_000) for row in trace.select("rpc", src=node, dst=dst, code=REGISTER, kind="request")]


def events(trace: Trace, node: str) -> list[tuple[int, str]]:
    rows = trace.select("lifecycle", node=node)
    return [(int(row.at_ms) // 1_000, row.event) for row in rows]


def test_nodes_that_are_added_later_do_not_run_and_nobody_waits_for_them():
    trace = execute(growing(), for_ms=40_000)
    assert not any(events(trace, name) for name in ("ns-2", "broker-b", "broker-d"))
    assert registered_at_s(trace, "broker-a", "ns-2") == []
    assert trace.select("messages", event="consumed", client_id="c1") or trace.select("messages", event="stored")


def test_a_broker_that_starts_registers_without_topics_of_the_cluster_until_somebody_creates_them():
    trace = execute(growing("start-node broker-b", "update-topic orders queues 4 on broker-b"), for_ms=120_000)
    assert registered_at_s(trace, "broker-b")[0] == 30
    stored = [row.at_ms for row in trace.select("messages", event="stored", node="broker-b")]
    assert stored
    assert 60_000 < min(stored) < 95_000


def test_a_broker_that_is_shut_down_unregisters_and_stays_down_also_when_a_fault_ends():
    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        stop = await stage.begin("stop broker-a")
        await stage.at_ms(50_000)
        await stage.end(stop)
        await stage.at_ms(80_000)

    trace = execute(growing("shutdown-node broker-a"), script)
    assert trace.select("rpc", src="broker-a", code=UNREGISTER, kind="request")
    assert [event for at_s, event in events(trace, "broker-a") if at_s >= 30] == ["stopping", "stopped"]


def test_a_node_that_was_shut_down_starts_again_and_one_that_runs_does_not():
    lines = ("shutdown-node broker-a", "start-node broker-a", "start-node broker-a", "shutdown-node broker-b")
    trace = execute(growing(*lines), for_ms=150_000)
    assert [event for at_s, event in events(trace, "broker-a") if at_s >= 30] == [
        *("stopping", "stopped", "started", "ready"),
    ]
    failed = [row.detail for row in trace.select("lifecycle", event="command_failed")]
    assert ["broker-a has been started already" in failed[0], "broker-b has not been started" in failed[1]] == [
        True
    ] * 2


def test_what_a_fault_keeps_down_starts_when_the_fault_ends():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        kill = await stage.begin("kill broker-b")
        await stage.at_ms(70_000)
        await stage.end(kill)
        await stage.at_ms(80_000)

    trace = execute(growing("start-node broker-b"), script)
    assert events(trace, "broker-b")[0] == (70, "started")


def test_a_machine_of_a_node_that_is_added_later_may_lose_its_power_twice():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        offs = [await stage.begin("power-off broker-b") for _ in range(2)]
        await stage.at_ms(40_000)
        for off in offs:
            await stage.end(off)
        await stage.at_ms(50_000)

    assert events(execute(growing("start-node broker-b"), script), "broker-b")[0] == (40, "started")


def test_a_nameserver_that_starts_is_asked_by_acts_and_one_that_was_shut_down_is_not():
    wipe = "wipe-write-perm broker-a"
    trace = execute(growing(wipe, "start-node ns-2", wipe, "shutdown-node ns-1", wipe), for_ms=200_000)
    code = int(RequestCode.WIPE_WRITE_PERM_OF_BROKER)
    asked = [(int(row.at_ms) // 30_000, row.dst) for row in trace.select("rpc", code=code, kind="request")]
    assert asked == [(1, "ns-1"), (3, "ns-1"), (3, "ns-2"), (5, "ns-2")]
    assert len(trace.select("lifecycle", event="command_failed")) == 0


def test_a_container_adds_and_removes_its_brokers_as_mqadmin_asks_it():
    trace = execute(growing("add-broker broker-d", "remove-broker broker-c", "add-broker broker-d"), for_ms=120_000)
    assert events(trace, "broker-d") == [(30, "started"), (30, "ready")]
    assert [event for at_s, event in events(trace, "broker-c") if at_s >= 60] == ["stopped"]
    requests = [(row.request, row.node) for row in trace.select("admin")]
    assert requests == [("ADD_BROKER", "box"), ("REMOVE_BROKER", "box")]
    (failed,) = trace.select("lifecycle", event="command_failed")
    assert "already" in failed.detail.lower()


def test_a_scenario_with_nodes_that_are_added_later_is_the_same_after_it_was_written():
    made = growing("start-node broker-b")
    assert from_dict(to_dict(made)) == made
    assert made.topics[0].brokers == ("broker-a", "broker-c")


@each_case(
    ("old", "new", "reported"),
    [
        (
            "",
            '[[admin]]\ndo = "start-node c1"\nat_s = 30\n',
            'admin[0].do: unknown nameserver, broker or container "c1"',
        ),
        (
            "",
            '[[admin]]\ndo = "start-node broker-d"\nat_s = 30\n',
            "admin[0].do: expected a process, not a part of one: add-broker and remove-broker do brokers of containers",
        ),
        (
            "",
            '[[admin]]\ndo = "add-broker broker-b"\nat_s = 30\n',
            "admin[0].do: expected a broker of a container: start-node and shutdown-node do this one",
        ),
        (
            'name = "broker-b"\n',
            'name = "broker-b"\nstart_after_s = 5\n',
            "broker[1].start_after_s: expected only one of added_later and start_after_ms",
        ),
        (
            '[[nameserver]]\nname = "ns-1"\n',
            "",
            "nameserver[0].added_later: expected a nameserver that runs at the start: all are added later",
        ),
        (
            "",
            (
                '[[fault]]\ndo = "suspend broker-b"\nat_s = 30\nfor_s = 5\n'
                '[[admin]]\ndo = "start-node broker-b"\nat_s = 60\n'
            ),
            "fault[0].at_s: expected an instant not before 60000 ms, the earliest start of broker-b",
        ),
    ],
)
def test_what_cannot_be_started_is_one_line(old, new, reported):
    text = FILE.replace(old, new) if old else FILE + new
    with pytest.raises(SpecError) as caught:
        loads(text, "growing.toml")
    assert reported in only_mistake(caught.value)


def test_the_example_grows_and_shrinks_and_breaks_no_rule(tmp_path):
    scenario = load(EXAMPLE)
    (producer,) = scenario.producers
    few = attrs.evolve(scenario, producers=(attrs.evolve(producer, rate_per_s=4),))
    result = run_scenario(few, runs=tmp_path)
    assert set(broken(judge_run(open_run(result.path)))) == set()
