"""Answers with messages that were lost between a proxy and its client: by a fault, or since the client was dead."""

from pathlib import Path

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.report import Service, symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from emulator.why.worst import worst_answers
from why.why_runs import has

SCENARIO = """
[scenario]
name = "steps"
run_for_s = 90
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
[[topic]]
name = "steps"
queues = 1
message_type = "FIFO"
[[consumer]]
group = "workers"
topics = ["steps"]
mode = "push5"
orderly = true
[[producer]]
group = "planner"
topic = "steps"
endpoints = ["proxy-1"]
fifo = true
keys = { count = 1 }
rate_per_s = 1
"""
DROP = """
[[fault]]
kind = "drop"
code = "V2_RECEIVE_MESSAGE"
from = "proxy-1"
to = "consumer-1"
one_way = true
next = 1
at_s = 20
"""
KILL = """
[[fault]]
do = "kill consumer-1"
at_s = 20.2
for_s = 10
"""


def executed(fault: str, runs: Path):
    return open_run(run_scenario(loads(SCENARIO + fault, "steps"), runs=runs).path)


def lines_of(run):
    return [line for item in worst_answers(judge_run(run), run) for line in item.lines]


def test_a_client_whose_answer_a_fault_took_asks_again_with_the_same_attempt_id(tmp_path):
    run = executed(DROP, tmp_path)
    report = judge_run(run)
    late = next(item for item in symptoms(report) if item.kind is SymptomKind.LATENCY)
    reported = lines_of(run)

    assert report.verdict == "valid"
    assert late.text.startswith("a message of steps, stored at 20.7 s, took 23.0 s to workers")
    assert has(reported, "messages wait for group workers in 1 queue: broker-a handed it out at 20.692 s")
    assert has(reported, "of consumer-1 was lost at 20.693 s: drop-1 (drop proxy-1 -> consumer-1")
    assert has(reported, "consumer-1 asked again at 43.694 s, 23.001 s later")
    assert has(reported, "it was handed out again at 43.696 s, although it is hidden until 80.692 s")


def test_a_message_that_went_to_the_call_of_a_dead_client_says_so(tmp_path):
    run = executed(KILL, tmp_path)
    answer = answer_of_run(["message steps/broker-a/0@20"], run)

    assert answer[0] == "message steps/broker-a/0@20 was consumed once by group workers (consumer-1)"
    assert has(answer, "handed steps/broker-a/0@20 out to group workers, and consumer-1 did not get it")
    assert has(answer, "consumer-1 was killed at 20.200 s: the call was that of a dead client")
    assert has(answer, "it was handed out again at 80.692 s, when its invisible time was over")
    assert answer_of_run(["group workers at 15s"], run)[0].endswith(
        "1 member of mode CLUSTERING, and nothing is wrong with it"
    )


def test_answers_that_arrive_are_not_mentioned(tmp_path):
    run = executed("", tmp_path)

    assert judge_run(run).service is Service.CALM
    assert answer_of_run(["lag workers"], run)[0].startswith("at 90.000 s nothing of group workers waits")
    assert not has(answer_of_run(["message steps/broker-a/0@20"], run), "did not get it")
