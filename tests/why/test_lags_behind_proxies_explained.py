"""Messages that wait for clients of RocketMQ 5: their proxy does not run, they do not reach it, or they are slow."""

from pathlib import Path

import pytest

from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from why.why_runs import has

SCENARIO = """
[scenario]
name = "behind-proxies"
run_for_s = {run_for_s}
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
[[proxy]]
name = "proxy-2"
[[topic]]
name = "orders"
queues = 2
[[consumer]]
group = "billing"
topics = ["orders"]
mode = "{mode}"
endpoints = ["proxy-1"]
consume_ms = {consume_ms}
[[producer]]
group = "till"
topic = "orders"
rate_per_s = 5
endpoints = ["proxy-2"]
"""
FAULT = """
[[fault]]
do = "{do}"
at_s = 10
for_s = 60
"""
MODES = pytest.mark.parametrize("mode", ["push5", "simple"])


def answered(runs: Path, question: str, mode: str, *, do: str = "", consume_ms: int = 0, run_for_s: int = 40):
    text = SCENARIO.format(mode=mode, consume_ms=consume_ms, run_for_s=run_for_s)
    scenario = loads(text + (FAULT.format(do=do) if do else ""), "behind-proxies")
    return answer_of_run([question], open_run(run_scenario(scenario, runs=runs).path))


@MODES
@pytest.mark.parametrize(("do", "word"), [("suspend proxy-1", "suspended"), ("kill proxy-1", "killed")])
def test_a_proxy_that_does_not_run_keeps_all_messages_of_its_clients(tmp_path, mode, do, word):
    lines = answered(tmp_path, "lag billing at 38s", mode, do=do)
    assert has(lines[:1], "messages wait for group billing", f"no proxy of billing runs: proxy-1 ({word} at 10.000 s)")
    assert has(lines, "operator", "proxy-1")


@MODES
def test_a_client_that_does_not_reach_its_proxy_is_said_not_to_reach_that(tmp_path, mode):
    lines = answered(tmp_path, "lag billing at 38s", mode, do="cut consumer-1 proxy-1")
    assert has(lines, "consumer-1 does not reach proxy-1 since 10.")
    assert not has(lines, "does not reach broker-a")


def test_what_a_slow_client_has_received_waits_for_its_listener(tmp_path):
    lines = answered(tmp_path, "lag billing at 38s", "push5", consume_ms=10_000)
    assert has(lines[:1], "wait for group billing", "the listener of consumer-1 is slow", "5 a second stored")


def test_a_client_that_is_fast_enough_leaves_nothing(tmp_path):
    lines = answered(tmp_path, "lag billing at 38s", "push5", consume_ms=100)
    assert has(lines[:1], "nothing of group billing waits")
