"""Faults of one process that overlap: each ends on its own, and what another one holds down stays down."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.testing import a_scenario
from fault_kinds.at_work import busy_cluster, outcome_of
from fault_kinds.by_script import broken
from faults.catalogue import fault_of
from faults.plan import Plan, TimedFault

NODE = "ns-1"
RUNNING, SUSPENDED, DOWN, DARK = "running", "suspended", "down", "powered off"
TAKES_DOWN = {"kill": DOWN, "stop": DOWN, "power-off": DARK}
CAN_HIT = {
    "kill": (RUNNING, SUSPENDED),
    "stop": (RUNNING,),
    "power-off": (RUNNING, SUSPENDED, DOWN),
    "suspend": (RUNNING,),
}


@attrs.define
class Process:
    """The model: a state, and which faults have begun and not ended."""

    state: str = RUNNING
    active: dict[str, str] = attrs.Factory(dict)

    def begin(self, fault_id: str, verb: str) -> None:
        self.active[fault_id] = verb
        if self.state in CAN_HIT[verb]:
            self.state = TAKES_DOWN.get(verb, SUSPENDED)

    def end(self, fault_id: str) -> None:
        verb = self.active.pop(fault_id)
        same = [other for other in self.active.values() if (other in TAKES_DOWN) == (verb in TAKES_DOWN)]
        ends = (DOWN, DARK) if verb in TAKES_DOWN else (SUSPENDED,)
        if self.state in ends and not same:
            self.state = RUNNING


@given(st.lists(st.sampled_from(list(CAN_HIT)) | st.integers(0, 5), max_size=12))
@settings(max_examples=60)
def test_a_process_is_always_as_its_faults_together_leave_it(done):
    model, seen, expected = Process(), [], []

    async def deeds(breaker):
        for number, subject in enumerate(done):
            await breaker.stage.for_ms(50)
            if isinstance(subject, str):
                await breaker.begin(f"f{number}", f"{subject} {NODE}")
                model.begin(f"f{number}", subject)
            elif subject < len(model.active):
                fault_id = list(model.active)[subject]
                await breaker.end(fault_id)
                model.end(fault_id)
            seen.append(breaker.state(NODE))
            expected.append(model.state)
        for fault_id in list(model.active):
            await breaker.end(fault_id)
        seen.append(breaker.state(NODE))

    broken(a_scenario(brokers=("broker-a",)), deeds)

    assert seen == [*expected, RUNNING]


def states(*steps):
    """After each step: `1 kill` begins a fault, `1` ends it."""
    seen = []

    async def deeds(breaker):
        await breaker.stage.at_ms(20_000)
        for step in steps:
            fault_id, _, verb = step.partition(" ")
            await (breaker.begin(fault_id, f"{verb} broker-a") if verb else breaker.end(fault_id))
            await breaker.stage.for_ms(2_000)
            seen.append(breaker.state("broker-a"))

    broken(busy_cluster(1), deeds)
    return seen


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        (("1 suspend", "2 kill", "2", "1"), [SUSPENDED, DOWN, RUNNING, RUNNING]),
        (("1 suspend", "2 kill", "1", "2"), [SUSPENDED, DOWN, DOWN, RUNNING]),
        (("1 kill", "2 kill", "1", "2"), [DOWN, DOWN, DOWN, RUNNING]),
        (("1 kill", "2 power-off", "1", "2"), [DOWN, DARK, DARK, RUNNING]),
        (("1 power-off", "2 kill", "1", "2"), [DARK, DARK, DARK, RUNNING]),
        (("1 suspend", "2 suspend", "1", "2"), [SUSPENDED, SUSPENDED, SUSPENDED, RUNNING]),
        (("1 suspend", "2 stop", "1", "2"), [SUSPENDED, SUSPENDED, RUNNING, RUNNING]),
        (("1 stop", "2 suspend", "1", "2"), [DOWN, DOWN, RUNNING, RUNNING]),
    ],
)
def test_faults_of_a_broker_overlap(steps, seen):
    assert states(*steps) == seen


def test_a_restart_of_all_leaves_down_who_is_held_down_and_everybody_well_in_the_end(tmp_path):
    lines = {
        "kill": ("kill broker-b", 20_000, 40_000),
        "all": ("stop *", 30_000, 10_000),
        "dark": ("power-off c2", 35_000, 15_000),
    }
    plan = Plan(tuple(TimedFault(name, fault_of(line), at, lasting) for name, (line, at, lasting) in lines.items()))
    outcome = outcome_of(attrs.evolve(busy_cluster(150_000), faults=plan), tmp_path)

    started = {row.node: row.at_ms for row in outcome.trace.select("lifecycle", event="started", after_ms=20_000)}
    assert started == {
        **dict.fromkeys(("ns-1", "ns-2", "broker-a", "c1", "p1"), started["ns-1"]),
        "c2": 50_000,
        "broker-b": 60_000,
    }
    assert started["ns-1"] >= 40_000
    assert outcome.left == {}
    assert outcome.differ == ()
    # The broker that was down and the machine that was dark are not counted.
    hits = {row.fault_id: row.hits for row in outcome.trace.select("faults", event="end")}
    assert hits == {"kill": 1, "all": 6, "dark": 1}
