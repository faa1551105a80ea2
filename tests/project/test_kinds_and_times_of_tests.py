"""What `make quick` leaves out, what begins first, and the summary of seconds."""

from collections import Counter
from pathlib import Path

from support.kinds import BY_PLACE, FIRST, STAYS
from support.times import table

TESTS = Path(__file__).parents[1]


def test_every_folder_and_file_that_the_plugin_names_is_there():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir()}
    files = {path.name for path in TESTS.rglob("test_*.py")}

    assert [name for name in BY_PLACE if name not in folders | files] == []
    assert [name for name in FIRST if name not in folders | files] == []
    assert [name for name in STAYS if name not in files] == []


def test_a_file_that_stays_in_make_quick_lies_in_a_folder_that_does_not():
    (elsewhere,) = {path.parent.name in BY_PLACE for path in TESTS.rglob("test_*.py") if path.name in STAYS}

    assert elsewhere


def test_seconds_are_added_by_folder_and_the_longest_come_first():
    by_file = Counter({"tests/rpc/test_a.py": 1.5, "tests/spec/test_b.py": 2.0, "tests/rpc/test_c.py": 1.0})
    tests = Counter({"rpc": 1_200, "spec": 3})

    assert table(by_file, tests) == [
        "by folder",
        "     2.5   1,200 tests  rpc",
        "     2.0       3 tests  spec",
        "the longest files",
        "     2.0  tests/spec/test_b.py",
        "     1.5  tests/rpc/test_a.py",
        "     1.0  tests/rpc/test_c.py",
    ]
