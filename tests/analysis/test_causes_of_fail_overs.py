"""Chains through another broker: an elected master, a slave that acts for one, one that lists a client twice.

What is expected was found by leaving the fault out: without it the harm is not there, or nearly.
"""

from pathlib import Path

import pytest

from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run

EXAMPLES = Path(__file__).parents[2] / "examples"
CAUSED = {
    # The controller that sleeps elects another master when it wakes, and the master does not know yet.
    "controller/fail_over/c1_stop_leader": (
        "leader-frozen",
        ("failed sends", "lost messages", "lost topic", "offsets that fell", "stale routes"),
    ),
    # A master whose replicas are out of reach keeps messages from consumers, and is replaced meanwhile.
    "controller/incidents/isolated_with_a_slave": (
        "site",
        ("consumer lag", "failed sends", "late messages", "lost topic", "request storm", "stalled queues"),
    ),
    # Three replicas at one address are three nodes.
    "rip32/p1_kill": ("master-away", ("no writable queue", "offsets that fell", "stale routes")),
    # A client that is listed once for each connection that it had leaves queues to nobody.
    "woken_broker": ("frozen-broker", ("consumer lag", "failed sends", "late messages", "no owner", "stalled queues")),
    # What a slave does for its master it writes to brokers of other groups.
    "special/fail_over": (
        "master-away",
        ("messages consumed again", "offsets that fell", "popped messages consumed again"),
    ),
}
FEWER_MESSAGES = (("rate_per_s = 50\nmessages = 2000", "rate_per_s = 5\nmessages = 200"),)
"""Of a run of ten minutes in which a tenth shows the same."""


@pytest.mark.parametrize("name", CAUSED)
def test_what_follows_from_another_master_follows_from_what_took_the_first_away(tmp_path, name):
    fault, kinds = CAUSED[name]
    text = (EXAMPLES / f"{name}.toml").read_text()
    for many, fewer in FEWER_MESSAGES:
        text = text.replace(many, fewer)
    path = run_scenario(loads(text, name), runs=tmp_path).path
    impacts = [item for item in judge_run(open_run(path)).of(IMPACTS) if item.kind in kinds]

    assert {item.kind for item in impacts} == set(kinds)
    for item in impacts:
        assert item.causes[0].id == fault, item
        assert item.causes[0].total > 0.4, item
