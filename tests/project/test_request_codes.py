"""The table of request codes: what 5.3.3 answers is answered here by a node of the same kind, or has a reason."""

import json

from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.fidelity.request_codes import request_codes, summary
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import AnswerDepth


def test_every_code_of_the_release_is_in_the_table_under_its_name():
    names = {row.code: row.name for row in request_codes()}
    assert len(names) == 158
    assert [code.name for code in RequestCode if names.get(code, code.name) != code.name] == []


def test_what_is_answered_in_rocketmq_and_not_here_has_a_reason():
    missing = {row.name: row.why for row in request_codes() if row.is_missing}
    assert [name for name, why in missing.items() if not why] == []
    assert missing == {}


def test_the_table_says_which_answers_have_less_behind_them_than_rocketmqs():
    found = {row.code: row.how for row in request_codes() if row.ours and row.how != AnswerDepth.WHOLE}
    without = AnswerDepth.WITHOUT_EFFECT
    assert found == {
        **dict.fromkeys((306, 355, 2001, 2002, 2004), without),
        354: AnswerDepth.CONSTANT,
        2003: AnswerDepth.IN_PART,
    }


def test_no_code_is_answered_here_that_no_process_of_rocketmq_answers():
    assert [row.name for row in request_codes() if row.ours and not row.real] == []


def test_the_command_prints_the_table_and_counts():
    done = CliRunner().invoke(app, ["fidelity", "--codes"])
    assert done.exit_code == 0
    assert summary(request_codes()) in " ".join(done.stdout.split())
    rows = json.loads(CliRunner().invoke(app, ["fidelity", "--codes", "--json"]).stdout)
    assert [row["name"] for row in rows if row["code"] == 34] == ["HEART_BEAT"]


def test_a_trap_and_the_codes_are_two_questions():
    done = CliRunner().invoke(app, ["fidelity", "--codes", "M7"])
    assert done.exit_code == 2
    assert "--codes lists request codes" in done.stderr
