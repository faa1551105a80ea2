"""Symptoms hit several groups, topics and users: each is listed, and the first screen counts those it does not name."""

import json
from io import StringIO

import pytest

from emulator.analysis.findings.symptom import Symptom, SymptomKind, SymptomsOfKind
from emulator.analysis.judge import judge_run
from emulator.analysis.rendering.first_screen import FirstScreen, print_first_screen
from emulator.analysis.rendering.picture import page
from emulator.analysis.rendering.shown_report import as_text
from emulator.analysis.report import Service, most_severe, symptoms
from emulator.base.rich_texts import Console
from emulator.report.run_page import run_page
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.worst import causes_of_symptoms, worst_answers
from support.every_case import each_case

GROUP = """
[[consumer]]
group = "{group}"
topics = ["orders"]
consume_ms = {consume_ms}
options = {{ consumeOrderly = true }}
"""
SCENARIO = """
[scenario]
name = "two-lag"
run_for_s = 60
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
queues = 2
[[producer]]
group = "shop"
topic = "orders"
rate_per_s = 10
"""
LATE = SymptomKind.LATENCY


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    groups = [("fast", 10), ("billing", 900), ("audit", 800)]
    text = SCENARIO + "".join(GROUP.format(group=name, consume_ms=consume_ms) for name, consume_ms in groups)
    return open_run(run_scenario(loads(text, "two"), runs=tmp_path_factory.mktemp("runs")).path)


def first_screen(run):
    report = judge_run(run)
    console = Console(width=200, file=StringIO())
    print_first_screen(FirstScreen(report, run.path, causes_of_symptoms(report, run)), console)
    return console.file.getvalue().splitlines()


def test_the_first_screen_names_the_worst_group_and_counts_the_others(run):
    lines = [line for line in first_screen(run) if line.startswith((f"{LATE}:", "consumer lag:"))]

    assert len(lines) == 2
    assert all(line.rstrip().endswith(", and 1 more group (audit)") and "billing" in line for line in lines)


def test_every_other_output_has_a_line_for_each_group(run):
    report = judge_run(run)
    late = [item for item in symptoms(report) if item.kind is LATE]
    plain = json.loads(report.to_json())["symptoms"]
    outputs = (" ".join(as_text(report).split()), page(report), run_page(report, run))

    assert [item.subject for item in late] == ["billing orders", "audit orders"]
    assert [item["subject"] for item in plain if item["kind"] == LATE] == ["billing orders", "audit orders"]
    assert all(item.text in output for item in late for output in outputs)


def test_why_answers_each_group_the_worst_in_full(run):
    report = judge_run(run)
    answers = {item.harm: item for item in worst_answers(report, run)}
    billing, audit = (answers[LATE, f"{group} orders"] for group in ("billing", "audit"))

    assert "wait for group billing in 2 queues: the listener of" in billing.answer[1]
    assert "wait for group audit in 2 queues: the listener of" in audit.answer[1]
    assert len(audit.answer) == 2 < len(billing.answer)
    assert {(item.kind, item.subject) for item in symptoms(report)} <= set(answers)
    assert len(most_severe(report)) < len(symptoms(report))


def test_groups_that_keep_up_have_none(tmp_path):
    text = SCENARIO + "".join(GROUP.format(group=name, consume_ms=10) for name in ("billing", "audit"))
    run = open_run(run_scenario(loads(text, "two"), runs=tmp_path).path)

    assert judge_run(run).service is Service.CALM
    assert not [line for line in first_screen(run) if "more group" in line]


def of(kind, *subjects, question=()):
    worst, *others = (Symptom(kind, 2.0, 0, "it is so.", subject, question) for subject in subjects)
    return SymptomsOfKind(worst, tuple(others)).text


@each_case(
    ("kind", "subjects", "more"),
    [
        (SymptomKind.DENIED, ("till", "shop"), "1 more user (shop)"),
        (SymptomKind.UNWRITABLE, ("a", "b", "c", "d"), "3 more topics (b, c, …)"),
        (SymptomKind.LAG, ("g a", "g b"), "1 more topic of g (b)"),
        (SymptomKind.LAG, ("g a", "h a", "g b", "i b"), "2 more groups (h, i) and 1 more topic of g (b)"),
        (SymptomKind.BUSY, ("broker-a send", "broker-a send", "broker-a send"), "2 more times"),
        (SymptomKind.BUSY, ("broker-a send", "broker-b pull"), "1 more node (broker-b)"),
        (SymptomKind.DISCARDED, ("orders", "refunds"), "1 more topic (refunds)"),
        (SymptomKind.FAILED_SENDS, ("p1", "p2"), "1 more producer (p2)"),
    ],
)
def test_others_are_counted_by_what_they_are(kind, subjects, more):
    assert of(kind, *subjects) == f"it is so, and {more}"
    assert of(kind, subjects[0]) == "it is so."
