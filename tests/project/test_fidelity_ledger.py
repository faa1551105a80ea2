"""The ledger says what the tests say, about every trap."""

from pathlib import Path

import pytest

from emulator.fidelity import Status, TrapMark, catalogue, ledger, recorded_marks
from emulator.fidelity_scan import MarkError, dump, read_mark, scan

TESTS = Path(__file__).parents[1]


def test_the_catalogue_holds_72_traps_of_membership_50_of_consumption_and_what_running_corrected():
    counts = {"M": 72, "C": 50, "Y": 19, "X": 22}
    expected = [f"{letter}{number}" for letter, count in counts.items() for number in range(1, count + 1)]

    assert [trap.id for trap in catalogue()] == expected


def test_every_trap_has_a_title_of_its_own_and_a_reason_to_be_absent():
    titles = [trap.title for trap in catalogue()]

    assert len(dict.fromkeys(titles)) == len(titles)
    assert all(trap.absent for trap in catalogue())


def test_the_recorded_marks_are_those_of_the_tests():
    assert list(recorded_marks()) == scan(TESTS), "make ledger writes them anew"


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


def test_marks_are_found_on_functions_classes_parameters_and_modules(tmp_path):
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_marked.py").write_text(
        "import pytest\n"
        'pytestmark = pytest.mark.trap("C2")\n'
        '@pytest.mark.trap("M2", status="simplified", note="how")\n'
        "class TestThem:\n"
        '    @pytest.mark.trap("M1")\n'
        '    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.trap("C1"))])\n'
        "    async def test_it(self, x): ...\n"
    )

    assert scan(tests) == [
        TrapMark("M1", "tests/test_marked.py::TestThem::test_it"),
        TrapMark("M2", "tests/test_marked.py::TestThem", Status.SIMPLIFIED, "how"),
        TrapMark("C1", "tests/test_marked.py::TestThem::test_it"),
        TrapMark("C2", "tests/test_marked.py"),
    ]


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


def test_a_mark_that_has_to_be_computed_is_refused(tmp_path):
    (tmp_path / "test_x.py").write_text('import pytest\n@pytest.mark.trap("M" + str(1))\ndef test_it(): ...\n')

    with pytest.raises(MarkError, match="line 2: the arguments of trap"):
        scan(tmp_path)
