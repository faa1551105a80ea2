"""Faults from rates: how often and how long, the same for a seed, and no other's business."""

import itertools
from statistics import fmean

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.base.chance import named_stream
from emulator.run import run_scenario
from emulator.run.verify import repeat
from emulator.spec import from_dict, to_dict
from emulator.trace.run_directory import open_run
from fault_kinds.at_work import busy_cluster, outcome_of
from faults.catalogue import CHAOS_NAMES, fault_of
from faults.nemesis import Nemesis, timelines
from nodes.fields import FieldError

KILLS = Nemesis("kills", fault_of("kill random consumers"), 20_000, 1_000, 4_000)
LOSSES = Nemesis("losses", fault_of("loss 10"), 7_000, 500, 500)


def drawn(*nemeses, seed=1, run_for_ms=100_000_000):
    return timelines(nemeses, run_for_ms, lambda name: named_stream(seed, "nemesis", name))


def test_whiles_are_as_long_on_average_as_was_asked_for_and_no_instant_is_more_likely():
    instants = [0, *(timed.at_ms for timed in drawn(KILLS))]
    whiles = [later - earlier for earlier, later in itertools.pairwise(instants)]

    assert fmean(whiles) == pytest.approx(20_000, rel=0.05)
    # Of exponential whiles a share of 1/e is longer than their mean.
    assert sum(item > 20_000 for item in whiles) / len(whiles) == pytest.approx(0.368, abs=0.03)


def test_each_lasts_between_the_least_and_the_most_and_every_length_is_as_likely():
    lengths = [timed.for_ms for timed in drawn(KILLS)]

    assert min(lengths) < 1_010
    assert max(lengths) > 3_990
    assert all(1_000 <= length <= 4_000 for length in lengths)
    assert fmean(lengths) == pytest.approx(2_500, rel=0.05)
    assert dict.fromkeys(timed.for_ms for timed in drawn(LOSSES, run_for_ms=1_000_000)) == {500: None}


@given(
    from_ms=st.integers(0, 50_000),
    lasting=st.integers(1, 60_000),
    run_for_ms=st.integers(1, 80_000),
    seed=st.integers(0, 1_000),
)
def test_none_begins_before_from_or_at_the_end_or_later(from_ms, lasting, run_for_ms, seed):
    nemesis = Nemesis("n", LOSSES.fault, 500, 1, 100, from_ms, from_ms + lasting)
    instants = [timed.at_ms for timed in drawn(nemesis, seed=seed, run_for_ms=run_for_ms)]

    assert all(from_ms < at_ms < min(from_ms + lasting, run_for_ms) for at_ms in instants)
    assert instants == sorted(instants)
    assert len(dict.fromkeys(instants)) == len(instants)


@given(
    from_ms=st.integers(0, 5_000),
    every_ms=st.integers(1, 3_000),
    lasting=st.none() | st.integers(1, 30_000),
    run_for_ms=st.integers(1, 20_000),
)
def test_a_periodic_one_begins_exactly_at_from_and_every_so_often_after_it(from_ms, every_ms, lasting, run_for_ms):
    until_ms = None if lasting is None else from_ms + lasting
    nemesis = Nemesis("n", LOSSES.fault, every_ms, 100, 300, from_ms, until_ms, periodic=True)
    faults = drawn(nemesis, run_for_ms=run_for_ms)

    assert [timed.at_ms for timed in faults] == list(range(from_ms, min(until_ms or run_for_ms, run_for_ms), every_ms))
    assert [timed.id for timed in faults[:2]] == ["n-1", "n-2"][: len(faults)]
    assert all(100 <= timed.for_ms <= 300 for timed in faults)


def test_with_equal_durations_chance_decides_nothing_about_a_periodic_one():
    nemesis = Nemesis("n", LOSSES.fault, 20_000, 10_000, 10_000, periodic=True)

    faults = drawn(nemesis, seed=1, run_for_ms=100_000)
    assert faults == drawn(nemesis, seed=2, run_for_ms=100_000)
    assert [(timed.at_ms, timed.end_ms) for timed in faults[:2]] == [(0, 10_000), (20_000, 30_000)]


def test_its_faults_are_numbered():
    assert [timed.id for timed in drawn(KILLS)][:3] == ["kills-1", "kills-2", "kills-3"]


def test_one_more_nemesis_shifts_no_other():
    both = drawn(KILLS, LOSSES, run_for_ms=1_000_000)

    assert both == (*drawn(KILLS, run_for_ms=1_000_000), *drawn(LOSSES, run_for_ms=1_000_000))
    assert sorted(both, key=str) == sorted(drawn(LOSSES, KILLS, run_for_ms=1_000_000), key=str)
    assert drawn(KILLS)[0].at_ms != drawn(attrs.evolve(KILLS, id="others"))[0].at_ms


def test_a_longer_run_begins_with_the_same_faults():
    short, long = drawn(KILLS, run_for_ms=500_000), drawn(KILLS, run_for_ms=1_000_000)

    assert len(long) > len(short) > 5
    assert long[: len(short)] == short


def test_a_seed_gives_its_faults_and_another_one_others():
    scenario = attrs.evolve(busy_cluster(600_000), nemeses=(KILLS,))

    assert scenario.plan() == scenario.plan() != attrs.evolve(scenario, seed=2).plan()
    assert scenario.plan().faults == drawn(KILLS, run_for_ms=600_000)


@pytest.mark.parametrize(
    ("answer", "field"), [({"every_ms": 0}, "every_ms"), ({"min_ms": 0}, "min_ms"), ({"id": ""}, "id")]
)
def test_a_nemesis_that_makes_no_sense_is_refused(answer, field):
    with pytest.raises(FieldError) as error:
        attrs.evolve(KILLS, **answer)
    assert error.value.field == field


RAGE = (
    Nemesis("kills", fault_of("kill random consumers"), 8_000, 1_000, 5_000, 10_000, 60_000),
    Nemesis("rain", fault_of("tcp-loss 20"), 15_000, 1_000, 6_000, 10_000, 60_000),
    Nemesis("clocks", fault_of("jump minor brokers 3000"), 20_000, 1_000, 6_000, 10_000, 60_000),
    Nemesis("cpus", fault_of("slow-cpu random servers 40"), 12_000, 1_000, 6_000, 10_000, 60_000),
    Nemesis("sizes", fault_of("scale g 4"), 15_000, 3_000, 6_000, 10_000, 60_000),
    Nemesis("sleep", fault_of("suspend random nodes"), 15_000, 500, 6_000, 10_000, 60_000),
)


MISSION = {
    "a random consumer loses a random broker": {"kind": "cut", "from": "one of consumers", "to": "one of brokers"},
    "random consumers restart": {"kind": "restart", "node": "random consumers"},
    "random brokers restart": {"kind": "restart", "node": "random brokers"},
    "in words": {"do": "chaos random-suspend random consumers"},
}
"""Further situations in which the designers of rebalancing by brokers tested it."""
NAMED = {name: {"kind": name} | ({"node": "broker-a"} if "fixed" in name else {}) for name in CHAOS_NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMED, *MISSION])
def test_each_fault_of_openmessaging_chaos_comes_and_goes_and_leaves_nothing(tmp_path, name):
    rates = {"id": "n", "every_s": 60, "min_s": 40, "from_s": 20, "until_s": 140, "periodic": True}
    nemesis = (NAMED | MISSION)[name] | rates
    scenario = from_dict(to_dict(busy_cluster(240_000)) | {"nemesis": [nemesis]})
    outcome = outcome_of(scenario, tmp_path)

    begun, ended = (outcome.trace.select("faults", event=event) for event in ("begin", "end"))
    assert [row.at_ms for row in begun] == [20_000, 80_000]
    assert [row.at_ms for row in ended] == [60_000, 120_000]
    assert sum(row.hits for row in ended) > 0
    assert outcome.left == {}
    assert outcome.differ == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_after_all_nemeses_together_nothing_is_left(tmp_path, seed):
    scenario = attrs.evolve(busy_cluster(200_000), nemeses=RAGE, seed=seed)
    outcome = outcome_of(scenario, tmp_path)

    begun = [row.fault_id for row in outcome.trace.select("faults", event="begin")]
    assert sorted(begun) == sorted(timed.id for timed in scenario.plan().faults)
    assert len(begun) > 10
    assert outcome.left == {}
    assert outcome.differ == ()


def test_a_run_with_nemeses_can_be_repeated_row_by_row(tmp_path):
    result = run_scenario(attrs.evolve(busy_cluster(70_000), nemeses=RAGE), runs=tmp_path)

    assert repeat(open_run(result.path)) is None
