"""From a symptom to its cause: the disturbances on its chain. Findings of invariants: `verdicts/test_verdicts.py`."""

import attrs

from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from emulator.why.worst import causes_of_symptoms


def test_a_symptom_has_the_disturbances_on_its_chain_as_far_as_its_trace_reaches(tmp_path):
    scenario = attrs.evolve(load("acting-slave"), run_for_ms=130_000)
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
