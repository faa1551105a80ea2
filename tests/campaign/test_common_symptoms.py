"""The symptoms of many runs: those of most runs first, each with the run in which it was most severe."""

import math

import pyarrow as pa

from emulator.analysis.arrow_tables import SYMPTOMS
from emulator.campaign.campaign import Case
from emulator.campaign.measured import CommonSymptom, common_symptoms
from emulator.campaign.results import CaseResult, Outcome, line_of, read_line


def case_result(seed, *rows):
    table = [{"kind": kind, "severity": severity, "start_ns": 0, "text": text} for kind, severity, text in rows]
    findings = {SYMPTOMS.name: pa.Table.from_pylist(table, schema=SYMPTOMS.schema())}
    return CaseResult(case=Case("calm", seed), outcome=Outcome.COMPLETE, findings=findings)


def test_most_runs_come_first_and_the_most_severe_run_is_named():
    runs = [
        case_result(1, ("lost messages", math.inf, "9 lost")),
        case_result(2, ("churn", 7.0, "churn of g"), ("churn", 2.0, "churn of h")),
        case_result(3, ("churn", 8.0, "churn of i")),
        CaseResult(case=Case("calm", 4), outcome=Outcome.HUNG),
    ]
    assert common_symptoms(runs) == [
        CommonSymptom("churn", 2, Case("calm", 3), 8.0, "churn of i"),
        CommonSymptom("lost messages", 1, Case("calm", 1), math.inf, "9 lost"),
    ]


def test_the_severity_of_lost_messages_survives_in_the_line_of_a_case():
    item = case_result(1, ("lost messages", math.inf, "9 lost"))
    assert common_symptoms([read_line(line_of(item).encode())]) == common_symptoms([item])
