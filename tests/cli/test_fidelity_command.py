"""`rmqemu fidelity`: the ledger for programs and for people."""

import json
import re
from collections import Counter

from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.fidelity.ledger import catalogue, ledger


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
