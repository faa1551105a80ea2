"""What is shown: the matrix of views, owners, help, and what could be typed next."""

import re

import attrs
import pytest

from emulator.console.matrix import matrix
from emulator.console.prompt import completions, views_in_colour
from emulator.console.verbs import VERBS
from emulator.history.beliefs import Beliefs
from emulator.history.processes import Processes
from emulator.history.rows.row_classes import BeliefRow
from emulator.testing import ConsoleUser, a_scenario, run_at_console

ANSI = re.compile(r"\x1b\[([0-9;]*)m")


def scenario(run_for_s=120):
    return attrs.evolve(a_scenario(consumers=2, nameservers=2), run_for_ms=run_for_s * 1_000)


def beliefs_of(**held: dict[str, str]) -> Beliefs:
    beliefs = Beliefs(Processes())
    for node, values in held.items():
        for subject, value in values.items():
            beliefs.believe(
                BeliefRow(1, 1, node.replace("_", "-"), "broker", 1, "consumer_ids", subject, value, "", "")
            )
    return beliefs


def test_the_matrix_gives_equal_values_one_letter_and_the_largest_group_of_holders_the_first():
    beliefs = beliefs_of(b1={"g": "[1]"}, b2={"g": "[1,2]"}, b3={"g": "[1,2]", "h": "[]"})
    shown = matrix(beliefs, [("consumer_ids", "g"), ("consumer_ids", "h")], ("b3", "b2", "b1", "b0"))
    assert shown.nodes == ("b3", "b2", "b1")
    g, h = shown.subjects
    assert [g.cell(node) for node in shown.nodes] == ["A", "A", "B"]
    assert g.values == {"A": "[1,2]", "B": "[1]"}
    assert [h.cell(node) for node in shown.nodes] == ["A", "·", "·"]
    assert (g.differs, h.differs) == (True, False)


def test_views_show_who_differs_and_what_the_letters_stand_for(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(40_000)
        assert "all" in (await me.say("views"))[0]
        await me.say("cut c1 broker-a")
        await me.say("until differ g/orders")
        head, row, *values = await me.say("views g/orders")
        assert head.split() == ["c1", "c2"]
        assert row.split() == ["view", "g/orders", "A", "B", "they", "differ"]
        assert [line.split(":")[0] for line in values] == ["view g/orders A", "view g/orders B"]
        painted = views_in_colour(me.session, "g/orders")
        assert ANSI.sub("", painted).split("\n")[1].split() == ["view", "g/orders", "A", "B"]
        colours = dict.fromkeys(found[1] for found in ANSI.finditer(painted))
        assert "1;32" in colours  # the largest group of holders
        assert "1;31" in colours  # and who differs from it

    run_at_console(scenario(400), tmp_path, sitting)


def test_owners_show_who_holds_each_queue_and_who_holds_none(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(40_000)
        lines = await me.say("owners orders")
        assert lines[0] == "g  orders/broker-a/0: c1"
        assert len(lines) == 4
        await me.say("kill brokers")
        await me.say("kill consumers")
        assert (await me.say("owners orders"))[0] == "g  orders/broker-a/0: no owner"

    run_at_console(scenario(), tmp_path, sitting)


def test_help_explains_every_verb(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        lines = await me.say("help")
        assert [line.split()[0] for line in lines[::2]] == list(VERBS)
        assert await me.say("help kill") == (VERBS["kill"].line(), f"    {VERBS['kill'].summary}")

    run_at_console(scenario(5), tmp_path, sitting)


@pytest.mark.parametrize(
    ("line", "offered", "not_offered"),
    [
        ("ki", ["kill"], ["skew"]),
        ("kill ", ["c1", "broker-a", "brokers"], ["one-way"]),
        ("cut c1 b", ["broker-a"], ["c2"]),
        ("cut c1 broker-a o", ["one-way"], []),
        ("heal ", ["loss-1", "all"], ["c1"]),
        ("drop HEA", ["HEART_BEAT"], ["PULL_MESSAGE"]),
        ("drop HEART_BEAT during ", ["pre-online"], []),
        ("views ", ["orders", "g/orders", "all"], ["c1"]),
        ("scale ", ["g"], ["c1"]),
        ("chaos m", ["minor-kill", "major-suspend"], ["bridge"]),
        ("at +5s ki", ["kill"], []),
        ("at +5s kill c", ["c1", "c2"], []),
        ("until orders/x ", ["within"], []),
        ("frobnicate ", [], ["c1"]),
    ],
)
def test_what_could_be_typed_next_is_offered(tmp_path, line, offered, not_offered):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(30_000)
        await me.say("loss 0")
        found = completions(me.session, line)
        assert [word for word in offered if word not in found] == []
        assert [word for word in not_offered if word in found] == []

    run_at_console(scenario(40), tmp_path, sitting)
