"""Scenario files: what they may say, what is filled in, and back to plain values."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import launch
from emulator.run.run import run_scenario
from emulator.spec import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    SpecError,
    TopicSpec,
    from_dict,
    load,
    loads,
    to_dict,
)
from emulator.testing import execute
from faults.link import Cut, Delay, Loss
from faults.plan import Plan, TimedFault
from faults.process import Kill, PowerOff, Restart, Suspend
from faults.scope import ANY, LinkScope, NodeScope
from nodes.config import BrokerConfig, ConsumerConfig

SMALLEST = """
[scenario]
name = "smallest"
run_for_s = 0.5
[[broker]]
name = "broker-a"
"""

FULL = """
[scenario]
name = "full"
seed = 7
run_for_s = 60
start_spread_s = 0.25
[network]
delay_ms = 2
jitter_ms = 3
[nameserver]
count = 1
options = { scanNotActiveBrokerInterval = 4000 }
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-a"
id = 1
cluster = "north"
options = { broker_heartbeat_interval = 500, forceRegister = false }
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
[[topic]]
name = "bills"
queues = 4
brokers = ["broker-b"]
[[consumer]]
group = "g"
count = 2
topics = ["orders", "bills"]
[[consumer]]
group = "g"
names = ["late"]
topics = ["orders"]
consume_ms = 20
options = { allocateMessageQueueStrategy = "AVG_BY_CIRCLE" }
[[consumer]]
group = "h"
topics = ["bills"]
[[producer]]
group = "p"
topic = "orders"
rate_per_s = 50
[[producer]]
name = "biller"
group = "p"
topic = "bills"
"""


def test_the_smallest_scenario_has_two_nameservers_and_the_defaults():
    scenario = loads(SMALLEST, "smallest.toml")

    assert scenario == Scenario(
        name="smallest",
        seed=1,
        run_for_ms=500,
        start_spread_ms=1_000,
        network=Network(delay_ms=1, jitter_ms=0),
        nameservers=(NameserverSpec("ns-1"), NameserverSpec("ns-2")),
        brokers=(BrokerSpec("broker-a", 0),),
    )


def test_nodes_without_a_name_are_numbered_and_slaves_carry_their_id():
    assert loads(FULL, "full.toml").node_names() == (
        "ns-1",
        "broker-a",
        "broker-a-s1",
        "broker-b",
        "consumer-1",
        "consumer-2",
        "late",
        "consumer-4",
        "producer-1",
        "biller",
    )


def test_a_topic_lies_on_all_brokers_unless_it_says_on_which():
    assert loads(FULL, "full.toml").topics == (
        TopicSpec("orders", ("broker-a", "broker-b"), 8),
        TopicSpec("bills", ("broker-b",), 4),
    )


def test_options_are_understood_in_camel_case_and_in_snake_case():
    slave = loads(FULL, "full.toml").brokers[1]

    assert slave.config == BrokerConfig(broker_heartbeat_interval=500, force_register=False)


def test_clients_start_within_the_time_that_the_file_says():
    assert loads(FULL, "full.toml").start_spread_ms == 250


def test_a_nameserver_may_be_named():
    scenario = loads(SMALLEST + '[[nameserver]]\nname = "alpha"\n', "x")

    assert scenario.nameservers == (NameserverSpec("alpha"),)


def test_every_kind_of_fault_can_be_written_in_a_file():
    text = (
        SMALLEST
        + """
[[fault]]
kind = "cut"
from = "ns-1"
to = "broker-a"
one_way = true
at_s = 0.1
for_s = 0.2
[[fault]]
kind = "loss"
id = "rain"
percent = 20
at_ms = 100
[[fault]]
kind = "delay"
to = "broker-a"
delay_ms = 40
jitter_ms = 5
at_ms = 0
[[fault]]
kind = "kill"
node = "ns-1"
at_ms = 10
for_ms = 10
[[fault]]
kind = "restart"
node = "ns-1"
at_ms = 20
for_ms = 10
[[fault]]
kind = "power_off"
node = "ns-1"
at_ms = 30
for_ms = 10
[[fault]]
kind = "suspend"
node = "ns-1"
at_ms = 40
"""
    )
    node = NodeScope("ns-1")

    assert loads(text, "x").faults.faults == (
        TimedFault("cut-1", Cut(LinkScope("ns-1", "broker-a", one_way=True)), 100, 200),
        TimedFault("rain", Loss(LinkScope(ANY, ANY), 20), 100),
        TimedFault("delay-3", Delay(LinkScope(ANY, "broker-a"), 40, 5), 0),
        TimedFault("kill-4", Kill(node), 10, 10),
        TimedFault("restart-5", Restart(node), 20, 10),
        TimedFault("power_off-6", PowerOff(node), 30, 10),
        TimedFault("suspend-7", Suspend(node), 40),
    )


@pytest.mark.parametrize("begin", [launch, execute, run_scenario])
def test_a_scenario_built_in_python_is_held_to_the_same_rules(begin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario = Scenario(
        name="python",
        run_for_ms=1_000,
        brokers=(BrokerSpec("broker-a"),),
        topics=(TopicSpec("orders", ("broker-a",)),),
        producers=(ProducerSpec("producer-1", "p", "order"),),
    )

    with pytest.raises(SpecError, match=r'^producer\[0\].topic: unknown topic "order"; did you mean "orders"\?$'):
        begin(scenario)

    assert list(tmp_path.iterdir()) == []


def test_plain_values_hold_only_the_options_that_differ():
    tables = to_dict(loads(FULL, "full.toml"))

    assert tables["broker"][0]["options"] == {}
    assert tables["broker"][1]["options"] == {"brokerHeartbeatInterval": 500, "forceRegister": False}
    assert tables["consumer"][1]["options"] == {"allocateMessageQueueStrategy": "AVG_BY_CIRCLE"}


names = st.text("abcdefgh-", min_size=1, max_size=8)
times_ms = st.integers(0, 9_999)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    broker_names = draw(st.lists(names.map("b".__add__), min_size=1, max_size=3, unique=True))
    topic_names = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    percent = st.integers(0, 100)
    scope = st.builds(LinkScope, st.sampled_from(("c-1", "ns-1", ANY)), st.sampled_from(("p-1", ANY)), st.booleans())
    delays = st.builds(Delay, scope, st.integers(0, 100), st.integers(0, 100))
    link_faults = st.one_of(st.builds(Cut, scope), st.builds(Loss, scope, percent), delays)
    kinds = draw(st.lists(link_faults, max_size=4))
    # A process suffers one thing at a time, so there is only one such fault.
    kinds += draw(st.lists(st.sampled_from((Kill, Restart, PowerOff, Suspend)).map(_on_everything), max_size=1))
    for_ms = st.none() | st.integers(1, 9_999)
    return Scenario(
        name=draw(names.map("s".__add__)),
        seed=draw(st.integers(0, 2**63 - 1)),
        run_for_ms=10_000,
        start_spread_ms=draw(times_ms),
        network=Network(draw(times_ms), draw(times_ms)),
        brokers=tuple(BrokerSpec(name, draw(st.integers(0, 3))) for name in broker_names),
        topics=tuple(TopicSpec(name, tuple(broker_names), draw(st.integers(1, 16))) for name in topic_names),
        consumers=(
            ConsumerGroupSpec(
                "g",
                ("c-1", "c-2"),
                tuple(topic_names),
                ConsumerConfig(pull_batch_size=draw(st.integers(1, 1024))),
                draw(times_ms),
            ),
        ),
        producers=(ProducerSpec("p-1", "p", topic_names[0], draw(st.integers(1, 1_000))),),
        faults=Plan(tuple(TimedFault(f"f{i}", kind, draw(times_ms), draw(for_ms)) for i, kind in enumerate(kinds))),
    )


def _on_everything(kind):
    return kind(NodeScope(ANY))


@given(scenarios())
def test_the_same_scenario_is_built_again_from_the_plain_values_of_a_manifest(scenario):
    for_manifest = json.dumps(to_dict(scenario))

    assert from_dict(json.loads(for_manifest)) == scenario


def test_the_file_of_the_half_seen_consumer_says_what_its_comments_promise():
    scenario = load(Path(__file__).parents[2] / "examples" / "half_seen_consumer.toml")

    assert scenario.run_for_ms == 600_000
    assert [timed.describe() for timed in scenario.faults.faults] == [
        "60000 ms +300000 ms: cut consumer-2 -> broker-b",
        "390000 ms +60000 ms: suspend consumer-3",
        "470000 ms +60000 ms: lose 20 % on all links",
    ]
    assert [(topic.name, topic.queues, topic.brokers) for topic in scenario.topics] == [
        ("orders", 8, ("broker-a", "broker-b")),
        ("%RETRY%order-processors", 1, ("broker-a", "broker-b")),
    ]
    assert scenario.consumers[0].names == ("consumer-1", "consumer-2", "consumer-3", "consumer-4")
    assert scenario.producers[0].rate_per_s == 50
