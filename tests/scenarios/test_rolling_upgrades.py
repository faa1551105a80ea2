"""Rolling upgrades: the order that RIP-32 recommends, the other one, and consumers that change their strategy."""

import json
from pathlib import Path

import attrs
import pytest

from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.model.scenario import Scenario
from emulator.testing import Trace
from faults.plan import Plan
from support.unowned import unowned, unowned_ms

EXAMPLES = Path(__file__).parents[2] / "examples"
STARTED_MS = 50_000
"""By then the clients of the examples have found everything."""
FEW_PER_S = 2
"""Messages; owners of queues do not depend on how many there are."""


def without_changes(scenario: Scenario) -> Scenario:
    """The same restarts at the same instants, of the same nodes in the same order, with the options as they are."""
    plain = (attrs.evolve(timed, fault=attrs.evolve(timed.fault, options={})) for timed in scenario.faults.faults)
    return attrs.evolve(scenario, faults=Plan(tuple(plain)))


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """(scenario, trace, digest) of an example, as it is or without changes of options; executed once each."""
    known = {}

    def of(name: str, *, plain: bool = False) -> tuple[Scenario, Trace, str]:
        if (name, plain) not in known:
            scenario = load(EXAMPLES / name)
            producers = tuple(attrs.evolve(producer, rate_per_s=FEW_PER_S) for producer in scenario.producers)
            scenario = attrs.evolve(scenario, producers=producers)
            scenario = without_changes(scenario) if plain else scenario
            trace = Trace()
            run = run_scenario(scenario, runs=tmp_path_factory.mktemp("runs"), listeners=(trace.note,))
            known[name, plain] = scenario, trace, run.manifest["digest"]
        return known[name, plain]

    return of


def without_owner_ms(scenario, trace, _digest):
    return unowned_ms(trace, scenario, after_ms=STARTED_MS)


FORWARD, REVERSED = "upgrades/rolling_upgrade.toml", "upgrades/rolling_upgrade_reversed.toml"


@pytest.mark.slow
def test_nameservers_first_costs_no_second_without_owner_beyond_a_plain_rolling_restart(executed):
    baseline = without_owner_ms(*executed(FORWARD, plain=True))

    # A broker that was restarted lists the members that have reached it. It depends on chance which pass asks it, and
    # costs some queue less than a second.
    assert baseline < 1_000
    assert without_owner_ms(*executed(FORWARD)) - baseline < 1_000


def test_nameservers_first_loses_and_delays_no_message(executed):
    scenario, trace, _ = executed(FORWARD)
    sent = scenario.producers[0].rate_per_s * (scenario.run_for_ms // 1_000)

    assert len(trace.stored()) > 0.99 * sent
    assert sorted(trace.consumed()) == trace.stored()


def test_brokers_first_leaves_all_queues_of_a_group_without_owner_until_a_nameserver_is_upgraded(executed):
    scenario, trace, digest = executed(REVERSED)

    assert without_owner_ms(*executed(REVERSED, plain=True)) < 1_000
    long = [item for item in unowned(trace, scenario, after_ms=STARTED_MS) if item[2] - item[1] > 10_000]
    # broker-a has no one left from the restart of its slave at 180 s on, and ns-1 is upgraded at 330 s.
    assert [queue for queue, _, _ in long] == [("orders", "broker-a", number) for number in range(4)]
    assert all(180_000 < start < 182_000 and 330_000 < end < 365_000 for _, start, end in long)
    assert without_owner_ms(scenario, trace, digest) > 600_000


def test_an_upgraded_broker_asks_old_nameservers_in_vain_and_is_not_registered(executed):
    _, trace, _ = executed(REVERSED)

    stages = trace.select("beliefs", node="broker-a", kind="online_stage", after_ms=60_000, until_ms=330_000)
    assert [json.loads(row.value) for row in stages] == ["isolated", "fetching member group"]
    listed = trace.select("beliefs", node="ns-1", kind="live_brokers", subject="broker-a", after_ms=180_000)
    assert json.loads(listed[0].value) is None
    assert listed[1].at_ms > 330_000


def test_every_start_after_the_upgrade_reports_the_options_that_it_runs_with(executed):
    _, trace, _ = executed(FORWARD)

    reported = {row.node: (row.incarnation, row.detail) for row in trace.select("lifecycle", event="configured")}
    assert list(reported) == ["ns-1", "ns-2", "ns-3", "broker-a-s1", "broker-b-s1", "broker-a", "broker-b"]
    assert reported["broker-a"] == (2, "release = 5.3.3, enableSlaveActingMaster = true, totalReplicas = 2")


@pytest.mark.slow
def test_the_same_seed_upgrades_with_the_same_trace(executed, tmp_path):
    scenario, _, digest = executed(FORWARD)

    assert run_scenario(scenario, runs=tmp_path).manifest["digest"] == digest


@pytest.mark.slow
def test_mixed_strategies_allocate_differently_until_the_last_member_has_changed(executed):
    scenario, trace, _ = executed("upgrades/rolling_strategy.toml")
    within = [(start, end) for _, start, end in unowned(trace, scenario, after_ms=STARTED_MS) if end - start > 10_000]

    assert sum(end - start for start, end in within) > 100_000
    assert all(start > 60_000 and end < 152_000 for start, end in within)
    assert without_owner_ms(*executed("upgrades/rolling_strategy.toml", plain=True)) < 5_000
