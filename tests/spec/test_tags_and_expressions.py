"""Tags of producers and what groups want of them, as scenario files describe them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from support.every_case import each_case
from support.mistakes import only_mistake

TEXT = """
[scenario]
name = "tagged"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[topic]]
name = "bills"
[[producer]]
group = "pg"
topic = "orders"
tags = ["paid", "open"]
[[consumer]]
group = "g"
topics = ["orders", "bills"]
"""


def mistake(text):
    with pytest.raises(SpecError) as caught:
        loads(text, "text")
    return only_mistake(caught.value)


def test_a_producer_has_tags_in_turn_and_a_group_wants_some_of_one_topic_and_all_of_another():
    scenario = loads(TEXT + 'expressions = { orders = "paid || open" }', "text")

    assert scenario.producers[0].tags == ("paid", "open")
    assert scenario.consumers[0].expressions == {"orders": "paid || open"}
    assert from_dict(to_dict(scenario)) == scenario


def test_without_tags_and_expressions_a_scenario_says_nothing_of_them():
    written = to_dict(loads(TEXT.replace('tags = ["paid", "open"]\n', ""), "text"))

    assert "tags" not in written["producer"][0]
    assert "expressions" not in written["consumer"][0]


@each_case(
    ("expressions", "problem"),
    [
        ('{ order = "a" }', "text: consumer[0].expressions.order: "),
        (
            '{ orders = "||" }',
            'text: consumer[0].expressions.orders: expected tags such as "a || b", or "*", not \'||\'',
        ),
        ("{ orders = 1 }", "text: consumer[0].expressions: expected a table of texts, not {'orders': 1}"),
        ('"a || b"', "text: consumer[0].expressions: expected a table of texts, not 'a || b'"),
    ],
)
def test_an_expression_of_another_topic_or_without_a_tag_is_a_mistake(expressions, problem):
    assert mistake(TEXT + f"expressions = {expressions}").startswith(problem)
