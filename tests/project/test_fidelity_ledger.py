"""The ledger says what the tests say, about every trap."""

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from emulator.fidelity.ledger import Status, TrapMark, catalogue, ledger, lines_of, recorded_marks, summary
from support.every_case import each_case
from support.trap_marks import COLLECTED, MarkError, dump, read_mark

TESTS = Path(__file__).parents[1]
PARTS = "MCYXPKAGS"
"""In the order of the catalogue."""


def test_the_catalogue_numbers_the_traps_of_each_part_from_1_without_a_gap():
    counts = Counter(trap.id[0] for trap in catalogue())
    expected = [f"{part}{number}" for part in PARTS for number in range(1, counts[part] + 1)]

    assert [trap.id for trap in catalogue()] == expected
    assert all(counts[part] for part in PARTS)


def test_every_trap_has_a_title_of_its_own():
    titles = [trap.title for trap in catalogue()]

    assert len(dict.fromkeys(titles)) == len(titles)


def test_a_trap_has_tests_or_a_reason_to_be_absent_and_never_both():
    marked = dict.fromkeys(mark.trap for mark in recorded_marks())

    assert [trap.id for trap in catalogue() if bool(trap.absent) == (trap.id in marked)] == []


@cache
def documented_words():
    """Not made while tests are collected, for which all others wait."""
    files = [path for room in ("nodes", "emulator/guests") for path in (TESTS.parent / room).rglob("*.py")]
    return frozenset(word for path in files for word in re.findall(r"\w+", path.read_text("utf-8")))


@each_case("row", ledger(), ids=lambda row: row.trap)
def test_a_trap_is_a_sentence_and_names_classes_of_rocketmq_that_ours_mirror(row):
    first, *others = lines_of(row)

    assert re.fullmatch(rf'{row.trap}: ["A-Z].*[^.]\.', first)
    assert len(row.title.split()) > 4
    assert row.mirrors
    for name in row.mirrors:
        assert re.fullmatch(r"[A-Z]\w+(\.\w+)?", name)
        assert name.partition(".")[0] in documented_words(), "no docstring of nodes or of guests names this class"
    assert others[-1].startswith("  see it" if row.tests else "  see it   no test shows it")


def test_each_test_of_the_ledger_exists():
    missing = [
        mark.test
        for mark in recorded_marks()
        if not re.search(
            rf"^\s*(async )?(def|class) {mark.test.rpartition('::')[2]}\b",
            (TESTS.parent / mark.test.partition("::")[0]).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    ]

    assert missing == [], "make ledger"


def test_the_readme_has_the_counts_of_the_ledger():
    lines = [line.strip() for line in (TESTS.parent / "nodes" / "README.md").read_text().splitlines()]

    assert summary(ledger()) in lines, "`rmqemu fidelity` prints this line"


def marks_below(folder, ledger):
    """What a collection in a process of its own finds; the folder is called tests."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", f"--ledger={ledger}"]
    done = subprocess.run([*command, "tests"], cwd=folder.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [tuple(entry.values()) for entry in json.loads(ledger.read_text())]


def test_the_recorded_marks_are_those_of_the_tests(request):
    """Of the files that were collected, and of those that are gone: `make test` collects all."""
    collected = request.config.stash[COLLECTED]
    unread = {str(path.relative_to(TESTS.parent)) for path in set(TESTS.rglob("test_*.py")) - collected.files}
    recorded, found = (
        [mark for mark in marks if mark.test.partition("::")[0] not in unread]
        for marks in (recorded_marks(), collected.marks)
    )

    assert recorded == found, "make ledger writes them again"


def test_the_ledger_has_one_row_per_trap():
    assert [row.trap for row in ledger()] == [trap.id for trap in catalogue()]


def test_a_trap_is_reproduced_when_all_its_tests_say_so_and_simplified_when_one_says_how():
    marks = (
        TrapMark("M1", "one"),
        TrapMark("M1", "two"),
        TrapMark("M2", "three"),
        TrapMark("M2", "four", Status.SIMPLIFIED, "coarser"),
    )
    first, second, third = ledger(marks)[:3]

    assert (first.status, first.tests, first.note) == (Status.REPRODUCED, ("one", "two"), "")
    assert (second.status, second.tests, second.note) == (Status.SIMPLIFIED, ("three", "four"), "coarser")
    assert (third.status, third.tests, third.note) == (Status.ABSENT, (), catalogue()[2].absent)


SUITE = """
import pytest
pytestmark = pytest.mark.trap("C2")
@pytest.mark.guests
@pytest.mark.trap("M2", status="simplified", note="how")
class TestThem:
    @pytest.mark.trap("M1")
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.trap("C1")), 2])
    def test_it(self, x): ...
    def test_another(self): ...
def test_that_is_selected(): ...
"""


@pytest.fixture
def suite(tmp_path):
    """A folder with tests of somebody who marks traps as we do."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tmp_path / "pyproject.toml").write_text((TESTS.parent / "pyproject.toml").read_text())
    (tests / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tests / "support").symlink_to(TESTS / "support")
    return tests


def test_marks_are_found_on_functions_classes_parameters_and_modules_of_deselected_tests_too(suite, tmp_path):
    (suite / "test_marked.py").write_text(SUITE)

    assert marks_below(suite, tmp_path / "ledger.json") == [
        ("M1", "tests/test_marked.py::TestThem::test_it", "reproduced", ""),
        ("M2", "tests/test_marked.py::TestThem", "simplified", "how"),
        ("C1", "tests/test_marked.py::TestThem::test_it", "reproduced", ""),
        ("C2", "tests/test_marked.py", "reproduced", ""),
    ]


def test_a_mark_that_means_nothing_ends_the_collection(suite, tmp_path):
    (suite / "test_marked.py").write_text('import pytest\n@pytest.mark.trap("M73")\ndef test_it(): ...\n')

    with pytest.raises(AssertionError, match=r"tests/test_marked\.py::test_it: no trap is called 'M73'"):
        marks_below(suite, tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()


def test_a_file_that_cannot_be_read_leaves_the_ledger_as_it_was(suite, tmp_path):
    (suite / "test_marked.py").write_text(SUITE)
    (suite / "test_broken.py").write_text("import nothing_of_that_name\n")

    with pytest.raises(AssertionError, match="nothing_of_that_name"):
        marks_below(suite, tmp_path / "ledger.json")
    assert not (tmp_path / "ledger.json").exists()


def test_the_text_of_the_ledger_is_the_same_for_the_same_marks():
    assert dump([TrapMark("M1", "t")]) == (
        '[\n {\n  "trap": "M1",\n  "test": "t",\n  "status": "reproduced",\n  "note": ""\n }\n]\n'
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        (("M73",), {}, "no trap is called 'M73'"),
        ((), {}, "no trap is called ''"),
        (("M1",), {"status": "absent"}, "not 'absent'"),
        (("M1",), {"status": "simplified"}, "a note says how M1 is simplified"),
        (("M1",), {"note": "but"}, "is there only then"),
        (("M1",), {"reason": "x"}, "takes id, status and note"),
        (("M1", "reproduced", "", "more"), {}, "takes id, status and note"),
    ],
)
def test_a_mark_that_means_nothing_is_refused(args, kwargs, problem):
    with pytest.raises(MarkError, match=problem):
        read_mark("test", args, kwargs)
