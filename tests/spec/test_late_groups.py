"""`rmqemu check` warns of a group that joins late and expects to begin at the end of its queues."""

import pytest

from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case

PLAN = """
[scenario]
name = "late"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
options = {{ {options} }}
[[producer]]
group = "shop"
topic = "orders"
{faults}
"""
BOTH = '[[fault]]\ndo = "kill c1, c2"\nat_s = 0\nfor_s = 30\n'
ONE = '[[fault]]\ndo = "kill c1"\nat_s = 0\nfor_s = 30\n'
LATER = '[[fault]]\ndo = "kill c1, c2"\nat_s = 10\nfor_s = 30\n'
SHORT = '[[fault]]\ndo = "kill c1, c2"\nat_s = 0\nfor_s = 2\n'
NEVER = '[[fault]]\ndo = "kill c1, c2"\nat_s = 0\n'


def warned(options="", faults=BOTH):
    return [
        found
        for found in check(loads(PLAN.format(options=options, faults=faults), "late"))
        if found.name == "first-offset-of-a-late-group"
    ]


@pytest.mark.parametrize("where", ["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"])
def test_a_group_whose_members_are_all_away_at_first_is_warned_that_its_option_has_no_effect(where):
    (found,) = warned(f'consumeFromWhere = "{where}"')

    assert found.where == "g"
    assert found.consequence.startswith(f"{where} will have no effect: the group joins orders when it has messages")


@each_case("faults", [ONE, LATER, SHORT, NEVER, ""])
def test_a_group_that_is_there_from_the_start_on_or_never_comes_is_not(faults):
    assert warned(faults=faults) == []


@pytest.mark.parametrize("options", ['consumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"', 'messageModel = "BROADCASTING"'])
def test_a_group_to_which_the_rule_of_the_broker_does_not_apply_is_not(options):
    assert warned(options) == []
