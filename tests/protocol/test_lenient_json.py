"""JSON as the library of real clients reads it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.guests.remoting.fastjson import JsonError, ObjectKey, read_json
from support.every_case import each_case

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=100)
def test_standard_json_is_read_as_everywhere(value):
    assert read_json(json.dumps(value)) == value


@given(plain)
@settings(max_examples=100)
def test_the_lenient_reader_reads_standard_json_alike(value):
    """A comma too many keeps the library's own reader away."""
    assert read_json(f"[{json.dumps(value)},]") == [value]


@each_case(
    ("text", "value"),
    [
        ('{0:"a",1:"b"}', {"0": "a", "1": "b"}),
        ("{a:'it\\'s',b:[1,,2,],}", {"a": "it's", "b": [1, 2]}),
        ("{'a' : -1.5e3 , /* why */ b : true}", {"a": -1500.0, "b": True}),
        ("/* * / ** */{ // one\n'a\\'b\\\\' /**/ : 1, /* two *//* three */ } // four", {"a'b\\": 1}),
        ("[1]/* this does not end *", [1]),
        ('{"half":"\\ud800","whole":"\\ud83d\\ude00",}', {"half": "�", "whole": "😀"}),
        ('["\\ud83d\\ude00","\\ud800"]', ["😀", "�"]),
        ('{"a":"\\x41\\u00e9\\n"}', {"a": "Aé\n"}),
        (
            '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:7}}',
            {"offsetTable": {ObjectKey([("brokerName", "b"), ("queueId", 0), ("topic", "t")]): 7}},
        ),
    ],
)
def test_what_is_no_json_elsewhere_is_read(text, value):
    assert read_json(text) == value


@each_case("text", ["", "{", "[1", '{"a"}', '"open', "{a:b}", "1 2", "[" * 5_000, "{a:" * 5_000])
def test_what_no_one_can_read_is_refused(text):
    with pytest.raises(JsonError):
        read_json(text)
