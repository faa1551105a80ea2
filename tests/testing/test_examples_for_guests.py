"""The scenarios next to which applications are run: each can be read, and breaks what its first line says."""

from pathlib import Path

import pytest

from emulator.spec import load
from emulator.time.mode import TimeMode

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIOS = {
    "half_cut": ["cut"],
    "frozen_nameserver": ["suspend"],
    "slow_broker": ["slow_disk", "delay"],
    "death_in_order": ["kill"],
    "storm_after_a_freeze": ["suspend"],
    "read_only_topic": ["permission"],
    "proxies": [],
}


def test_none_is_forgotten():
    assert sorted(path.stem for path in (EXAMPLES / "guests").glob("*.toml")) == sorted(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_begins_with_a_sentence_and_runs_without_a_guest_too(name, tmp_path):
    from emulator.run import run_scenario

    path = EXAMPLES / "guests" / f"{name}.toml"
    assert path.read_text().startswith("# ")
    scenario = load(path)
    assert [timed.fault.kind for timed in scenario.faults.faults] == SCENARIOS[name]
    result = run_scenario(scenario, mode=TimeMode.SIM, runs=tmp_path)
    assert result.manifest["rows"]["faults"] == 2 * len(SCENARIOS[name])


def test_the_cluster_of_the_readme_has_three_masters_and_no_one_else():
    scenario = load(EXAMPLES / "guests.toml")
    assert scenario.node_names() == ("ns-1", "broker-a", "broker-b", "broker-c")
