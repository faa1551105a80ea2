"""No symptom of a run, and no broken invariant, is left without a question that its trace answers."""

import tomllib
from pathlib import Path

import pytest

from emulator.analysis.judge import judge_run
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.run_directory import open_run
from emulator.why.worst import worst_answers

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = (
    EXAMPLES / "proxies" / "foreign_handles.toml",
    EXAMPLES / "controller" / "incidents" / "missed_death.toml",
    EXAMPLES / "woken_broker.toml",
)
"""A proxy that dies, a broker group without a master, a broker that slept; `make proofs` asks of all examples."""
UNANSWERED = "no question of this trace has an answer"


def is_of_one_run(path: Path) -> bool:
    """Whether a file is a scenario that runs in virtual time."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return "campaign" not in tables and not tables["scenario"].get("guests")


EVERY = [path for path in sorted(EXAMPLES.rglob("*.toml")) if is_of_one_run(path)]


def unanswered(path: Path, runs: Path) -> tuple[int, list[str]]:
    """How many symptoms a run has, and what of it has no answer."""
    run = open_run(run_scenario(load(path), runs=runs).path)
    report = judge_run(run)
    without = [item.text for item in symptoms(report) if not item.questions]
    lines = [item.title[0] for item in worst_answers(report, run) if any(UNANSWERED in line for line in item.answer)]
    return len(symptoms(report)), [*without, *lines]


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_each_symptom_of_a_short_run_has_an_answer(path, tmp_path):
    number, without = unanswered(path, tmp_path)

    assert number
    assert without == []


@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_each_symptom_of_each_example_has_an_answer(path, tmp_path):
    _, without = unanswered(path, tmp_path)
    assert without == []
