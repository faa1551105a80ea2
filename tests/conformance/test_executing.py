"""The player itself: it finds what differs, says where, and overlooks nothing that it does not know."""

import json
import lzma

import pytest

from conformance.executing import execute_case
from conformance.families import ADAPTERS
from conformance.vectors import Case, files_of_families, read_cases

LOCK = {"at_ms": 0, "op": "tryLock", "in": {"group": "g", "client": "a", "mq": "t@bk@0"}}
LOCKED = {"result": True, "state": {"locks": {"g": {"t@bk@0": ["a", 0]}}}}


def a_case(*steps, **config):
    return Case("queue_locks", "made_up", config, list(steps))


def execute_locks(case):
    execute_case(case, ADAPTERS["queue_locks"])


def test_a_right_answer_passes():
    execute_locks(a_case(LOCK | {"out": LOCKED}))


def test_a_wrong_answer_is_reported_with_its_step_and_its_place():
    wrong = {"result": False, "state": {"locks": {"g": {"t@bk@0": ["b", 0]}}}}

    with pytest.raises(AssertionError) as failure:
        execute_locks(a_case(LOCK | {"out": LOCKED}, LOCK | {"out": wrong}))

    first, *places = str(failure.value).split("\n  ")
    assert first.startswith("queue_locks-made_up, step 2 of 2 at 0 ms: tryLock")
    assert places == [
        "out.result: expected False, got True",
        "state.locks.g.t@bk@0: expected ['b', 0], got ['a', 0]",
    ]


@pytest.mark.parametrize("state", [{}, {"locks": {"g": {}, "h": {}}}, {"locks": {"g": None}}])
def test_a_table_that_differs_in_what_is_there_is_reported(state):
    with pytest.raises(AssertionError, match=r"state\.locks"):
        execute_locks(a_case(LOCK | {"out": LOCKED | {"state": state}}))


def test_an_operation_an_input_and_an_option_that_the_adapter_does_not_know_fail():
    with pytest.raises(AttributeError, match="try_luck"):
        execute_locks(a_case(LOCK | {"op": "tryLuck", "out": {}}))
    with pytest.raises(TypeError, match="how_long_ms"):
        execute_locks(a_case(LOCK | {"in": LOCK["in"] | {"howLongMs": 3}, "out": {}}))
    with pytest.raises(TypeError, match="strict"):
        execute_locks(a_case(strict=True))


def test_cases_of_5_3_3_are_read_from_plain_and_compressed_files_below_a_folder(tmp_path):
    lines = "\n".join(
        json.dumps({"case": name, "releases": [release], "config": {}, "steps": []})
        for name, release in (("ours", "5.3.3"), ("later", "5.5.0"))
    )
    (tmp_path / "escape.jsonl").write_text(lines)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "membership.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    (tmp_path / "differs_5.5.0").mkdir()
    (tmp_path / "differs_5.5.0" / "escape.jsonl").write_text(lines)
    (tmp_path / "README.md").write_text("no vectors")

    files = files_of_families(tmp_path)
    assert list(files) == ["escape", "membership"]
    assert [str(case) for paths in files.values() for path in paths for case in read_cases(path)] == [
        "escape-ours",
        "membership-ours",
    ]


def test_a_line_that_is_no_json_is_reported_with_its_file(tmp_path):
    (tmp_path / "escape.jsonl").write_text("{}}")

    with pytest.raises(ValueError, match=r"escape\.jsonl, line 1"):
        read_cases(tmp_path / "escape.jsonl")
