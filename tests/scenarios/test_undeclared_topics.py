"""Topics that no broker has at the start, and clients that come later."""

import json
from pathlib import Path

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec import SpecError, load, loads
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.spec.refusals.start_checks import earliest_starts_ms
from emulator.testing import Trace, a_scenario, broker_groups, execute
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.config import BrokerConfig
from support.every_case import each_case

EXAMPLE = Path(__file__).parents[2] / "examples" / "undeclared_topic.toml"
NEWS = "news"


def undeclared(config: BrokerConfig | None = None, *acts: TimedAct):
    topics = (TopicSpec(NEWS, ("broker-a", "broker-b"), created_later=True),)
    brokers = broker_groups("broker-a", "broker-b", config=config)
    return attrs.evolve(a_scenario(nameservers=1, brokers=brokers, topics=topics), acts=acts)


def routes(trace: Trace, node: str) -> list[dict[str, object]]:
    """Broker -> queues in each route of the topic that a client has had."""
    rows = trace.select("beliefs", kind=BeliefKind.ROUTE, node=node, subject=NEWS)
    return [{name: entry["queues"] for name, entry in json.loads(row.value).items()} for row in rows]


def brokers_of(trace: Trace, from_ms: float, until_ms: float) -> set[str]:
    rows = trace.select("messages", event=MessageEvent.STORED, topic=NEWS)
    return {row.broker_name for row in rows if from_ms <= row.at_ms < until_ms}


@pytest.fixture(scope="module")
def example() -> Trace:
    return execute(load(EXAMPLE), for_ms=240_000)


def test_the_first_message_creates_the_topic_at_one_broker_and_all_later_ones_go_there(example):
    (first,) = brokers_of(example, 0, 60_000)
    assert brokers_of(example, 60_000, 150_000) == {first}
    assert routes(example, "writer")[0] == {first: [4, 4, 6]}


def test_members_beyond_the_queues_of_that_broker_get_none(example):
    owners = {row.node for row in example.select("ownership", topic=NEWS) if row.at_ms < 150_000}
    assert len(owners) == 4


def test_an_administrator_who_creates_it_at_both_brokers_ends_that(example):
    assert routes(example, "writer")[-1] == {"broker-a": [4, 4, 6], "broker-b": [4, 4, 6]}
    assert brokers_of(example, 185_000, 240_000) == {"broker-a", "broker-b"}
    owners = {row.node for row in example.select("ownership", topic=NEWS)}
    assert len(owners) == 6


def test_no_broker_has_it_at_the_start():
    async def script(stage):
        await stage.at_ms(10_000)
        assert NEWS not in stage.cluster.topics_of_brokers()

    execute(undeclared(), script)


def test_a_broker_that_may_not_create_it_refuses_the_message():
    act = TimedAct("try", act_of("send-message news hello"), 10_000)
    trace = execute(undeclared(BrokerConfig(auto_create_topic_enable=False), act), for_ms=20_000)
    (failed,) = trace.select("lifecycle", event="command_failed")
    assert failed.detail == "try: failed: No route info of this topic: news; done at no node"


def late(**given):
    made = a_scenario(consumers=1, rate_per_s=5)
    group = attrs.evolve(made.consumers[0], start_after_ms=40_000)
    more = (attrs.evolve(made.producers[0], name="p2", group="pg2", start_after_ms=20_000),)
    return attrs.evolve(made, consumers=(group,), producers=(*made.producers, *more), **given)


def test_clients_come_later_and_the_cluster_does_not_wait_for_them():
    async def script(stage):
        assert stage.now_ms < 5_000
        await stage.at_ms(60_000)

    trace = execute(late(), script)
    started = {row.node: row.at_ms for row in trace.select("lifecycle", event="started")}
    assert started["p1"] < 1_000
    assert 20_000 <= started["p2"] < 21_000
    assert 40_000 <= started["c1"] < 41_000
    assert min(row.at_ms for row in trace.select("messages", event=MessageEvent.CONSUMED)) > started["c1"]


def test_a_fault_may_hit_a_late_client_and_its_earliest_start_is_known():
    assert earliest_starts_ms(late())["c1"] == 40_000

    async def script(stage):
        await stage.at_ms(10_000)
        fault = await stage.begin("kill c1")
        await stage.at_ms(50_000)
        assert not stage.trace.select("lifecycle", node="c1")
        await stage.end(fault)
        await stage.at_ms(55_000)

    trace = execute(late(), script)
    (started,) = trace.select("lifecycle", node="c1", event="started")
    assert started.at_ms == 50_000


FILE = """
[scenario]
name = "late"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "news"
created_later = true
[[consumer]]
group = "g"
topics = ["news"]
{consumer}
[[producer]]
group = "pg"
topic = "news"
{producer}
"""


def test_files_have_these_keys():
    made = loads(FILE.format(consumer="start_after_s = 5", producer="start_after_ms = 1500"), "late.toml")
    assert (made.topics[0].created_later, made.consumers[0].start_after_ms) == (True, 5_000)
    assert made.producers[0].start_after_ms == 1_500


@each_case(
    ("consumer", "producer", "reported"),
    [
        ("start_after_s = 60", "", "consumer[0].start_after_s: expected an instant before the end at 60000 ms"),
        ("", "start_after_s = 99", "producer[0].start_after_s: expected an instant before the end at 60000 ms"),
        ("", "start_after_s = -1", "producer[0].start_after_s: expected seconds >= 0, not -1"),
        (
            '[[consumer]]\ngroup = "h"\ntopics = ["news"]\nshare_process_with = "g"\nstart_after_s = 2',
            "",
            "consumer[1].start_after_s: expected none: it starts with the processes of g",
        ),
        (
            'start_after_s = 1\n[[statefulset]]\ngroup = "g"',
            "",
            "consumer[0].start_after_s: expected none in a StatefulSet: its API server starts the pods",
        ),
    ],
)
def test_a_client_that_cannot_come_later_is_one_line(consumer, producer, reported):
    with pytest.raises(SpecError) as caught:
        loads(FILE.format(consumer=consumer, producer=producer), "late.toml")
    assert any(reported in line for line in caught.value.lines), caught.value.lines


def test_values_without_these_keys_are_as_before():
    assert ConsumerGroupSpec("g", ("c1",), (NEWS,)).start_after_ms == 0
    assert ProducerSpec("p", "pg", NEWS).start_after_ms == 0
