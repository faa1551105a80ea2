"""Strategies that are no strategies of RocketMQ, at work in a cluster."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import attrs
import pytest

from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.bundled import example
from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import GROUP, RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from support.own_code import OWN, OWN_CODE


def named(strategy, **options):
    return ConsumerConfig(allocate_message_queue_strategy=strategy, **options)


def scenario_of(**parts):
    return attrs.evolve(a_scenario(**parts), code=OWN_CODE)


def warnings(path, event):
    lines = (json.loads(line) for line in (path / "log.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


def test_a_function_of_the_users_own_allocates_the_queues():
    trace = execute(scenario_of(consumers=consumer_group(2, named(OWN + "turned")), queues=4), for_ms=45_000)

    assert trace.owners() == {("broker-a", i): ["c2" if i % 2 == 0 else "c1"] for i in range(4)}


def test_a_hash_function_of_the_users_own_places_members_and_queues():
    hashed = named("CONSISTENT_HASH", hash_function=OWN + "last_digits", virtual_node_cnt=2)
    by_own = execute(scenario_of(consumers=consumer_group(3, hashed), queues=8), for_ms=45_000).owners()
    by_md5 = execute(
        scenario_of(consumers=consumer_group(3, named("CONSISTENT_HASH")), queues=8), for_ms=45_000
    ).owners()

    assert all(len(owners) == 1 for owners in by_own.values())
    assert by_own != by_md5


def test_while_a_strategy_throws_members_keep_their_queues_and_try_again_every_second(tmp_path):
    own = named(OWN + "throws_for_three")
    groups = (
        ConsumerGroupSpec(GROUP, ("c1", "c2"), (TOPIC,), own),
        ConsumerGroupSpec(GROUP, ("c3",), (TOPIC,), own),
    )

    async def script(stage: Stage) -> None:
        await stage.kill("c3")
        await stage.at_ms(60_000)
        stage.start("c3")
        await stage.at_ms(120_000)

    trace = execute(scenario_of(consumers=groups), script)

    assert {tuple(owners) for owners in trace.owners(59_000).values()} == {("c1",), ("c2",)}
    assert trace.owners() == trace.owners(59_000)
    passes = trace.passes("c3", after_ms=65_000)
    assert {round(after - before, -2) for before, after in pairwise(passes)} == {1_000}

    path = run_scenario(scenario_of(consumers=groups, run_for_ms=30_000), runs=tmp_path).path
    lines = warnings(path, "allocate message queue exception")
    assert {(line["strategy"], line["error"]) for line in lines} == {
        (OWN + "throws_for_three", "LookupError: three are\\ntoo many")
    }


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("exits", "SystemExit: 3"),
        ("texts", "it gave 'MessageQueue [topic=orders"),
    ],
)
def test_whatever_a_strategy_throws_or_gives_the_log_says_it(function, error, tmp_path):
    scenario = scenario_of(consumers=consumer_group(1, named(OWN + function)), run_for_ms=10_000)
    manifest = run_scenario(scenario, runs=tmp_path)

    lines = warnings(manifest.path, "allocate message queue exception")
    assert [line for line in lines if line["topic"] == TOPIC and not line["error"].startswith(error)] == []
    assert lines
    assert manifest.manifest["crashes"] == []


def test_foreign_queues_are_taken_as_they_are_and_the_log_names_the_strategy(tmp_path):
    topics = (TopicSpec(TOPIC, ("broker-a",), 4), TopicSpec("others", ("broker-a",), 1))
    groups = (ConsumerGroupSpec(GROUP, ("c1", "c2"), (TOPIC,), named(OWN + "foreign")),)
    scenario = scenario_of(topics=topics, consumers=groups, run_for_ms=60_000)
    trace = execute(scenario, for_ms=60_000)

    taken, left = (trace.select("ownership", topic="others", event=event) for event in ("acquired", "dropped"))
    # A pass ends with dropping queues of topics without subscription, and the next one, a second later, takes it again.
    assert len(taken) >= 40
    assert len(taken) - len(left) in (0, 1)
    assert {row.node for row in taken} == {"c1"}
    assert {tuple(owners) for owners in trace.owners().values()} == {("c1",), ("c2",)}

    (line, *_) = warnings(run_scenario(scenario, runs=tmp_path).path, "a strategy gave queues that it was not given")
    assert line["strategy"] == OWN + "foreign"
    assert "brokerName=broker-z" in line["queues"]
    assert "topic=others" in line["queues"]


def sums(trace, topics):
    """How many queues of all topics each consumer owns."""
    held = {}
    for topic in topics:
        for owners in trace.owners(topic=topic).values():
            (owner,) = owners
            held[owner] = held.get(owner, 0) + 1
    return [held[name] for name in sorted(held)]


def test_kafkas_round_robin_is_even_in_sum_where_avg_gives_the_first_members_more():
    """As RocketMQ's users are reported not to subscribe to several topics with one group."""
    names = tuple(f"t{number}" for number in range(4))
    topics = tuple(TopicSpec(name, ("broker-a",), 4) for name in names)

    def held(strategy):
        groups = (ConsumerGroupSpec(GROUP, ("c1", "c2", "c3"), names, named(strategy)),)
        trace = execute(scenario_of(topics=topics, consumers=groups), for_ms=45_000)
        # Retry topics are allocated alone.
        assert sums(trace, [RETRY]) == [1]
        return sums(trace, names)

    assert held("AVG") == [8, 4, 4]
    assert held("KAFKA_ROUND_ROBIN") == [6, 5, 5]


def test_a_sticky_member_whose_brokers_do_not_know_its_strategy_gets_no_queue():
    trace = execute(scenario_of(consumers=consumer_group(1, named("STICKY", client_rebalance=False))), for_ms=30_000)

    assert trace.select("ownership") == []


def test_an_ordered_consumer_allocates_itself_and_cannot_be_sticky(tmp_path):
    consumer = named("STICKY", client_rebalance=False, consume_orderly=True)
    path = run_scenario(scenario_of(consumers=consumer_group(1, consumer), run_for_ms=10_000), runs=tmp_path).path

    (line, *_) = warnings(path, "allocate message queue exception")
    assert (line["strategy"], line["error"].partition(":")[0]) == ("STICKY", "STICKY is not supported by clients")


def test_the_example_of_an_own_strategy_allocates_as_it_says():
    scenario = load(Path(str(example("strategies"))) / "big_first.toml")

    assert check(scenario) == ()
    trace = execute(scenario, for_ms=45_000)
    assert Counter(owner for (owner,) in trace.owners().values()) == {"c1": 6, "c2": 3, "c3": 3}
