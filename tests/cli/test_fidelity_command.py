"""`rmqemu fidelity`: the ledger for programs and for people."""

import json
import re
from collections import Counter

import attrs
import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.fidelity.ledger import Status, catalogue, ledger


def test_the_ledger_as_json_has_one_row_per_trap_with_four_keys():
    done = CliRunner().invoke(app, ["fidelity", "--json"])
    rows = json.loads(done.stdout)

    assert done.exit_code == 0
    assert [row["trap"] for row in rows] == [trap.id for trap in catalogue()]
    assert all(list(row) == ["trap", "status", "test", "note"] for row in rows)


def test_what_is_there_names_a_test_and_what_is_not_says_why():
    rows = json.loads(CliRunner().invoke(app, ["fidelity", "--json"]).stdout)
    for row in rows:
        present = row["status"] in ("reproduced", "simplified")
        assert present or row["status"] == "absent"
        assert present == bool(row["test"])
        assert not present or re.fullmatch(r"tests/[a-z_/0-9]+\.py(::\w+)*", row["test"])
        assert bool(row["note"]) == (row["status"] != "reproduced")


def test_the_table_ends_with_how_many_there_are_of_each():
    done = CliRunner().invoke(app, ["fidelity"])
    counts = Counter(row.status for row in ledger())
    lines = done.stdout.splitlines()

    assert done.exit_code == 0
    assert lines[-1] == (
        f"{counts['reproduced']} reproduced, {counts['simplified']} simplified, {counts['absent']} absent"
    )
    assert lines[0].split()[:3] == ["trap", "status", "tests"]
    assert lines[1].startswith("M1 ")


M7 = """\
M7: A first registration with exactly one topic is refused and leaves an empty group.
  status   reproduced
  mirrors  RouteInfoManager.registerBroker of RocketMQ 5.3.3
  tests    tests/nameserver/test_route_table.py::test_a_first_registration_with_one_topic_is_refused_and_leaves_an\
_empty_group
           tests/scenarios/test_nameserver_liveness.py::test_after_a_restart_a_nameserver_refuses_a_single_new_topic\
_until_the_broker_registers_all
  see it   pytest -m '' 'tests/scenarios/test_nameserver_liveness.py::test_after_a_restart_a_nameserver_refuses_a\
_single_new_topic_until_the_broker_registers_all'
"""


@pytest.mark.parametrize("trap", ["M7", "m7"])
def test_one_trap_is_a_sentence_its_class_its_tests_and_one_that_shows_it(trap):
    done = CliRunner().invoke(app, ["fidelity", trap])

    assert (done.exit_code, done.stdout) == (0, M7)


def test_a_trap_that_is_absent_says_why_and_names_no_test():
    row = next(row for row in ledger() if row.status is Status.ABSENT)
    done = CliRunner().invoke(app, ["fidelity", row.trap])

    assert f"\n  why      {row.note}\n" in done.stdout
    assert done.stdout.endswith("\n  see it   no test shows it, since it is absent\n")


def test_one_trap_as_json_has_all_that_is_printed():
    done = CliRunner().invoke(app, ["fidelity", "M7", "--json"])
    row = next(row for row in ledger() if row.trap == "M7")

    assert json.loads(done.stdout) == {**attrs.asdict(row), "mirrors": list(row.mirrors), "tests": list(row.tests)}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("M73", "there is no trap M73; did you mean M7 or M3 or M72?"),
        ("storm", "there is no trap storm; `rmqemu fidelity` lists all"),
    ],
)
def test_a_wrong_id_gets_one_line_with_ids_that_are_like_it(wrong, problem):
    done = CliRunner().invoke(app, ["fidelity", wrong])

    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"rmqemu: {problem}\n")
