"""The pages name every oracle and every symptom."""

from pathlib import Path

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.oracles.every import oracle_table
from emulator.spec.model.service_limits import ServiceLimits

_README = (Path(__file__).parents[2] / "emulator" / "analysis" / "README.md").read_text()


def test_the_readme_has_the_table_of_all_oracles():
    assert f"\n\n{oracle_table()}\n\n" in _README


def test_the_readme_has_a_row_for_every_symptom():
    assert [kind for kind in SymptomKind if f"\n| {kind.value} | " not in _README] == []


def test_the_readme_names_every_service_limit_with_its_default():
    missing = [
        field.name
        for field in attrs.fields(ServiceLimits)
        if f"`{field.name}` {field.default:,}" not in _README and f"`{field.name}` ({field.default:,})" not in _README
    ]
    assert missing == []
