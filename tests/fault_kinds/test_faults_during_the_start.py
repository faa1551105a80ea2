"""Faults while the cluster starts: each begins and ends at its instants, and does what it does at any other time."""

from functools import cache

import attrs
import pytest

from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from emulator.testing import ConsoleUser, execute, run_at_console
from emulator.time.mode import TimeMode
from fault_kinds.at_work import Outcome, busy_cluster, outcome_of
from fault_kinds.by_script import Breaker
from fault_kinds.test_every_kind_begins_hits_and_heals import EXAMPLES
from faults.catalogue import FAULTS, fault_of
from faults.nemesis import Nemesis
from faults.plan import Plan, TimedFault
from nodes.config import ConsumerConfig

END_MS = 150_000
GRID_END_MS = 100_000
"""Of runs with one fault, of which nothing is left by then."""
SEED = 3_320
"""Its brokers start far from each other, and c1 before the other clients."""
BROKER_MS, LAST_BROKER_MS = 9_255, 19_728
CLIENT_MS = {"c1": 26_535, "p1": 31_335, "c2": 33_773}
"""Planned starts with this seed."""
KEEP_DOWN = ("kill", "restart", "power_off")
CLOCKS_AND_DISKS = ("clock_skew", "clock_drift", "clock_jump", "slow_disk", "lost_writes")


def cold_cluster(run_for_ms: int = END_MS):
    """Nameservers at once, brokers within 20 s, and then clients within 20 s."""
    return attrs.evolve(busy_cluster(run_for_ms), seed=SEED, broker_start_spread_ms=20_000, start_spread_ms=20_000)


def with_late_broker(start_after_ms: int):
    """broker-a at once, and broker-b later."""
    scenario = busy_cluster(END_MS)
    late = attrs.evolve(scenario.brokers[1], start_after_ms=start_after_ms)
    return attrs.evolve(scenario, brokers=(scenario.brokers[0], late))


def start_of_target_ms(kind: str) -> int:
    """Planned start of the first node that the example of a kind is about."""
    about_clients = " c1" in EXAMPLES[kind][0] or kind == "scale"
    return CLIENT_MS["c1"] if about_clients else BROKER_MS


PHASES = {"before": (-6_000, -2_000), "across": (-2_000, 8_000), "after": (1_000, 9_000)}
"""Begin and end, in ms from the start of the target."""
HITS = {
    "before": ("scale", "reconfigure", "upgrade"),
    "across": tuple(kind for kind in FAULTS if kind not in ("suspend", "permission", "rebalance", "consume_mode")),
    "after": tuple(kind for kind in FAULTS if kind not in ("loss", "tcp_loss", "delay", *CLOCKS_AND_DISKS)),
}
"""Kinds that hit something then; while only broker-a is there, nothing is sent, written or timed."""


@cache
def window_ms(kind: str, phase: str) -> tuple[int, int]:
    """Begin and end of the fault."""
    start_ms, (begin, end) = start_of_target_ms(kind), PHASES[phase]
    return start_ms + begin, start_ms + end


def scenario_of(kind: str, phase: str):
    """The cold cluster with an example of a kind."""
    begin_ms, end_ms = window_ms(kind, phase)
    line, *others = EXAMPLES[kind]
    later = (TimedFault(f"other-{i}", fault_of(other), begin_ms + 3_000, 1_000) for i, other in enumerate(others))
    plan = Plan((TimedFault("it", fault_of(line), begin_ms, end_ms - begin_ms), *later))
    return attrs.evolve(cold_cluster(GRID_END_MS), faults=plan)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run once each."""
    found: dict[tuple[str, str], Outcome] = {}

    def of(kind: str, phase: str) -> Outcome:
        if (kind, phase) not in found:
            found[kind, phase] = outcome_of(scenario_of(kind, phase), tmp_path_factory.mktemp(f"{kind}-{phase}"))
        return found[kind, phase]

    return of


def started_ms(outcome: Outcome, node: str) -> list[float]:
    return [row.at_ms for row in outcome.trace.select("lifecycle", node=node, event="started")]


def faults_of(trace) -> list[tuple[str, str, float, int]]:
    return [(row.fault_id, str(row.event), row.at_ms, row.hits) for row in trace.rows["faults"]]


def test_the_planned_starts_are_those_that_this_file_counts_from(tmp_path):
    outcome = outcome_of(cold_cluster(), tmp_path)
    starts = {row.node: row.at_ms for row in outcome.trace.select("lifecycle", event="started")}
    assert starts == {"ns-1": 0, "ns-2": 0, "broker-a": BROKER_MS, "broker-b": LAST_BROKER_MS, **CLIENT_MS}


ONE_OF_EACH = ("cut", "tcp_loss", "refuse", "kill", "restart", "suspend", "slow_cpu", "clock_jump", "slow_disk")
"""A kind of each mechanism: links, requests, processes, clocks, disks; `make proofs` runs the others."""
ALWAYS = {
    "before": (*ONE_OF_EACH, *HITS["before"]),
    "across": tuple(FAULTS),
    "after": (*ONE_OF_EACH, "loss", "permission"),
}
"""The kinds of each phase in `make test`, of those that hit something then and of those that do not."""
GRID = [
    pytest.param(kind, phase, marks=() if kind in ALWAYS[phase] else pytest.mark.slow)
    for phase in PHASES
    for kind in FAULTS
]


@pytest.mark.parametrize(("kind", "phase"), GRID)
def test_a_fault_begins_and_ends_at_its_instants_counts_what_it_has_hit_and_leaves_nothing(outcomes, kind, phase):
    outcome = outcomes(kind, phase)
    begin, end = outcome.trace.select("faults", fault_id="it")
    assert (begin.event, end.event) == ("begin", "end")
    assert (begin.at_ms, end.at_ms) == window_ms(kind, phase)
    assert outcome.trace.end_ms == GRID_END_MS
    assert (end.hits > 0) == (kind in HITS[phase])
    assert (outcome.left, outcome.differ) == ({}, ())


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in ONE_OF_EACH else pytest.mark.slow) for kind in FAULTS]
)
def test_real_sockets_give_the_same_trace(outcomes, tmp_path, kind):
    assert outcome_of(scenario_of(kind, "across"), tmp_path, TimeMode.FAST).digest == outcomes(kind, "across").digest


@pytest.mark.parametrize("kind", KEEP_DOWN)
def test_what_is_kept_down_at_its_planned_start_starts_when_the_fault_ends(outcomes, kind):
    node = "c1" if kind == "restart" else "broker-a"
    assert started_ms(outcomes(kind, "across"), node) == [window_ms(kind, "across")[1]]


@pytest.mark.parametrize("kind", KEEP_DOWN)
def test_a_fault_that_ends_before_a_planned_start_does_not_bring_it_forward(outcomes, kind):
    node = "c1" if kind == "restart" else "broker-a"
    assert started_ms(outcomes(kind, "before"), node) == [start_of_target_ms(kind)]


@pytest.mark.parametrize("phase", ["before", "across"])
def test_a_signal_does_not_wait_for_a_process(outcomes, phase):
    outcome = outcomes("suspend", phase)
    assert started_ms(outcome, "c1") == [CLIENT_MS["c1"]]
    assert outcome.trace.select("lifecycle", event="suspended") == []


@pytest.mark.parametrize("kind", ["reconfigure", "upgrade"])
def test_options_of_a_restart_count_from_the_planned_start_on(outcomes, kind):
    node = "c1" if kind == "reconfigure" else "broker-a"
    (row,) = outcomes(kind, "across").trace.select("lifecycle", node=node, event="configured")
    assert row.at_ms == start_of_target_ms(kind)


def run(tmp_path, scenario, *faults, **nemeses):
    return outcome_of(attrs.evolve(scenario, faults=Plan(faults), **nemeses), tmp_path)


def timed(name: str, line: str, at_ms: int, for_ms: int | None = None) -> TimedFault:
    return TimedFault(name, fault_of(line), at_ms, for_ms)


def test_a_fault_of_a_node_that_runs_waits_for_no_other_node(tmp_path):
    outcome = run(tmp_path, with_late_broker(30_000), timed("it", "kill broker-a", 10_000, 5_000))
    assert faults_of(outcome.trace) == [("it", "begin", 10_000, 0), ("it", "end", 15_000, 1)]
    assert started_ms(outcome, "broker-a") == [0, 15_000]


def test_a_fault_of_the_first_instant_comes_after_the_starts_of_that_instant(tmp_path):
    outcome = run(tmp_path, cold_cluster(), timed("ns", "suspend ns-1", 0, 5_000), timed("c1", "kill c1", 0, 60_000))
    assert faults_of(outcome.trace) == [
        ("ns", "begin", 0, 0),
        ("c1", "begin", 0, 0),
        ("ns", "end", 5_000, 1),
        ("c1", "end", 60_000, 1),
    ]
    assert started_ms(outcome, "c1") == [60_000]


def test_a_process_of_a_slow_cpu_waits_for_its_first_turn(tmp_path):
    outcome = run(tmp_path, cold_cluster(), timed("it", "slow-cpu broker-a 3000", BROKER_MS - 1_000, 60_000))
    ready = outcome.trace.select("lifecycle", node="broker-a", event="ready")
    assert ready[0].at_ms >= BROKER_MS + 2_000


@pytest.mark.parametrize("start_ms", [0, 30_000])
def test_a_fault_of_the_instant_of_a_planned_start_comes_after_it(tmp_path, start_ms):
    node = "broker-b" if start_ms else "broker-a"  # broker-a starts at 0, once the nameservers are ready
    outcome = run(tmp_path, with_late_broker(30_000), timed("it", f"suspend {node}", start_ms, 1_000))
    assert started_ms(outcome, node) == [start_ms]
    assert faults_of(outcome.trace)[-1] == ("it", "end", start_ms + 1_000, 1)


def test_a_planned_start_at_the_end_of_a_fault_comes_first(tmp_path):
    outcome = run(tmp_path, cold_cluster(), timed("it", "kill broker-b", 15_000, LAST_BROKER_MS - 15_000))
    assert faults_of(outcome.trace)[-1] == ("it", "end", LAST_BROKER_MS, 1)
    assert started_ms(outcome, "broker-b") == [LAST_BROKER_MS]


def test_a_node_starts_when_the_last_of_the_faults_that_keep_it_down_ends(tmp_path):
    outcome = run(
        tmp_path,
        cold_cluster(),
        timed("early", "kill broker-a", 2_000, 4_000),
        timed("dark", "power-off broker-a", 3_000, 20_000),
        timed("stop", "stop broker-a", 5_000, 9_000),
    )
    assert started_ms(outcome, "broker-a") == [23_000]
    ends = {name: hits for name, event, _, hits in faults_of(outcome.trace) if event == "end"}
    assert ends == {"early": 0, "stop": 1, "dark": 1}


def test_a_machine_without_power_before_its_planned_start_may_lose_it_again(tmp_path):
    off = timed("first", "power-off c1", 1_000, 30_000), timed("second", "power-off c1", 2_000, 40_000)
    outcome = run(tmp_path, cold_cluster(), *off)
    assert started_ms(outcome, "c1") == [42_000]


def test_the_rounds_of_a_nemesis_keep_their_instants(tmp_path):
    nemesis = Nemesis("n", fault_of("kill one of brokers"), 8_000, 2_000, 2_000, periodic=True, until_ms=40_000)
    outcome = run(tmp_path, cold_cluster(), nemeses=(nemesis,))
    begins = [at_ms for _, event, at_ms, _ in faults_of(outcome.trace) if event == "begin"]
    assert begins == [0, 8_000, 16_000, 24_000, 32_000]
    ends = [at_ms for _, event, at_ms, _ in faults_of(outcome.trace) if event == "end"]
    assert ends == [begin + 2_000 for begin in begins]


def test_a_target_by_meaning_is_what_it_means_at_that_instant(tmp_path):
    outcome = run(
        tmp_path,
        cold_cluster(),
        timed("acting", "suspend acting master of broker-a", BROKER_MS + 1_000, 1_000),
        timed("owner", "suspend owner of orders/broker-a/0", CLIENT_MS["c1"] + 1, 1_000),
    )
    rows = {row.fault_id: (row.subject, row.hits) for row in outcome.trace.select("faults", event="end")}
    assert rows == {"acting": ("broker-a", 1), "owner": ("owner of orders/broker-a/0", 0)}


def test_what_scaling_removes_before_its_start_does_not_start(tmp_path):
    outcome = run(tmp_path, cold_cluster(), timed("it", "scale g 1", 5_000, 60_000))
    assert faults_of(outcome.trace)[-1] == ("it", "end", 65_000, 1)
    assert started_ms(outcome, "c2") == [65_000]


def test_what_scaling_brings_back_before_its_start_starts_as_planned(tmp_path):
    outcome = run(tmp_path, cold_cluster(), timed("it", "scale g 1", 5_000, 10_000))
    assert started_ms(outcome, "c2") == [CLIENT_MS["c2"]]


@pytest.mark.parametrize(("line", "waits_ms"), [("kill broker-b", 0), ("suspend broker-b", 0), ("slow-cpu *  3000", 1)])
def test_the_next_kind_waits_for_no_node_that_is_down_or_suspended(tmp_path, line, waits_ms):
    outcome = run(tmp_path, cold_cluster(), timed("it", line, LAST_BROKER_MS + 1, 100_000))
    first_ms = min(started_ms(outcome, name)[0] for name in CLIENT_MS)
    assert (first_ms > CLIENT_MS["c1"]) == bool(waits_ms)


def test_a_run_whose_start_is_not_over_ends_at_its_end(tmp_path):
    outcome = run(tmp_path, with_late_broker(10 * END_MS), timed("it", "suspend ns-1", 10_000))
    assert outcome.trace.end_ms == END_MS
    assert faults_of(outcome.trace) == [("it", "begin", 10_000, 0), ("it", "end", END_MS, 1)]


def test_a_script_meets_a_cluster_whose_faults_have_begun():
    async def deeds(stage):
        seen.append((Breaker(stage).state("broker-b"), list(stage.operator.active)))
        await stage.for_ms(40_000)
        seen.append((Breaker(stage).state("broker-b"), list(stage.operator.active)))

    seen: list[tuple[str, list[str]]] = []
    trace = execute(attrs.evolve(cold_cluster(), faults=Plan((timed("it", "kill broker-b", 15_000, 30_000),))), deeds)
    assert seen == [("down", ["it"]), ("running", [])]
    assert faults_of(trace) == [("it", "begin", 15_000, 0), ("it", "end", 45_000, 1)]


def test_by_hand_the_same_is_possible_and_can_be_done_again(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        assert await me.refused("suspend c1") == "c1 has not started yet: there is nothing to suspend"
        assert await me.refused("rebalance g assigner") == "no broker runs: there is none to set it at"
        assert await me.refused("consume-mode g pop") == "no master runs: there is none to set it at"
        assert await me.refused("restart c1") == "c1 has not started yet: there is nothing to restart"
        await me.say("kill c1")
        await me.say("restart c2 with {pullBatchSize = 16}")
        await me.at_ms(40_000)
        await me.say("start c1")

    scenario = attrs.evolve(
        cold_cluster(),
        consumers=(attrs.evolve(cold_cluster().consumers[0], config=ConsumerConfig(client_rebalance=False)),),
    )
    path, trace = run_at_console(scenario, tmp_path, sitting)
    again = outcome_of(load(path / BY_HAND_FILE), tmp_path)
    starts = [(row.node, row.at_ms) for row in trace.select("lifecycle", event="started")]
    assert ("c1", 40_000) in starts
    assert ("c1", CLIENT_MS["c1"]) not in starts
    assert [(row.node, row.at_ms) for row in again.trace.select("lifecycle", event="started")] == starts
    assert faults_of(again.trace) == faults_of(trace)


LONG_SHUTDOWN = (
    timed("few turns", "slow-cpu c1 30000", 60_000, 40_000),
    timed("stop", "stop c1", 62_000, 5_000),
    timed("together", "stop c2", 62_000, 3_000),
    timed("later", "kill broker-a", 64_000, 10_000),
)
"""c1 gets the CPU again, and so shuts down, at 100 s."""


def test_a_long_shutdown_delays_no_other_fault(tmp_path):
    outcome = run(tmp_path, cold_cluster(), *LONG_SHUTDOWN)
    at_ms = {(name, event): at_ms for name, event, at_ms, _ in faults_of(outcome.trace)}
    assert at_ms.pop(("together", "begin")) == pytest.approx(62_000, abs=1e-5)  # a nanosecond later
    assert at_ms == {
        ("few turns", "begin"): 60_000,
        ("stop", "begin"): 62_000,
        ("later", "begin"): 64_000,
        ("together", "end"): 65_000,
        ("stop", "end"): 67_000,
        ("later", "end"): 74_000,
        ("few turns", "end"): 100_000,
    }
    assert started_ms(outcome, "c2") == [CLIENT_MS["c2"], 65_000]


def test_a_shutdown_that_outlasts_its_fault_is_followed_by_the_start(tmp_path):
    outcome = run(tmp_path, cold_cluster(), *LONG_SHUTDOWN)
    assert started_ms(outcome, "c1") == [CLIENT_MS["c1"], 100_000]
    assert outcome.left == {}


def test_at_the_end_of_the_run_a_shutdown_goes_on_without_faults_and_leaves_nothing(tmp_path):
    late = (timed("few turns", "slow-cpu c1 900000", 60_000), timed("stop", "stop c1", 62_000))
    outcome = run(tmp_path, cold_cluster(), *late)
    assert started_ms(outcome, "c1")[1:] == [pytest.approx(END_MS, abs=1_000)]
    assert outcome.trace.end_ms == pytest.approx(END_MS, abs=1_000)
