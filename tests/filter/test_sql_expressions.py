"""SQL92 over properties: what matches, what never does, and what is refused."""

import pytest

from nodes.filter.sql_filter import compile_sql
from nodes.filter.sql_tokens import SqlError
from support.every_case import each_case

MESSAGE = {"a": "3", "b": "three", "t": "true", "price": "9.5", "quote": "it's", "_x$1": "y"}


@each_case(
    ("text", "matches"),
    [
        ("a = 3", True),
        ("a <> 3", False),
        ("3 = a", True),
        ("a = '3'", True),
        ("b = 'three' AND a > 2", True),
        ("b = 'four' OR a >= 3", True),
        ("NOT (b = 'four')", True),
        ("NOT b = 'four'", False),  # NOT is about b alone, and a truth value cannot be compared with a text
        ("a between 1 and 3", True),
        ("a NOT BETWEEN 1 AND 3", False),
        ("price > 9.0 AND price < 9.6", True),
        ("price >= 9.5 and price <= 9.5", True),
        ("-a < 0", False),  # a property is a text, and a text has no negative
        ("a > -4", True),
        ("a > +2", True),
        ("b IN ('one', 'three')", True),
        ("b NOT IN ('one', 'three')", False),
        ("quote = 'it''s'", True),
        ("t = TRUE", True),
        ("t = FALSE", False),
        ("b = TRUE", False),
        ("t", False),  # a text is no truth value
        ("TRUE", True),
        ("NOT FALSE", True),
        ("NULL", False),
        ("b CONTAINS 'hre'", True),
        ("b NOT CONTAINS 'hre'", False),
        ("b STARTSWITH 'th' AND b ENDSWITH 'ee'", True),
        ("b NOT STARTSWITH 'x'", True),
        ("b CONTAINS ''", False),
        ("b NOT CONTAINS ''", False),
        ("_x$1 = 'y'", True),
        ("(a = 1 OR a = 3) AND (b = 'three')", True),
        ("a = 1 OR a = 3 AND b = 'no'", False),  # AND binds closer
        ("a = 3 -- as it is\n AND /* and */ b = 'three'", True),
        ("a = 3l", True),
        ("a < 5E1", True),
    ],
)
def test_an_expression_says_of_a_message_whether_it_is_wanted(text: str, *, matches: bool) -> None:
    assert compile_sql(text).matches(MESSAGE) is matches


@each_case(
    ("text", "matches"),
    [
        ("no IS NULL", True),
        ("a IS NULL", False),
        ("a IS NOT NULL", True),
        ("no = 3", False),
        ("no <> 3", False),
        ("NOT (no = 3)", False),
        ("NOT (3 = no)", True),  # with what is not there a value on the left is not equal, one on the right unknown
        ("no > 3", False),
        ("no = 3 OR a = 3", True),
        ("no = 3 AND a = 3", False),
        ("NOT (no = 3 AND a = 4)", True),
        ("no IN ('x')", False),
        ("no NOT IN ('x')", False),
        ("no NOT CONTAINS 'x'", False),
    ],
)
def test_what_is_not_there_is_unknown_and_what_is_unknown_is_not_wanted(text: str, *, matches: bool) -> None:
    assert compile_sql(text).matches(MESSAGE) is matches


@pytest.mark.parametrize("text", ["b > 3", "NOT (b > 3)", "b = 3", "price = 9", "a = 3000000000", "a > b"])
def test_a_message_whose_values_cannot_be_compared_does_not_match_whatever_is_said_of_it(text: str) -> None:
    message = {**MESSAGE, "a": "30000000000000000000"} if "3000000000" in text else MESSAGE
    assert not compile_sql(text).matches(message)


def test_what_is_decided_already_is_not_looked_at_and_does_no_harm() -> None:
    assert compile_sql("a = 3 OR b > 3").matches(MESSAGE)
    assert not compile_sql("b > 3 OR a = 3").matches(MESSAGE)
    assert compile_sql("NOT (a = 4 AND b > 3)").matches(MESSAGE)


def test_the_size_of_the_number_next_to_a_property_says_how_large_the_property_may_be() -> None:
    assert not compile_sql("big > 5").matches({"big": "3000000000"})
    assert compile_sql("big > 2999999999").matches({"big": "3000000000"})
    assert compile_sql("a < b").matches({"a": "9", "b": "10"})


@each_case(
    ("text", "reason"),
    [
        ("", "a value was expected, not the end"),
        ("a =", "a value was expected, not the end"),
        ("a = 3)", "')' at 5 is too much"),
        ("(a = 3", ") was expected, not the end"),
        ("a = 'x", '"\'" at 4 begins nothing that is known'),
        ("a # 3", "'#' at 2 begins nothing that is known"),
        ("a > 'x'", "what stands next to > is no number"),
        ("a > TRUE", "what stands next to > is no number"),
        ("a > (b = 1)", "what stands next to > is no number"),
        ("a = NULL", "NULL cannot be compared; write IS NULL or IS NOT NULL"),
        ("TRUE = 3", "True cannot be compared with 3"),
        ("3", "an expression that is neither true nor false stands where one is wanted"),
        ("a = 3 AND 4", "an expression that is neither true nor false stands where one is wanted"),
        ("3 IN ('x')", "a property was expected before IN"),
        ("a IN (3)", "a string was expected, not '3' at 6"),
        ("a BETWEEN 3 AND 1", "BETWEEN begins with 3, which is more than 1"),
        ("a BETWEEN 3 OR 1", "AND was expected, not 'OR' at 12"),
        ("a IS 3", "NULL was expected, not '3' at 5"),
        ("a = 9223372036854775808", "is larger than 9223372036854775807"),
        ("a = 0.0", "is no number that is greater than 0 and has 64 bits"),
        ("a = 007", "'0' at 5 is too much"),
        ("(" * 5_000 + "a", "too many parentheses"),
    ],
)
def test_what_is_no_expression_is_refused_with_place_and_reason(text: str, reason: str) -> None:
    with pytest.raises(SqlError, match=r"^Invalid MessageSelector") as refused:
        compile_sql(text)
    assert reason in str(refused.value)
