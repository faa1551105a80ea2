"""Shrinking with a model of what fails: what stays, what goes, and how many runs it takes."""

import json

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.shrinking import NothingToShrinkError, ShrinkingInterrupted, shrink
from emulator.spec import from_dict, loads, to_dict
from emulator.testing import a_scenario
from fuzz.random_scenario import random_tables, scenario_of

FAULTS = "\n".join(
    f'[[fault]]\nid = "f{number}"\ndo = "cut c1 broker-a"\nat_s = {number + 1}\nfor_s = {20 + number}'
    for number in range(20)
)
LARGE = loads(
    f"""
[scenario]
name = "large"
seed = 7
run_for_s = 120
start_spread_ms = 500
[network]
delay_ms = 5
[[broker]]
name = "broker-a"
options = {{ brokerHeartbeatInterval = 2000 }}
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 8
[[topic]]
name = "bills"
[[consumer]]
group = "g"
names = ["c1", "c2", "c3", "c4"]
topics = ["orders", "bills"]
[[producer]]
name = "p1"
group = "pg"
topic = "orders"
rate_per_s = 50
{FAULTS}
""",
    "large.toml",
)


class Model:
    """Fails whenever a condition holds; remembers what was run."""

    def __init__(self, condition):
        self.condition = condition
        self.case_results = []

    def __call__(self, scenario):
        self.case_results.append(json.dumps(to_dict(scenario)))
        return self.condition(scenario)


def ids(scenario):
    return [timed.id for timed in scenario.faults.faults]


def needs(*fault_ids):
    return Model(lambda scenario: {*fault_ids} <= {*ids(scenario)})


@pytest.mark.parametrize("pair", [("f0", "f19"), ("f7", "f8"), ("f3", "f12")])
def test_a_planted_pair_among_twenty_faults_is_found_exactly(pair):
    fails = needs(*pair)
    found = shrink(LARGE, fails)

    assert ids(found.scenario) == [*pair]
    assert found.is_minimal
    assert found.runs == len(fails.case_results) == len(dict.fromkeys(fails.case_results))  # none is run twice
    assert f"18 of 20 [[fault]]: {', '.join(f'f{n}' for n in range(20) if f'f{n}' not in pair)}" in found.removed


def test_the_causes_in_a_trace_save_runs_and_do_not_change_what_is_found():
    def runs(**named):
        seen = []
        found = shrink(LARGE, needs("f3", "f12"), progress=seen.append, **named)
        return sum(execute.looks_at == "faults" for execute in seen), found.scenario

    hinted, small = runs(likely=("f12", "f3", "no-such-fault"))
    blind, same = runs()
    misled, too = runs(likely=("f1", "f2"))

    assert small == same == too
    assert hinted <= 8
    assert hinted < blind / 4
    assert misled <= blind + 5


def test_all_that_does_not_matter_goes():
    found = shrink(LARGE, needs("f3"))
    small = found.scenario

    assert (len(small.nameservers), len(small.brokers), len(small.topics), len(small.producers)) == (1, 1, 1, 0)
    assert [group.names for group in small.consumers] == [("c1",)]  # the fault names it
    assert small.brokers[0].config == a_scenario().brokers[0].config
    assert small.network == a_scenario().network
    assert small.seed == 7
    assert small.run_for_ms <= 6_000  # the fault begins at 4 s
    assert small.faults.faults[0].for_ms == 1


def test_a_fault_that_can_go_only_without_a_node_goes_in_the_next_round():
    def condition(scenario):
        return "f3" in ids(scenario) and ("f5" in ids(scenario) or not scenario.producers)

    found = shrink(LARGE, Model(condition))

    assert ids(found.scenario) == ["f3"]
    assert found.scenario.producers == ()


def test_durations_numbers_and_lengths_are_made_as_small_as_the_failure_allows():
    def condition(scenario):
        timed = next((fault for fault in scenario.faults.faults if fault.id == "f10"), None)
        return (
            timed is not None
            and timed.for_ms >= 5_000
            and scenario.run_for_ms >= 45_000
            and any(topic.queues >= 3 for topic in scenario.topics)
            and sum(len(group.names) for group in scenario.consumers) >= 2
        )

    small = shrink(LARGE, Model(condition)).scenario

    assert small.faults.faults[0].for_ms == 5_000  # 30, 15, 7, and then by less
    assert 45_000 <= small.run_for_ms < 45_000 * 17 / 16 + 1_000
    assert [topic.queues for topic in small.topics] == [3]
    assert sum(len(group.names) for group in small.consumers) == 2


def test_a_fault_that_lasts_until_the_end_gets_an_end():
    timed = attrs.evolve(LARGE.faults.faults[0], for_ms=None)
    endless = attrs.evolve(LARGE, faults=attrs.evolve(LARGE.faults, faults=(timed,)))

    assert shrink(endless, needs("f0")).scenario.faults.faults[0].for_ms == 1


def test_of_a_nemesis_single_faults_are_left():
    tables = to_dict(attrs.evolve(LARGE, faults=attrs.evolve(LARGE.faults, faults=())))
    nemesis = {
        "id": "n",
        "kind": "kill",
        "node": "c2",
        "every_ms": 5_000,
        "min_ms": 100,
        "max_ms": 900,
        "from_ms": 0,
    }
    given_ = from_dict(tables | {"nemesis": [nemesis]})
    drawn = [timed.id for timed in given_.plan().faults]
    found = shrink(given_, lambda scenario: "n-3" in [timed.id for timed in scenario.plan().faults])

    assert len(drawn) > 10
    assert ids(found.scenario) == ["n-3"]
    assert found.scenario.nemeses == ()
    assert found.removed[0].startswith(f"{len(drawn) - 1} of {len(drawn)} [[fault]]: n-1, n-2, n-4")


def test_a_nemesis_whose_faults_alone_do_not_fail_stays():
    tables = to_dict(LARGE)
    nemesis = {
        "id": "n",
        "kind": "kill",
        "node": "c2",
        "every_ms": 5_000,
        "min_ms": 100,
        "max_ms": 900,
        "from_ms": 0,
    }
    found = shrink(from_dict(tables | {"nemesis": [nemesis]}), lambda scenario: bool(scenario.nemeses))

    assert [nemese.id for nemese in found.scenario.nemeses] == ["n"]
    assert ids(found.scenario) == []


def test_when_the_runs_are_used_up_the_smallest_so_far_is_the_result():
    fails = needs("f3", "f12")
    found = shrink(LARGE, fails, runs_max=10)

    assert found.runs == len(fails.case_results) == 10
    assert not found.is_minimal
    assert {"f3", "f12"} <= {*ids(found.scenario)}
    assert len(ids(found.scenario)) < 20


def test_each_run_is_reported_with_the_smallest_so_far():
    lines = []
    found = shrink(LARGE, needs("f3", "f12"), progress=lines.append)

    assert [execute.runs for execute in lines] == [*range(1, found.runs + 1)]
    assert [*dict.fromkeys(execute.looks_at for execute in lines)] == [
        "all", "faults", "durations", "nodes", "settings", "length",
    ]  # fmt: skip
    assert {execute.runs_max for execute in lines} == {300}
    assert lines[0].failed
    assert lines[-1].smallest == found.scenario
    sizes = [len(ids(execute.smallest)) for execute in lines]
    assert sizes == sorted(sizes, reverse=True)


def test_what_does_not_fail_is_refused():
    with pytest.raises(NothingToShrinkError, match="large, seed 7: it does not fail, so nothing can be left out"):
        shrink(LARGE, lambda _: False)


def test_what_cannot_be_smaller_loses_nothing():
    smallest = shrink(LARGE, needs("f3")).scenario
    again = shrink(smallest, needs("f3"))

    assert again.scenario == smallest
    assert again.removed == ()


@settings(max_examples=20)
@given(st.integers(0, 300), st.data())
def test_random_scenarios_shrink_to_what_is_needed_and_every_run_is_valid(seed, data):
    given_ = scenario_of(random_tables(seed))
    all_ids = [timed.id for timed in given_.plan().faults]
    needed = data.draw(st.sets(st.sampled_from(all_ids), max_size=2)) if all_ids else {*()}
    consumers = data.draw(st.integers(0, min(2, sum(len(group.names) for group in given_.consumers))))

    def fails(scenario):
        assert from_dict(to_dict(scenario)) == scenario
        members = sum(len(group.names) for group in scenario.consumers)
        return needed <= {timed.id for timed in scenario.plan().faults} and members >= consumers

    found = shrink(given_, fails, runs_max=2_000)
    assert found.is_minimal
    assert {timed.id for timed in found.scenario.plan().faults} == needed
    retained = found.scenario.faults.faults
    for left_out in retained:
        fewer = attrs.evolve(found.scenario.faults, faults=tuple(item for item in retained if item is not left_out))
        assert not fails(attrs.evolve(found.scenario, faults=fewer))
    if not needed:
        assert sum(len(group.names) for group in found.scenario.consumers) == consumers


def test_ctrl_c_gives_the_smallest_scenario_so_far():
    model = Model(lambda scenario: {"f3", "f11"} <= {timed.id for timed in scenario.faults.faults})

    def fails(scenario):
        if len(model.case_results) == 6:
            raise KeyboardInterrupt
        return model(scenario)

    with pytest.raises(ShrinkingInterrupted) as interrupted:
        shrink(LARGE, fails, likely=["f3", "f11"])
    found = interrupted.value.shrunk
    assert {timed.id for timed in found.scenario.faults.faults} == {"f3", "f11"}
    assert not found.is_minimal
    assert found.removed
