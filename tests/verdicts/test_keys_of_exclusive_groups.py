"""One order id at one consumer at a time: the pods of the StatefulSet example, with each kind of exclusivity."""

from pathlib import Path

import attrs
import pytest

from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.run_directory import open_run
from faults.scale import Scale
from nodes.client.producer.keys import MessageKeys
from nodes.client.tables.queue_selectors import SelectorName
from nodes.config import ConsumerConfig, Exclusivity

EXAMPLE = Path(__file__).parents[2] / "examples" / "statefulset.toml"
SECOND = 1_000_000_000
SCALED_BACK_S = 150
"""Half a minute after the last scale: what follows in the example is a death and a cut."""


def with_keys(exclusivity):
    """The example with few ids and slow listeners, so that each queue always has a message in process."""
    scenario = load(EXAMPLE)
    (group,), (producer,) = scenario.consumers, scenario.producers
    config = attrs.evolve(group.config, exclusivity=exclusivity)
    return attrs.evolve(
        scenario,
        consumers=(attrs.evolve(group, consume_ms=2_000, config=config),),
        producers=(attrs.evolve(producer, keys=MessageKeys(4), select=SelectorName.MD5),),
    )


def scaled(exclusivity):
    """The same up to its two scales, which are what brings an id to two pods without exclusivity."""
    scenario = with_keys(exclusivity)
    scales = tuple(timed for timed in scenario.faults.faults if isinstance(timed.fault, Scale))
    plan = attrs.evolve(scenario.faults, faults=scales)
    (producer,) = scenario.producers
    few = (attrs.evolve(producer, rate_per_s=8),)
    return attrs.evolve(scenario, run_for_ms=SCALED_BACK_S * 1_000, faults=plan, producers=few)


def judged(scenario, runs):
    return judge_run(open_run(run_scenario(scenario, runs=runs).path))


def test_a_scale_without_exclusivity_has_an_id_at_two_pods_and_breaks_no_promise(tmp_path):
    report = judged(scaled(Exclusivity.NONE), tmp_path)

    (row,) = report["keys"]
    assert row.two_in_queue_ns > SECOND // 4
    assert row.late > 0 == row.overtaken
    assert not row.violation
    assert report["moved_keys"] == ()


@pytest.mark.parametrize("exclusivity", [Exclusivity.SINGLE_ACTIVE, Exclusivity.LEASE])
def test_while_an_exclusive_group_is_scaled_each_id_is_at_one_pod_and_in_order(tmp_path, exclusivity):
    assert judged(scaled(exclusivity), tmp_path)["keys"] == ()


@pytest.mark.slow
@pytest.mark.parametrize("exclusivity", [Exclusivity.SINGLE_ACTIVE, Exclusivity.LEASE])
def test_a_death_and_a_cut_bring_no_id_of_an_exclusive_group_to_two_pods(tmp_path, exclusivity):
    assert judged(with_keys(exclusivity), tmp_path)["keys"] == ()


def test_the_options_of_a_group_say_what_it_promises():
    scenario = with_keys(Exclusivity.LEASE)
    (group,) = scenario.consumers
    ordered = attrs.evolve(group, group="o", names=("o-1",), config=ConsumerConfig(consume_orderly=True))

    facts = facts_of(attrs.evolve(scenario, consumers=(group, ordered)), 0)

    assert (facts.ordered, facts.exclusive) == (("o",), (group.group,))
