"""Ten minutes at the console of a live cluster, recorded (`make session`), give the same views again in `sim`."""

import json
from pathlib import Path

from emulator.run import run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from sessions.view_changes import view_changes

RECORDED = Path(__file__).parent / "recorded"


def test_the_same_views_change_in_the_same_order_at_every_node(tmp_path):
    scenario = load(RECORDED / BY_HAND_FILE)
    recorded = json.loads((RECORDED / "view_changes.json").read_text())
    again = view_changes(run_scenario(scenario, runs=tmp_path).path)
    assert again.keys() == recorded.keys()
    assert {key: values for key, values in again.items() if values != recorded[key]} == {}


def test_the_session_was_ten_minutes_of_cuts_suspensions_kills_and_restarts():
    scenario = load(RECORDED / BY_HAND_FILE)
    assert scenario.run_for_ms >= 600_000
    kinds = {timed.fault.kind for timed in scenario.faults.faults}
    assert kinds >= {"cut", "suspend", "kill", "restart", "power_off"}


def test_without_what_was_done_by_hand_other_views_change(tmp_path):
    import attrs

    from faults.plan import Plan

    scenario = attrs.evolve(load(RECORDED / BY_HAND_FILE), faults=Plan())
    recorded = json.loads((RECORDED / "view_changes.json").read_text())
    assert view_changes(run_scenario(scenario, runs=tmp_path).path) != recorded
