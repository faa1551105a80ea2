"""Which sends failed and which processes could not start, who refused or was silent, and why."""

import pytest

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.report import Service, symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.testing import a_scenario
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from emulator.why.answer import answer_of_run
from emulator.why.question import WhyError
from emulator.why.worst import worst_answers
from why.why_runs import has

REMINDERS = """
[scenario]
name = "reminders"
run_for_s = 30
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ timerWheelEnable = {wheel} }}
[[topic]]
name = "reminders"
queues = 2
[[producer]]
group = "calendar"
topic = "reminders"
rate_per_s = 2
timer = "10s"
"""
CUT = """
[[fault]]
kind = "cut"
from = "broker-a"
to = "producer-1"
one_way = true
at_s = 10
for_s = 4
"""
NO_TYPE = """
[scenario]
name = "no-type"
run_for_s = 70
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
[[topic]]
name = "orders"
[[consumer]]
names = ["late-1"]
group = "late"
topics = ["orders"]
mode = "push5"
start_after_s = {start}
[[fault]]
do = "kill broker-a"
at_s = 5
for_s = 15
"""


def executed(text, tmp_path, level=TraceLevel.FULL):
    return open_run(run_scenario(loads(text, "it"), runs=tmp_path, level=level).path)


def of_kind(run, kind):
    return [item for item in symptoms(judge_run(run)) if item.kind is kind]


def lines_of(run):
    return [line for item in worst_answers(judge_run(run), run) for line in item.lines]


@pytest.mark.parametrize("level", [TraceLevel.FULL, TraceLevel.FINDINGS])
def test_sends_that_a_broker_without_a_timer_refuses_name_the_broker_and_its_answer(tmp_path, level):
    run = executed(REMINDERS.format(wheel="false"), tmp_path, level)
    report = judge_run(run)
    (symptom,) = of_kind(run, SymptomKind.FAILED_SENDS)

    assert (report.verdict, report.service) == ("valid", Service.PAGING)
    assert symptom.text.startswith("180 of 180 attempts of producer-1 to send failed (180 refused, 0 unanswered)")
    assert symptom.questions == (("sends", "of", "producer-1"),)
    reported = lines_of(run)
    assert has(reported, "  180 of 180 attempts of producer-1 to send failed: broker-a answered SYSTEM_ERROR (1)")
    remark = "accurate timer message is not enabled, timerWheelEnable is false"
    assert has(reported, remark) is (level is TraceLevel.FULL)


def test_a_broker_with_a_timer_refuses_nothing(tmp_path):
    run = executed(REMINDERS.format(wheel="true"), tmp_path)

    assert judge_run(run).service is Service.CALM
    answer = answer_of_run(["sends of producer-1"], run)
    assert answer == ("no attempt of producer-1 to send failed: 60 were acknowledged",)
    with pytest.raises(WhyError, match="ask `sends of producer-1`"):
        answer_of_run(["sends of producer-9"], run)


def test_sends_without_an_answer_name_the_fault_that_took_the_answers(tmp_path):
    run = executed(REMINDERS.format(wheel="true") + CUT, tmp_path)
    answer = answer_of_run(["sends"], run)

    assert "producer-1 to send failed: broker-a did not answer in time" in answer[0]
    assert has(answer, "cut-1 (cut broker-a -> producer-1) took 1 response of broker-a")
    assert answer_of_run(["sends at 9s"], run)[0].startswith("until 9.000 s no attempt of producer-1 to send failed")


def test_connections_that_could_not_be_opened_are_named_although_no_attempt_failed(tmp_path):
    kill = '[[fault]]\ndo = "kill broker-a"\nat_s = 10\nfor_s = 4\n'
    run = executed(REMINDERS.format(wheel="true") + kill, tmp_path)
    answer = answer_of_run(["sends"], run)

    assert has(answer, "broker-a was away: killed at 10.000 s")
    assert has(answer, "broker-a could not be connected (refused)")


def test_a_client_that_could_not_start_is_explained_by_what_its_proxy_did_not_know(tmp_path):
    run = executed(NO_TYPE.format(start=8), tmp_path)
    (symptom,) = of_kind(run, SymptomKind.NOT_STARTED)
    reported = lines_of(run)

    assert symptom.question[:2] == ("node", "late-1")
    assert has(reported, "late-1 could not start: [40402] CODE: 17  DESC: No topic route info")
    assert has(reported, "proxy-1 holds route orders: nothing")
    assert of_kind(executed(NO_TYPE.format(start=30), tmp_path / "well"), SymptomKind.NOT_STARTED) == []


def test_a_run_in_which_no_client_sends_has_no_question_about_sends(tmp_path):
    run = open_run(run_scenario(a_scenario(consumers=1, run_for_ms=5_000), runs=tmp_path).path)
    with pytest.raises(WhyError, match="no client has sent a message"):
        answer_of_run(["sends"], run)
