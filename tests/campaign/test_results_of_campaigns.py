"""What is made of the lines of a campaign: findings of all runs, figures per variant, exit status, JUnit XML."""

from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.analysis.report import RulesVerdict
from emulator.campaign.campaign import Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import claim
from emulator.campaign.execution import exit_status, tally
from emulator.campaign.file import load_campaign
from emulator.campaign.junit import junit
from emulator.campaign.results import CaseResult, Outcome
from emulator.trace.files import RunFiles
from support.campaigns import write_campaign


def overlaps(*starts_ns):
    return {"overlaps": pa.table({"start_ns": pa.array(starts_ns, pa.int64())})}


VALID = CaseResult(
    case=Case("baseline", 1), outcome=Outcome.COMPLETE, verdict=RulesVerdict.VALID, wall_s=2.0, findings=overlaps()
)
INVALID = CaseResult(
    case=Case("calm", 1),
    outcome=Outcome.COMPLETE,
    verdict=RulesVerdict.INVALID,
    reasons=("2 queues had <two> owners\x00", "and more"),
    wall_s=0.25,
    findings=overlaps(5, 7),
)
UNKNOWN = CaseResult(case=Case("baseline", 2), outcome=Outcome.COMPLETE, reasons=("nothing to judge",))
HUNG = CaseResult(case=Case("calm", 2), outcome=Outcome.HUNG, reasons=("it had not ended after 300 s",))


@pytest.fixture
def dataset(tmp_path):
    directory = claim(tmp_path / "it", load_campaign(write_campaign(tmp_path)))
    part = directory.part(RunFiles())
    for case_result in (VALID, INVALID, UNKNOWN, HUNG):
        part.append(case_result)
    return CampaignResults(directory.path)


def test_findings_are_one_table_with_run_variant_and_seed_in_front(dataset):
    found = dataset.findings("overlaps")

    assert found.column_names == ["run", "variant", "seed", "start_ns"]
    assert found.to_pylist() == [
        {"run": "calm-seed1", "variant": "calm", "seed": 1, "start_ns": 5},
        {"run": "calm-seed1", "variant": "calm", "seed": 1, "start_ns": 7},
    ]
    with pytest.raises(KeyError, match="there is no table orphans; there are overlaps"):
        dataset.findings("orphans")


def test_tables_are_written_for_other_programs(dataset):
    folder = dataset.write_tables()

    assert sorted(path.name for path in folder.iterdir()) == ["outcomes.parquet", "overlaps.parquet"]
    assert pq.read_table(folder / "outcomes.parquet") == dataset.outcomes()
    assert pq.read_table(folder / "overlaps.parquet") == dataset.findings("overlaps")


def test_words_are_counted_per_variant(dataset):
    counts = tally(dataset.case_results())

    assert {variant: {word: n for word, n in count.items() if n} for variant, count in counts.items()} == {
        "baseline": {"valid": 1, "unknown": 1, "missing": 2},
        "calm": {"invalid": 1, "hung": 1, "missing": 2},
    }


@pytest.mark.parametrize(
    ("every", "status"),
    [((VALID,), 0), ((VALID, INVALID, HUNG), 1), ((VALID, UNKNOWN), 2), ((VALID, HUNG), 2), ((), 0)],
)
def test_the_status_is_that_of_the_worst_run(every, status):
    assert exit_status(every) == status


def test_junit_has_a_test_case_per_case_with_reasons_and_the_command_that_repeats_it(dataset):
    root = ET.fromstring(junit(dataset))
    calm = root[1]

    assert [suite.get("name") for suite in root] == ["it.baseline", "it.calm"]
    assert {key: calm.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "0.250",
    }
    assert [[element.tag for element in case] for case in (*root[0], *calm)] == [
        [], ["error"], ["skipped"], ["skipped"], ["failure"], ["error"], ["skipped"], ["skipped"],
    ]  # fmt: skip
    failure = calm[0][0]
    assert failure.get("message") == "2 queues had <two> owners\N{REPLACEMENT CHARACTER}"
    assert failure.text.splitlines()[1:] == ["and more", dataset.directory.command(Case("calm", 1))]
    assert (calm[0].get("classname"), calm[0].get("name")) == ("it.calm", "seed 1")
