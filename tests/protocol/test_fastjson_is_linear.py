"""Hostile texts are read in linear time: asserted by what is given up, and by patterns that cannot backtrack."""

import pytest

from emulator.guests.remoting.fastjson import LENIENT_BYTES_MAX, VALUES_MAX, JsonError, read_json, read_json_bytes
from support.every_case import each_case

HOSTILE = {
    "comments that do not end": "{" + "/*:1," * 100_000 + "}",
    "comments after a value": '{"a":1}' + "/*" * 400_000,
    "stars in a comment": "/*" + "*" * 900_000,
    "a text that does not end": '{"' + "\\a" * 400_000,
    "texts that do not end": "{'" * 400_000,
    "commas": "{" + "," * 200_000,
    "keys without values": "{a:" * 200,
    "a long word": "{a:" + "1" * 900_000 + "x}",
    "a number with very many digits": "{'a':" + "1" * 900_000 + "}",
    "dots": "{a:" + "1." * 400_000 + "}",
    "blanks": " " * 900_000 + "x",
    "nested objects": '{"a":' * 100_000,
    "nested keys": "{" * 100_000,
    "nested escapes": '["\\ud800",' * 900 + "]" * 900,
    "lines of comments": "//\n" * 300_000 + "x",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("times", [1, 4])
def test_a_hostile_text_is_refused_before_long(text, times):
    """A quadratic reader would need minutes to hours for one of these; the whole suite would stand still."""
    with pytest.raises(JsonError):
        read_json(text * times)
    with pytest.raises(JsonError):
        read_json_bytes((text * times).encode())


def test_the_error_repeats_little_of_the_text():
    for text in HOSTILE.values():
        with pytest.raises(JsonError) as caught:
            read_json(text)
        assert len(str(caught.value)) < 300


def test_a_key_that_holds_a_list_is_an_error():
    with pytest.raises(JsonError, match="a key holds a list"):
        read_json("{{a:[1]}:2}")


def test_comments_are_skipped():
    assert read_json("/**/{/* a * / */a /***/:// b\n1 /*c*/}//") == {"a": 1}


def test_a_text_of_very_many_values_is_refused():
    assert len(read_json("[" + "0," * (VALUES_MAX - 2) + "0]")) == VALUES_MAX - 1
    with pytest.raises(JsonError, match=f"more than {VALUES_MAX} values"):
        read_json("[" + "0," * VALUES_MAX + "0]")


def test_a_long_text_has_to_be_standard_json():
    long = "a" * LENIENT_BYTES_MAX
    assert read_json(f'{{"a":"{long}"}}') == {"a": long}
    with pytest.raises(JsonError, match="no standard JSON"):
        read_json(f'{{a:"{long}"}}')


@each_case("value", [b"0", b"{}", b"[]", b"[[]]"])
def test_standard_json_of_many_values_is_refused_before_one_is_made(value):
    with pytest.raises(JsonError, match=f"more than {VALUES_MAX} values"):
        read_json_bytes(b"[" + value + (b"," + value) * VALUES_MAX + b"]")
