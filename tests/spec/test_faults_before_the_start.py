"""What a fault cannot hit because it has not started: refused where it cannot be, a warning where it shows nothing."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.spec import SpecError, loads
from emulator.spec.refusals.start_checks import earliest_starts_ms
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import a_scenario, broker_groups, execute
from support.every_case import each_case

COLD = """
[scenario]
name = "cold"
run_for_s = 100
nameserver_start_spread_s = 2
start_spread_s = 20
[[nameserver]]
name = "ns-1"
[[broker]]
name = "a"
[[broker]]
name = "b"
start_after_s = 30
[[broker]]
name = "b"
id = 1
start_after_s = 31
[[topic]]
name = "t"
brokers = ["a", "b"]
[[consumer]]
group = "g"
names = ["c1"]
topics = ["t"]
options = {clientRebalance = false}
[[fault]]
"""


def read(fault: str):
    return loads(COLD + fault, "cold.toml")


def refusal(fault: str) -> str:
    with pytest.raises(SpecError) as error:
        read(fault)
    return str(error.value)


@each_case(
    ("fault", "start_ms", "first"),
    [
        ('do = "suspend b"\nat_s = 31', 32_000, "b"),
        ('do = "suspend b-s1, b"\nat_s = 31', 32_000, "b"),
        ('do = "suspend members of g"\nat_s = 32', 33_000, "c1"),
        ('do = "suspend acting master of b"\nat_s = 31', 32_000, "b"),
        ('do = "kill owner of t/b/0"\nat_s = 32', 33_000, "c1"),
        ("do = 'cut \"owner of t/b/0\" a'\nat_s = 32", 33_000, "c1"),
        ('do = "restart b"\nat_s = 31', 32_000, "b"),
        ('do = "permission b 4 topic t"\nat_s = 31', 32_000, "b"),
        ('do = "rebalance g assigner"\nat_s = 1', 2_000, "a"),
        ('do = "consume-mode g pop at b"\nat_s = 31', 32_000, "b"),
    ],
)
def test_what_needs_something_that_runs_is_refused_before_it_can(fault, start_ms, first):
    mistake = refusal(fault)
    assert mistake.startswith("cold.toml:28: fault[0].at_s: ")
    assert f"expected an instant not before {start_ms} ms, the earliest start of {first}: " in mistake
    assert read(fault.partition("at_s")[0] + f"at_ms = {start_ms}")


@pytest.mark.parametrize(
    "fault",
    [
        'do = "kill b"\nat_s = 1',
        'do = "power-off c1"\nat_s = 1',
        'do = "suspend a, b"\nat_s = 2',
        'do = "suspend *"\nat_s = 0',
        'do = "skew b 100"\nat_s = 0',
        'do = "permission b 4"\nat_s = 0',
        'do = "restart b with {slaveReadEnable = true}"\nat_s = 0',
        'do = "scale g 3"\nat_s = 0',
        'do = "cut c1 b"\nat_s = 0',
    ],
)
def test_what_waits_for_a_start_or_needs_none_is_accepted(fault):
    assert read(fault).faults.faults
    assert not [item for item in check(read(fault)) if item.name == "fault-ends-before-the-start"]


@pytest.mark.parametrize(
    ("fault", "start_ms"),
    [
        ('do = "kill b"\nat_s = 1\nfor_s = 10', 32_000),
        ('do = "skew b-s1 5"\nat_s = 1\nfor_s = 10', 33_000),
        ('do = "delay 5 c1 b"\nat_s = 1\nfor_s = 10', 32_000),
    ],
)
def test_a_fault_that_ends_before_anything_it_hits_has_started_is_warned_of(fault, start_ms):
    (warning,) = [item for item in check(read(fault)) if item.name == "fault-ends-before-the-start"]
    assert warning.consequence == (
        f"it ends at 11000 ms, and nothing that it hits starts before {start_ms} ms: it shows nothing"
    )


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(1, 100))
def test_no_node_starts_before_its_earliest_start(nameservers_ms, brokers_ms, after_ms, clients_ms, seed):
    scenario = a_scenario(
        nameservers=2, brokers=broker_groups("a", "b", slaves=1), consumers=2, rate_per_s=1, seed=seed
    )
    late = tuple(attrs.evolve(spec, start_after_ms=after_ms * i) for i, spec in enumerate(scenario.brokers))
    scenario = attrs.evolve(
        scenario,
        brokers=late,
        nameserver_start_spread_ms=nameservers_ms,
        broker_start_spread_ms=brokers_ms,
        start_spread_ms=clients_ms,
    )
    earliest_ms = earliest_starts_ms(scenario)
    starts = {row.node: row.at_ms for row in execute(scenario).select("lifecycle", event="started")}
    assert starts.keys() == earliest_ms.keys()
    assert [name for name, at_ms in starts.items() if at_ms < earliest_ms[name]] == []


def test_without_spreads_nodes_start_at_their_earliest_starts():
    scenario = a_scenario(brokers=broker_groups("a", "b", slaves=1))
    earliest_ms = earliest_starts_ms(scenario)
    starts = {row.node: row.at_ms for row in execute(scenario).select("lifecycle", event="started")}
    assert starts == earliest_ms
