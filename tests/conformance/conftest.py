"""Which families are compared: those in `tests/vectors`, or in the folder that VECTORS names."""

import os
from pathlib import Path

import pytest

from conformance.vectors import Case, Question, files_of_families, read_cases

OURS = Path(__file__).parents[1] / "vectors"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # A family is one test: 5,200 tests of a millisecond each would cost every worker seconds to collect.
    if "family" in metafunc.fixturenames:
        metafunc.parametrize("family", sorted(_files()))


@pytest.fixture
def cases(family: str) -> list[Case | Question]:
    """All cases of the family."""
    return [case for path in _files()[family] for case in read_cases(path)]


def _files() -> dict[str, list[Path]]:
    folder = Path(os.environ.get("VECTORS") or OURS)
    if not folder.is_dir():
        raise pytest.UsageError(f"VECTORS: there is no folder {folder}")
    files = files_of_families(folder)
    if not files:
        raise pytest.UsageError(f"VECTORS: no file of cases below {folder}; files end in .jsonl, .jsonl.gz or .xz")
    return files
