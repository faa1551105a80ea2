"""The pages name every oracle and every symptom."""

import re
from pathlib import Path

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.spec.model.service_limits import ServiceLimits
from support.every_case import each_case

_HOME = Path(__file__).parents[2]
_README = (_HOME / "emulator" / "analysis" / "README.md").read_text(encoding="utf-8")
_PAGES = ("README.md", "examples/README.md", "examples/OPERATE.md", "emulator/STUDY.md")


def oracle_table():
    """The table for the README, in Markdown: id, invariant, and when it is violated."""
    rows = [f"| {item.id} | {item.title} | {item.definition} |" for item in ORACLES]
    return "\n".join(["| | invariant | what is found, and when it is a violation |", "|---|---|---|", *rows])


def test_the_readme_has_the_table_of_all_oracles():
    assert f"\n\n{oracle_table()}\n\n" in _README


@each_case("page", _PAGES)
def test_a_page_that_counts_the_oracles_counts_all(page):
    text = (_HOME / page).read_text(encoding="utf-8")

    assert dict.fromkeys(re.findall(r"V1 to (V\d+)", text)) == {ORACLES[-1].id: None}


def test_the_readme_has_a_row_for_every_symptom():
    assert [kind for kind in SymptomKind if f"\n| {kind.value} | " not in _README] == []


def test_the_readme_names_every_service_limit_with_its_default():
    missing = [
        field.name
        for field in attrs.fields(ServiceLimits)
        if f"`{field.name}` {field.default:,}" not in _README and f"`{field.name}` ({field.default:,})" not in _README
    ]
    assert missing == []
