"""Two applications in one producer group, and an unordered group of a FIFO topic: each with its healthy twin."""

from pathlib import Path

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.worst import worst_answers

SHARED_GROUP = """
[scenario]
name = "shared-group"
run_for_s = 120
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = { transactionTimeOut = 6000, transactionCheckInterval = 10000 }
[[topic]]
name = "payments"
queues = 2
message_type = "TRANSACTION"
[[topic]]
name = "refunds"
queues = 2
message_type = "TRANSACTION"
[[consumer]]
group = "ledger"
topics = ["payments", "refunds"]
[[producer]]
name = "pay"
group = "money"
topic = "payments"
rate_per_s = 1
messages = 20
local_transaction = "unknown"
check_local_transaction = "commit"
[[producer]]
name = "refund"
group = "GROUP"
topic = "refunds"
rate_per_s = 1
messages = 20
local_transaction = "commit"
check_local_transaction = "rollback"
"""
FIFO = """
[scenario]
name = "fifo-simple"
run_for_s = 60
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
mode = "simple"
count = 2
consume_ms = 900
orderly = ORDERLY
options = { maxMessageNum = 1 }
[[producer]]
group = "planner"
topic = "steps"
endpoints = ["proxy-1"]
fifo = true
keys = { count = 1 }
rate_per_s = 1
messages = 30
"""


def judged(text: str, runs: Path):
    run = open_run(run_scenario(loads(text, "case"), runs=runs).path)
    return judge_run(run), run


def found(report, kind):
    return [item.text for item in symptoms(report) if item.kind is kind and item.severity > 1]


def test_half_of_the_payments_are_rolled_back_by_the_application_of_refunds(tmp_path):
    report, run = judged(SHARED_GROUP.replace("GROUP", "money"), tmp_path)
    (text,) = found(report, SymptomKind.ROLLED_BACK)
    lines = [line for item in worst_answers(report, run) for line in item.lines]

    assert report.verdict == "valid"
    assert text.startswith("10 messages of payments were rolled back by a producer of their group that sends none")
    assert any("refund rolled it back, which did not send it" in line for line in lines)


def test_half_of_the_payments_are_committed_by_the_application_of_refunds(tmp_path):
    text = SHARED_GROUP.replace("GROUP", "money").replace('= "rollback"', '= "commit"')
    report, run = judged(
        text.replace('check_local_transaction = "commit"', 'check_local_transaction = "rollback"', 1), tmp_path
    )
    (text,) = found(report, SymptomKind.COMMITTED_BY_ANOTHER)
    lines = [line for item in worst_answers(report, run) for line in item.lines]

    assert report.verdict == "valid"
    assert text == (
        "10 transactions of payments were committed by a producer of their group that sends none of this topic, from "
        "11.0 s on"
    )
    assert any("refund committed it, which did not send it" in line for line in lines)


def test_applications_with_groups_of_their_own_roll_back_their_own(tmp_path):
    report, _ = judged(SHARED_GROUP.replace("GROUP", "refunds"), tmp_path)
    assert symptoms(report) == ()


def test_a_group_that_is_not_ordered_gets_a_fifo_topic_out_of_order(tmp_path):
    report, _ = judged(FIFO.replace("ORDERLY", "false").replace("= 900", "= 1500"), tmp_path)
    (text,) = found(report, SymptomKind.OUT_OF_ORDER)

    assert report.verdict == "valid"
    assert text.startswith("1 key of steps came to workers out of order: 0 messages after a later one")
    assert text.endswith("consumeMessageOrderly")


def test_an_ordered_group_gets_it_in_order(tmp_path):
    report, _ = judged(FIFO.replace("ORDERLY", "true"), tmp_path)
    assert symptoms(report) == ()
