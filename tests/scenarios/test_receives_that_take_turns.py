"""A simple consumer waits at one broker at a time, so a message of another one waits (rocketmq 9145, clients 913)."""

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run

CLUSTER = """
[scenario]
name = "turns"
run_for_s = 150
[nameserver]
count = 1
{brokers}
[[proxy]]
name = "proxy-1"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "billing"
topics = ["orders"]
mode = "{mode}"
consume_ms = {consume_ms}
[[producer]]
group = "till"
topic = "orders"
endpoints = ["proxy-1"]
rate_per_s = 1
messages = 60
"""
BROKER = '[[broker]]\nname = "{}"\n'
TURNS = "a simple consumer waits for messages of one broker after the other"


class Ended:
    """A run of the cluster, and what was found."""

    def __init__(self, runs, *, brokers=("broker-a", "broker-b"), mode="simple", consume_ms=0):
        text = "".join(map(BROKER.format, brokers))
        scenario = loads(CLUSTER.format(brokers=text, mode=mode, consume_ms=consume_ms), "turns")
        self.run = open_run(run_scenario(scenario, runs=runs).path)
        self.report = judge_run(self.run)
        self.stalled = [item for item in symptoms(self.report) if item.kind.value == "stalled queues"]


def test_a_message_of_a_broker_waits_while_all_receives_go_to_another_one(tmp_path):
    found = Ended(tmp_path)

    assert "V8" not in broken(found.report)
    (symptom,) = found.stalled
    assert [cause.what for cause in symptom.causes] == [TURNS]
    (reported,) = answer_of_run(list(symptom.question), found.run)
    assert "consumer-1 waits for messages of broker-" in reported
    assert "a receive asks one broker, and its calls take turns" in reported


@pytest.mark.parametrize(
    "given", [{"brokers": ("broker-a",)}, {"mode": "push5"}], ids=["one broker", "one receive for each broker"]
)
def test_who_asks_all_brokers_at_once_or_only_one_waits_for_none(tmp_path, given):
    found = Ended(tmp_path, **given)

    assert found.stalled == []


def test_a_consumer_that_works_is_slow_and_does_not_take_turns(tmp_path):
    found = Ended(tmp_path, consume_ms=4_000)

    assert TURNS not in [cause.what for item in found.stalled for cause in item.causes[:1]]
    assert found.stalled
