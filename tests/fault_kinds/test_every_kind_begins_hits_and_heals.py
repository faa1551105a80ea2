"""Every kind of fault in a whole cluster: it begins, it does something, and when it has ended nothing is left of it."""

import attrs
import pytest

from fault_kinds.at_work import Outcome, busy_cluster, outcome_of
from faults.catalogue import CHAOS_NAMES, FAULTS, WORDINGS, fault_of
from faults.plan import Plan, TimedFault
from support.every_case import each_case

# The first line is the fault; further ones are what lets it be seen, begun 5 s later.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "cut": ("cut c1 broker-a",),
    "partition": ("partition bridge among ns-1, broker-a, broker-b, c1, c2",),
    "loss": ("loss 30",),
    "tcp_loss": ("tcp-loss 30",),
    "delay": ("delay 40 jitter 5",),
    "drop": ("drop HEART_BEAT from c1 next 2",),
    "refuse": ("refuse HEART_BEAT with SYSTEM_BUSY from c1 next 2",),
    "kill": ("kill broker-a",),
    "restart": ("stop c1",),
    "power_off": ("power-off broker-a",),
    "suspend": ("suspend c1",),
    "slow_cpu": ("slow-cpu broker-a 100",),
    "clock_skew": ("skew broker-a 5000",),
    "clock_drift": ("drift broker-a -20000",),
    "clock_jump": ("jump broker-a 1000",),
    "slow_disk": ("slow-disk broker-a 20",),
    "lost_writes": ("lost-writes broker-a", "power-off broker-a"),
    "permission": ("permission broker-a 4 topic orders",),
    "scale": ("scale g 4",),
    "rebalance": ("rebalance g assigner",),
    "consume_mode": ("consume-mode g pop",),
    "reconfigure": ("restart c1 with {pullBatchSize = 16}",),
    "upgrade": ("upgrade brokers with {slaveReadEnable = true} one every 10s",),
}
CHAOS_ALWAYS = ("random-kill", "fixed-suspend", "bridge", "random-loss", "random-delay")
"""Of the names of OpenMessaging Chaos; `make proofs` runs the others."""
BEGIN_MS, FOR_MS, END_MS = 30_000, 30_000, 125_000


def plan(lines: tuple[str, ...]) -> Plan:
    first, *others = (fault_of(line) for line in lines)
    later = (TimedFault(f"other-{i}", fault, BEGIN_MS + 5_000, 5_000) for i, fault in enumerate(others))
    return Plan((TimedFault("it", first, BEGIN_MS, FOR_MS), *later))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Executed once each."""
    executed: dict[str, Outcome] = {}

    def of(kind: str) -> Outcome:
        if kind not in executed:
            scenario = attrs.evolve(busy_cluster(END_MS), faults=plan(EXAMPLES[kind]))
            executed[kind] = outcome_of(scenario, tmp_path_factory.mktemp(kind))
        return executed[kind]

    return of


def test_no_kind_is_forgotten_anywhere():
    assert list(EXAMPLES) == list(FAULTS)
    assert [fault_of(lines[0]).kind for lines in EXAMPLES.values()] == list(FAULTS)
    answer = dict.fromkeys(fault_of(lines[0]).kind for lines in EXAMPLES.values())
    assert len(WORDINGS) == len(answer) + 1  # and `chaos`, which is other names for some


@each_case("kind", list(FAULTS))
def test_it_applies_and_hits_and_heals_without_a_trace(outcomes, kind):
    outcome = outcomes(kind)
    begin, end = outcome.trace.select("faults", fault_id="it")
    assert (begin.event, begin.at_ms, begin.kind, begin.hits) == ("begin", BEGIN_MS, kind, 0)
    assert (end.event, end.kind) == ("end", kind)
    assert end.hits > 0
    assert outcome.left == {}
    assert outcome.differ == ()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in CHAOS_ALWAYS else pytest.mark.slow) for name in CHAOS_NAMES]
)
def test_the_names_of_openmessaging_chaos_are_retained(tmp_path, name):
    fault = fault_of(f"chaos {name}{' broker-a' if name.startswith('fixed-') else ''}")
    scenario = attrs.evolve(busy_cluster(100_000), faults=Plan((TimedFault("it", fault, 20_000, 40_000),)))
    outcome = outcome_of(scenario, tmp_path)
    assert outcome.trace.select("faults", event="end")[0].hits > 0
    assert outcome.left == {}


@pytest.mark.parametrize(
    "line", ["loss 0", "drop LOCK_BATCH_MQ", "drop HEART_BEAT group absent", "loss 100 during stopping"]
)
def test_what_meets_nothing_that_it_means_hits_nothing(tmp_path, line):
    scenario = attrs.evolve(busy_cluster(60_000), faults=Plan((TimedFault("it", fault_of(line), 20_000, 10_000),)))
    assert outcome_of(scenario, tmp_path).trace.select("faults", event="end")[0].hits == 0
