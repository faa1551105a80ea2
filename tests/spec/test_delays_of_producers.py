"""Producers whose messages wait, and producers that end, as scenario files describe them."""

import attrs
import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case
from support.mistakes import only_mistake

TEXT = """
[scenario]
name = "delays"
run_for_s = 60
[[broker]]
name = "broker-a"
OPTIONS
[[topic]]
name = "orders"
[[producer]]
group = "shop"
topic = "orders"
"""


def text(answer: str, options: str = "") -> str:
    return TEXT.replace("OPTIONS", options) + answer


@each_case(
    ("answer", "fields"),
    [
        ("", {"messages": 0, "delay_level": 0, "timer_ms": 0}),
        ("delay_level = 3", {"delay_level": 3}),
        ('timer = "30s"', {"timer_ms": 30_000}),
        ('timer = "1.5s"\nmessages = 10_000', {"timer_ms": 1_500, "messages": 10_000}),
        ('timer = "2h"', {"timer_ms": 7_200_000}),
    ],
)
def test_a_producer_says_how_long_its_messages_wait_and_how_many_there_are(answer, fields):
    scenario = loads(text(answer), "text")

    assert attrs.asdict(scenario.producers[0], recurse=False).items() >= fields.items()
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("answer", "reported"),
    [
        ("delay_level = -1", "producer[0].delay_level: expected a whole number >= 0"),
        ("delay_level = 1001", "producer[0].delay_level: expected a whole number"),
        ('delay_level = "3"', "producer[0].delay_level: expected a whole number"),
        ("messages = 0.5", "producer[0].messages: expected a whole number"),
        ("messages = -7", "producer[0].messages: expected a whole number >= 0"),
        ("timer = 30", "producer[0].timer: expected a text"),
        ('timer = "soon"', "producer[0].timer: expected a time such as 30s, 500ms or 2m, not soon"),
        ('timer = "0s"', "producer[0].timer: expected a time above 0"),
        ('timer = "9000h"', "producer[0].timer: expected a time of a year at most, not 9000h"),
        ('timer = "-3s"', "producer[0].timer: expected a time such as 30s, 500ms or 2m, not -3s"),
        ('timer = "3s"\ndelay_level = 2', "producer[0].timer: expected no delay_level with it"),
        ('timer = "3s"\nlocal_transaction = "commit"', "producer[0].local_transaction: expected no timer with it"),
        ('delay_level = 1\nlocal_transaction = "commit"', "local_transaction: expected no delay_level with it"),
        ('timers = "3s"', 'producer[0].timers: unknown key; did you mean "timer"?'),
    ],
)
def test_a_mistake_is_reported_in_one_line(answer, reported):
    with pytest.raises(SpecError) as caught:
        loads(text(answer), "text")
    assert reported in only_mistake(caught.value)
    assert "\n" not in only_mistake(caught.value)


@each_case(
    ("answer", "options", "rule"),
    [
        ("delay_level = 18", "", None),
        ("delay_level = 19", "", "delay-level-beyond-the-last"),
        ("delay_level = 3", 'options = { messageDelayLevel = "1s 2s" }', "delay-level-beyond-the-last"),
        ('timer = "72h"', "", None),
        ('timer = "73h"', "", "timer-beyond-the-longest-delay"),
        ('timer = "10s"', "options = { timerWheelEnable = false }", "timer-of-a-broker-without-timer"),
    ],
)
def test_who_asks_for_more_than_its_brokers_can_do_is_warned(answer, options, rule):
    found = check(loads(text(answer, options), "text"))

    assert [setting.name for setting in found] == ([] if rule is None else [rule])
