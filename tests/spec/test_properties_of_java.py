"""Texts of options are read as `java.util.Properties` of Java 17 reads them."""

import pytest

from nodes.config import BrokerConfig
from nodes.config.java_properties import MalformedPropertiesError, read_properties
from nodes.config.text import parsed, updated
from support.every_case import each_case

READ_BY_JAVA = (
    ("a=1", {"a": "1"}),
    ("a = 1 ", {"a": "1 "}),
    ("a:1", {"a": "1"}),
    ("a 1", {"a": "1"}),
    ("a", {"a": ""}),
    ("=1", {"": "1"}),
    ("a==1", {"a": "=1"}),
    ("a = = 1", {"a": "= 1"}),
    ("#a=1\nb=2", {"b": "2"}),
    ("!a=1", {}),
    ("  # c\na=1", {"a": "1"}),
    ("a=1\\\n  2", {"a": "12"}),
    ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    ("a\\=b=1", {"a=b": "1"}),
    ("a\\ b=1", {"a b": "1"}),
    ("a=\\u0041", {"a": "A"}),
    ("a=\\x", {"a": "x"}),
    ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
    ("a=1\\", {"a": "1"}),
    ("\n\n a=1", {"a": "1"}),
    ("a=b\\tc", {"a": "b\tc"}),
    ("a=1#2", {"a": "1#2"}),
    ("#x\\\na=1", {"a": "1"}),
    ("a=1\n a=2", {"a": "2"}),
    ("a=1\\\n#b", {"a": "1#b"}),
    ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    ("a\t:\t1", {"a": "1"}),
    ("a\f=1", {"a": "1"}),
)
"""Recorded: each text, and what `Properties.load` of OpenJDK 17 found in it."""


@each_case(("text", "found"), READ_BY_JAVA)
def test_a_text_has_the_names_and_values_that_java_finds(text, found):
    assert read_properties(text) == found


@pytest.mark.parametrize("text", ["a=\\u00g1", "a=\\u00", "\\u=1"])
def test_an_escape_without_four_digits_is_refused(text):
    with pytest.raises(MalformedPropertiesError):
        read_properties(text)


@each_case(
    ("option", "text", "value"),
    [
        ("brokerPermission", "4", 4),
        ("brokerPermission", "+4", 4),
        ("brokerPermission", "4 ", None),
        ("brokerPermission", "x", None),
        ("brokerPermission", "", None),
        ("fileReservedTime", "24*3", None),
        ("fileReservedTime", "1_000", None),
        ("fileReservedTime", "4294967296", None),
        ("fileReservedTime", "-2147483648", -(2**31)),
        ("fileReservedTime", "-2147483649", None),
        ("storeMaxBytes", "9223372036854775807", 2**63 - 1),
        ("storeMaxBytes", "9223372036854775808", None),
        ("storeMaxBytes", "-9223372036854775808", -(2**63)),
        ("messageDelayLevel", "\x001s 5s\x1f", "1s 5s"),
        ("forceRegister", "TRUE", True),
        ("forceRegister", "yes", False),
        ("forceRegister", "true ", False),
        ("brokerRole", "SYNC_MASTER ", "SYNC_MASTER"),
        ("brokerRole", "MASTER", None),
        ("messageDelayLevel", " 1s 5s ", "1s 5s"),
        ("noSuchOption", "1", None),
    ],
)
def test_a_text_that_java_does_not_parse_leaves_its_option_as_it_is(option, text, value):
    assert parsed(BrokerConfig, {option: text}) == ({} if value is None else {option: value})


def test_one_text_that_does_not_parse_does_not_keep_others_from_their_options():
    changed = updated(BrokerConfig(), {"brokerPermission": "x", "forceRegister": "no", "unknown": "1"})
    assert changed == BrokerConfig(force_register=False)
