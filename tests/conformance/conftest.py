"""Which sequences are run: those in `tests/vectors`, or in the folder that VECTORS names."""

import os
from pathlib import Path

import pytest

from conformance.families import ADAPTERS, ANSWERERS, EXCEPTED
from conformance.vectors import Case, Question, read_cases

OURS = Path(__file__).parents[1] / "vectors"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        known = [case for case in _cases() if case.family in ADAPTERS or case.family in ANSWERERS]
        metafunc.parametrize("case", [_parameter(case) for case in known])
    if "family" in metafunc.fixturenames:
        metafunc.parametrize("family", sorted({case.family: None for case in _cases()}))


@pytest.fixture
def cases() -> list[Case | Question]:
    return _cases()


_read: dict[Path, list[Case | Question]] = {}


def _cases() -> list[Case | Question]:
    folder = Path(os.environ.get("VECTORS") or OURS)
    if folder not in _read:
        if not folder.is_dir():
            raise pytest.UsageError(f"VECTORS: there is no folder {folder}")
        _read[folder] = read_cases(folder)
        if not _read[folder]:
            raise pytest.UsageError(f"VECTORS: no case of 5.3.3 below {folder}; files end in .jsonl, .jsonl.gz or .xz")
    return _read[folder]


def _parameter(case: Case | Question) -> object:
    reason = EXCEPTED.get((case.family, case.name))
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(case, id=str(case), marks=marks)
