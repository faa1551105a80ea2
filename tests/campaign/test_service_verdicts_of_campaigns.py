"""The service verdict of each run of a campaign: in its line, tables, JUnit, exit status, page, and what comes next."""

import math
from xml.etree import ElementTree as ET

import attrs
import pytest

import emulator
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.report import Service
from emulator.campaign.campaign import Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import HEAD, CampaignError, claim
from emulator.campaign.execution import exit_status, service_tally
from emulator.campaign.file import load_campaign
from emulator.campaign.junit import junit
from emulator.campaign.measured import worst_first
from emulator.campaign.results import CaseResult, Outcome, line_of, read_line
from emulator.cli.campaign_tables import next_steps, summary
from emulator.cli.terminal import tables_console
from emulator.report import campaign_page
from emulator.trace.seals import sealed, unsealed
from support.campaigns import measured_run, with_symptoms, write_campaign, write_lines

STORM = Symptom(SymptomKind.STORM, 800.0, 30_000_000_000, "consumer-1 asked broker-a 159,995 times")
CHURN = Symptom(SymptomKind.CHURN, 2.0, 9_000_000_000, "g took queues of orders 40 times")
PAGING = with_symptoms(measured_run("baseline", 1), STORM, CHURN)
DEGRADED = with_symptoms(measured_run("baseline", 2), CHURN)
CALM = with_symptoms(measured_run("calm", 1))
BROKEN = with_symptoms(measured_run("calm", 2, "V2"), CHURN)
HUNG = CaseResult(case=Case("calm", 3), outcome=Outcome.HUNG, reasons=("it had not ended after 300 s",))


@pytest.fixture
def dataset(tmp_path):
    directory = claim(tmp_path / "it", load_campaign(write_campaign(tmp_path)))
    write_lines(directory, (PAGING, DEGRADED, CALM, BROKEN, HUNG))
    return CampaignResults(directory.path)


@pytest.mark.parametrize("item", [PAGING, DEGRADED, CALM, HUNG], ids=["paging", "degraded", "calm", "hung"])
def test_a_line_bears_the_service_verdict_and_a_hung_run_has_none(item):
    assert read_line(line_of(item).encode()).service == item.service


def test_a_line_without_it_is_of_another_version_and_damaged(dataset):
    (part,) = (dataset.directory.path / "parts").iterdir()
    lines = [unsealed(line) for line in part.read_bytes().splitlines()]
    del lines[0]["service"]
    part.write_text("".join(f"{sealed(line)}\n" for line in lines))

    again = CampaignResults(dataset.directory.path)

    assert again.damages == (f"{part}:1 is damaged and was left out: 'service'",)
    assert again.case_results()[0].outcome is Outcome.MISSING


def test_a_campaign_of_the_version_without_it_is_refused_in_one_line(dataset):
    path = dataset.directory.path
    head = unsealed((path / HEAD).read_bytes())
    (path / HEAD).write_text(sealed({**head, "campaign_version": 6}))

    with pytest.raises(CampaignError, match=r"^\S+ has campaign version 6, this program has 8: use the release"):
        CampaignResults(path)


def test_services_are_counted_per_variant_without_runs_that_have_none(dataset):
    assert {name: dict(count) for name, count in service_tally(dataset.case_results()).items()} == {
        "baseline": {"calm": 0, "degraded": 1, "paging": 1},
        "calm": {"calm": 1, "degraded": 1, "paging": 0},
    }


@pytest.mark.parametrize(
    ("every", "by_rules", "with_service"),
    [
        ((CALM, DEGRADED), 0, 0),
        ((CALM, PAGING), 0, 1),
        ((HUNG, PAGING), 2, 1),
        ((HUNG, DEGRADED), 2, 2),
        ((BROKEN, CALM), 1, 1),
    ],
    ids=["a degraded run does not fail", "a paging run fails", "paging before unknown", "unknown", "invalid"],
)
def test_the_exit_status_follows_from_rules_and_from_service_where_it_is_wanted(every, by_rules, with_service):
    assert (exit_status(every), exit_status(every, service=True)) == (by_rules, with_service)


def test_junit_has_both_verdicts_of_each_run_and_failures_by_rules_alone(dataset):
    suites = ET.fromstring(junit(dataset))

    texts = {(case.get("classname"), case.get("name")): case.findtext("system-out") for case in suites.iter("testcase")}
    assert texts["it.baseline", "seed 1"] == (
        "rules valid, service paging: request storm: consumer-1 asked broker-a 159,995 times"
    )
    assert texts["it.baseline", "seed 2"].startswith("rules valid, service degraded: churn: ")
    assert texts["it.calm", "seed 1"] == "rules valid, service calm"
    assert texts["it.calm", "seed 2"].startswith("rules invalid, service degraded: ")
    assert texts["it.calm", "seed 3"] is None
    assert [suite.get("failures") for suite in suites] == ["0", "1"]


def test_the_table_of_variants_has_a_column_for_each_service_verdict(dataset):
    console = tables_console()
    with console.capture() as printed:
        console.print(summary([item for item in dataset.case_results() if item.outcome is not Outcome.MISSING]))

    lines = printed.get().splitlines()
    assert lines[0].split()[:8] == ["variant", "runs", "valid", "invalid", "hung", "calm", "degraded", "paging"]
    assert lines[1].split()[:8] == ["baseline", "2", "2", "0", "0", "0", "1", "1"]
    assert lines[2].split()[:8] == ["calm", "3", "1", "1", "1", "1", "1", "0"]


def test_a_valid_run_that_pages_is_named_with_its_most_severe_symptom_and_its_command(dataset):
    lines = next_steps(dataset, dataset.case_results())

    at = next(place for place, line in enumerate(lines) if "would page somebody" in line)
    assert lines[at] == (
        "baseline: 1 of 4 runs are valid and would page somebody; the most severe symptom, seed 1: request storm: "
        "consumer-1 asked broker-a 159,995 times"
    )
    assert lines[at + 1] == f"  run it again    {dataset.directory.command(Case('baseline', 1))}"
    assert sum("would page somebody" in line for line in lines) == 1


def test_of_valid_runs_the_one_that_pages_is_the_worst():
    lost = with_symptoms(measured_run("baseline", 4, duplicates=90), attrs.evolve(CHURN, severity=2.5))

    assert [item.case.seed for item in worst_first([DEGRADED, lost, PAGING])] == [1, 4, 2]


def test_the_most_severe_symptom_may_be_infinite():
    lost = with_symptoms(measured_run("baseline", 1), attrs.evolve(STORM, kind=SymptomKind.LOST, severity=math.inf))

    assert read_line(line_of(lost).encode()).service is Service.PAGING


def test_the_page_of_a_campaign_has_both_verdicts(dataset):
    page = campaign_page(dataset)

    columns = "".join(f'<th class="number">{word}</th>' for word in ("calm", "degraded", "paging"))
    assert columns in page
    assert '<td class="">valid</td><td class="">paging</td><td class="">request storm: consumer-1 asked' in page


def test_outcomes_and_frames_of_a_notebook_have_both_verdicts(dataset):
    outcomes = {(row["variant"], row["seed"]): row for row in dataset.outcomes().to_pylist()}
    traces = emulator.traces(dataset.directory.path)

    assert (outcomes["baseline", 1]["verdict"], outcomes["baseline", 1]["service"]) == ("valid", "paging")
    assert (outcomes["calm", 3]["outcome"], outcomes["calm", 3]["service"]) == ("hung", None)
    by_run = traces.runs().set_index("run")
    assert list(by_run.loc[["baseline-seed1", "calm-seed2"], "service"]) == ["paging", "degraded"]
    assert list(by_run.loc[["baseline-seed1", "calm-seed2"], "verdict"]) == ["valid", "invalid"]
    assert repr(traces).endswith("1 invalid, 1 hung; service 2 degraded, 1 paging, 1 calm")
