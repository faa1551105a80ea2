"""Texts of others on a terminal: what commands it is shown as an escape, and what people write stays."""

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group

from emulator.base.errors import one_line
from emulator.base.rich_texts import Console, Text, TextTable, in_lines
from emulator.console.line_printer import LinePrinter
from nodes.fields import shown
from nodes.visible import visible

FORGED = "namesrvAddr=6.6.6.6:9876"
EVIL = f"evil\n{FORGED}\r\n{FORGED}\x1b]0;title\x07\x1b[31m\x9b2J\u202e\u2028[bold][link=http://6.6.6.6]:bomb:[/]"
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_OWN_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@given(st.text(st.characters()))
def test_no_text_commands_a_terminal_or_begins_a_line(text):
    for made in (visible(text), one_line(text), shown(text)):
        assert not _COMMANDS.search(made)
        assert len(made.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b\x7f\x00", r"\x9b\x7f\x00"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u2028\ud800\ufeff", r"\u2028\ud800\ufeff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_is_not_seen_becomes_an_escape(text, expected):
    assert visible(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "订单 消费组",
        "заказы",
        "注文\u3000キュー",
        "\u0645\u06cc\u200c\u062e\u0648",
        "👩\u200d🚀",
        "a\xa0b",
        "héé",
        r"C:\new\x1b",
    ],
)
def test_what_people_write_stays_as_it_is(text):
    assert visible(text) == text


def drawn(*renderables, width=40, **options):
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, **options)
    for renderable in renderables:
        console.print(renderable)
    return _OWN_STYLE.sub("", out.getvalue())


def a_table(*cells, title=EVIL):
    table = TextTable(title=title, box=None, pad_edge=False)
    for _ in cells:
        table.add_column(EVIL, overflow="fold")
    table.add_row(*cells)
    return table


@pytest.mark.parametrize(
    "renderable",
    [
        EVIL,
        Text(EVIL),
        Text(EVIL, "bold").append(EVIL, "red"),
        Text.assemble((EVIL, "bold"), EVIL),
        in_lines([EVIL, Text(EVIL)]),
        a_table(EVIL, [EVIL, EVIL], Text(EVIL)),
        Group(EVIL, a_table(EVIL, EVIL)),
    ],
    ids=["a string", "a text", "appended", "assembled", "lines", "a table", "a group"],
)
@pytest.mark.parametrize("width", [20, 31, 40, 150])
def test_rich_draws_texts_of_others_without_commands_markup_and_lines_of_theirs(renderable, width):
    text = drawn(renderable, width=width)
    assert not _COMMANDS.search(text.replace("\n", ""))
    assert "6.6.6.6]" in text.replace("\n", "").replace(" ", "")
    assert "💣" not in text
    assert not [line for line in text.splitlines() if line.startswith(FORGED[:9])]


def test_a_text_that_has_come_past_the_classes_still_commands_nothing():
    from rich.text import Text as TextOfRich

    text = drawn(TextOfRich(f"a{EVIL}"), width=400)
    assert not _COMMANDS.search(text.replace("\n", ""))


def test_lines_printed_while_a_cluster_runs_stay_one_line(capfd):
    printer = LinePrinter()
    printer.print(EVIL)
    printer.print("订单")
    printer.close()
    first, second = capfd.readouterr().out.splitlines()
    assert first == visible(EVIL)
    assert second == "订单"


@pytest.mark.parametrize("justify", ["left", "default"])
def test_no_character_is_lost_where_a_cell_is_broken_into_lines(justify):
    words = "V3 orderly listeners only under the broker's lock and at least once"
    for width in range(12, 60):
        console = Console(file=StringIO(), width=width)
        table = TextTable(box=None, show_header=False)
        table.add_column(justify=justify, overflow="fold")
        table.add_row(words)
        console.print(table)
        assert "".join(console.file.getvalue().split()) == words.replace(" ", ""), width
