"""From a finding to its explanation: the worst one of each invariant, the question about it, the faults behind it."""

from pathlib import Path

import pytest

from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from emulator.why.worst import causes_of_symptoms, explanation, likely_faults, worst_findings

EXECUTED = Path(__file__).parents[1] / "verdicts" / "executed"
EXPECTED = {
    "offsets_again": (
        {"V4": "node broker-a at 123s", "V7": "node broker-a at 123.012s"},
        {"lost_writes-1", "power_off-2"},
    ),
    "frozen_owner": ({"V4": "queue orders/broker-a/2 of shop at 360.009s"}, {"suspend-1"}),
    "different_topics": (
        {"V2": "queue orders/broker-a/4 of shop at 299.999s", "V8": "queue refunds/broker-a/3 of shop at 299.999s"},
        set(),
    ),
    "keys_at_a_frozen_owner": (
        {
            "V3": "queue orders/broker-a/1 of billing at 260s",
            "V4": "queue orders/broker-a/1 of billing at 260.206s",
            "V12": "queue orders/broker-a/1 of billing at 162.418s",
        },
        {"suspend-1"},
    ),
    "different_tags": ({"V7": "queue orders/broker-a/1 of shop"}, set()),
}
"""Mapping scenario -> (question by invariant, ids of the faults that may matter)."""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_worst_finding_of_each_broken_invariant_is_explained(tmp_path, name):
    run = open_run(run_scenario(load(EXECUTED / f"{name}.toml"), runs=tmp_path).path)
    found = worst_findings(judge_run(run), run)
    explained = {item.invariant: explanation(item.questions, run) for item in found}
    questions, faults = EXPECTED[name]

    assert {invariant: " ".join(words) for invariant, (words, _) in explained.items()} == questions
    assert all(len(answer) > 3 for _, answer in explained.values())
    assert set(likely_faults(found)) == faults


def test_a_symptom_has_the_disturbances_on_its_chain_as_far_as_its_trace_reaches(tmp_path):
    scenario = load("acting-slave")
    run = open_run(run_scenario(scenario, runs=tmp_path).path)

    assert causes_of_symptoms(judge_run(run), run) == {
        "request storm": "kill ba at 60.0 s",
        "no writable queue": "kill ba at 60.0 s",
        "messages consumed again": "kill ba at 60.0 s",
    }
    counted = open_run(run_scenario(scenario, level=TraceLevel.COUNTS, runs=tmp_path / "counts").path)
    assert causes_of_symptoms(judge_run(counted), counted) == {"request storm": "kill ba at 60.0 s"}


PROXIES = """
[scenario]
name = "two-proxies"
run_for_s = 60
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
options = { grpcServerPort = 18081, useEndpointPortFromRequest = false }
[[proxy]]
name = "proxy-2"
options = { grpcServerPort = 18083, useEndpointPortFromRequest = false }
[[topic]]
name = "orders"
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
endpoints = ["proxy-1", "proxy-2"]
[[fault]]
do = "kill {proxy}"
at_s = 15
"""


def test_clients_whose_routes_name_a_dead_proxy_alone_are_explained_by_its_death(tmp_path):
    found = []
    for proxy in ("proxy-1", "proxy-2"):
        run = open_run(run_scenario(loads(PROXIES.replace("{proxy}", proxy), "two"), runs=tmp_path / proxy).path)
        found.append(causes_of_symptoms(judge_run(run), run))
    assert {"no proxy": "kill proxy-1 at 15.0 s"} in found or {"no proxy": "kill proxy-2 at 15.0 s"} in found
