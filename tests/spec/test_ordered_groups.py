"""Groups of consumers in order, as scenario files describe them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from support.mistakes import only_mistake

TEXT = """
[scenario]
name = "ordered"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
topics = ["orders"]
"""


def test_a_group_consumes_in_order_by_an_option_and_its_listener_fails_as_often_as_asked():
    scenario = loads(TEXT + "fail_times = 2\noptions = { consumeOrderly = true }", "text")

    (group,) = scenario.consumers
    assert (group.config.consume_orderly, group.fail_times) == (True, 2)
    assert from_dict(to_dict(scenario)) == scenario


def test_a_group_consumes_concurrently_where_nothing_else_is_said():
    scenario = loads(TEXT, "text")

    assert scenario.consumers[0].config.consume_orderly is False
    assert "fail_times" not in to_dict(scenario)["consumer"][0]


def test_a_listener_fails_as_often_as_asked_in_order_or_not():
    scenario = loads(TEXT + "fail_times = 2", "text")

    assert scenario.consumers[0].fail_times == 2
    assert from_dict(to_dict(scenario)) == scenario


def test_a_listener_cannot_fail_less_than_never():
    with pytest.raises(SpecError) as caught:
        loads(TEXT + "fail_times = -1", "text")

    assert only_mistake(caught.value) == "text: consumer[0].fail_times: expected a whole number >= 0, not -1"
