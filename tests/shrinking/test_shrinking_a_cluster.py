"""A failure of a whole cluster is shrunk to its two faults, with the causes in the trace as a hint."""

import shutil
from itertools import pairwise

import pytest

from emulator.run import run_scenario
from emulator.shrinking import shrink
from emulator.spec import loads
from emulator.trace.schema import MESSAGES
from support.run_rows import table_rows

NEEDED = {"kill-a": ("kill broker-a", 10), "kill-b": ("kill broker-b", 12)}
OTHERS = {
    "slow": ("delay 20 c1 jitter 5", 3), "lossy": ("loss 5 c2", 6), "frozen": ("suspend c2", 8),
    "deaf": ("cut c1 ns-1", 11), "disk": ("slow-disk broker-b 20", 14), "wrong": ("skew broker-a -500", 15),
}  # fmt: skip
FAULTS = "\n".join(
    f'[[fault]]\nid = "{fault_id}"\ndo = "{do}"\nat_s = {at_s}\nfor_s = 12'
    for fault_id, (do, at_s) in (OTHERS | NEEDED).items()
)
SCENARIO = loads(
    f"""
[scenario]
name = "outage"
run_for_s = 40
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
[[producer]]
group = "p"
topic = "orders"
{FAULTS}
""",
    "outage.toml",
)


def is_out(run):
    """Whether no message was stored for 5 s, although there are two brokers that store messages."""
    rows = [row for row in table_rows(run, MESSAGES, ("t_ns", "event", "node")) if row["event"] == "stored"]
    gaps_ns = (after["t_ns"] - before["t_ns"] for before, after in pairwise(rows))
    return len(dict.fromkeys(row["node"] for row in rows)) == 2 and max(gaps_ns) > 5_000_000_000


@pytest.mark.slow
def test_an_outage_needs_both_kills_and_no_other_fault(tmp_path):
    def fails(scenario):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return is_out(run_scenario(scenario, runs=tmp_path / "run").path)

    lines = []
    found = shrink(SCENARIO, fails, likely=("kill-a", "kill-b"), progress=lines.append)

    assert {timed.id for timed in found.scenario.faults.faults} == {*NEEDED}
    assert found.is_minimal
    assert len([execute for execute in lines if execute.looks_at == "faults"]) <= 8
    assert found.scenario.consumers == ()
    assert len(found.scenario.brokers) == 2
    assert is_out(run_scenario(found.scenario, runs=tmp_path / "last").path)
