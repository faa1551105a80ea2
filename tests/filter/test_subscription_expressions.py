"""Expressions of tags, and the two filters that a message passes."""

import pytest

from nodes.filter.filter_api import (
    ExpressionMissingError,
    SubscriptionError,
    broker_matches,
    build,
    build_subscription_data,
    client_keeps,
    tags_code,
)


@pytest.mark.trap("X15")
def test_tags_stand_between_double_bars_with_blanks_around_them():
    data = build_subscription_data("t", " b || a||*||a")

    assert (data.sub_string, data.tags_set, data.code_set) == (" b || a||*||a", ("*", "a", "b"), (42, 97, 98))


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_no_expression_means_everything(expression):
    data = build_subscription_data("t", expression)

    assert data.sub_string == "*"
    assert all(broker_matches(data, tags_code(tags)) and client_keeps(data, tags) for tags in (None, "", "a"))


@pytest.mark.trap("X15")
def test_a_blank_expression_gets_nothing_from_a_broker_though_the_client_would_keep_all():
    data = build_subscription_data("t", " ")

    assert not broker_matches(data, tags_code("a"))
    assert client_keeps(data, "a")


def test_a_broker_lets_a_tag_of_the_same_hash_through_and_the_client_throws_it_away():
    data = build_subscription_data("t", "Aa")

    assert broker_matches(data, tags_code("BB"))
    assert not client_keeps(data, "BB")


def test_another_type_than_tags_is_let_through_unread():
    data = build("t", "a > 1", "SQL92")

    assert (data.tags_set, data.expression_type) == ((), "SQL92")
    assert broker_matches(data, tags_code("x"))


def test_an_expression_that_asks_for_nothing_is_refused():
    with pytest.raises(SubscriptionError, match=r"^subString split error$"):
        build("t", "||||", "TAG")
    with pytest.raises(ExpressionMissingError, match="SQL92"):
        build("t", "", "SQL92")
