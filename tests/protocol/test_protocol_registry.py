from typing import get_args, get_type_hints

import attrs
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.guests.remoting.body_json import decode_json_body, encode_json_body
from nodes.protocol import bodies, headers, model
from nodes.protocol.codes import RequestCode
from nodes.protocol.properties import properties_to_text, text_to_properties
from nodes.protocol.registry import (
    EXCHANGES,
    ProtocolError,
    decode_body,
    decode_body_cached,
    decode_header,
    encode_body,
    encode_header,
    encode_shared_body,
)
from nodes.protocol.v2 import service
from nodes.protocol.widths import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Int32,
    int32_of,
    int64_of,
    without_none,
    without_width,
)
from nodes.protocol.wire_names import wire_name
from support.every_case import each_case, holds_for_each
from support.wire_values import BODIES, HEADERS, TEXTS, values_of


def names(cls: type) -> str:
    return cls.__name__


def test_every_header_survives_the_wire_as_texts():
    def check(cls):
        @settings(max_examples=15)
        @given(values_of(cls))
        def survives(header):
            texts = encode_header(header)
            assert all(isinstance(text, str) for text in texts.values())
            assert decode_header(cls, dict(texts)) == header

        survives()

    holds_for_each(check, HEADERS, names)


def test_who_gets_a_header_by_reference_does_not_read_its_texts():
    header = headers.ConsumerGroupRequestHeader("g")
    texts = encode_header(header)
    assert decode_header(headers.ConsumerGroupRequestHeader, texts) is header
    assert decode_header(headers.UnregisterClientRequestHeader, texts).consumer_group == "g"
    assert decode_header(headers.ConsumerGroupRequestHeader, {**texts, "consumerGroup": "h"}).consumer_group == "h"


def test_every_body_survives_the_wire():
    def check(cls):
        @settings(max_examples=10)
        @given(values_of(cls))
        def survives(body):
            assert decode_body(cls, encode_body(body)) == body

        survives()

    holds_for_each(check, BODIES, names)


def test_a_header_without_any_field_decodes_to_something():
    def check(cls):
        header = decode_header(cls, {})
        hints = get_type_hints(cls)
        for field in attrs.fields(cls):
            if type(None) not in get_args(hints[field.name]) and field.default is attrs.NOTHING:
                assert getattr(header, field.name) == hints[field.name]()

    holds_for_each(check, [cls for cls in HEADERS if attrs.fields(cls) and not hasattr(cls, "NULLS_FAIL")], names)


def test_fields_travel_under_rocketmqs_names_and_null_fields_do_not_travel():
    header = headers.QueryConsumerOffsetRequestHeader("g", "t", 3)
    assert encode_header(header) == {"consumerGroup": "g", "topic": "t", "queueId": "3"}
    assert encode_header(headers.UnregisterClientRequestHeader("c")) == {"clientID": "c"}


def test_send_version_2_has_one_letter_names():
    header = headers.SendMessageRequestHeaderV2("g", "t", "TBW102", 4, 2, 0, 99, 0)
    assert encode_header(header) == {
        "a": "g", "b": "t", "c": "TBW102", "d": "4", "e": "2", "f": "0", "g": "99", "h": "0",
    }  # fmt: skip


def test_a_malformed_number_that_may_be_missing_is_none_and_spares_the_other_fields():
    texts = {"consumerGroup": "g", "topic": "t", "queueId": "three", "commitOffset": "5"}
    assert decode_header(headers.UpdateConsumerOffsetRequestHeader, texts) == (
        headers.UpdateConsumerOffsetRequestHeader("g", "t", None, 5)
    )


def test_a_malformed_number_that_a_handler_needs_is_refused():
    with pytest.raises(ProtocolError, match='For input string: ""'):
        decode_header(headers.SearchOffsetRequestHeader, {"topic": "t", "queueId": "", "timestamp": "7"})


@each_case("text", ["2147483648", "-2147483649", " 1", "1_0", "1.5", "0x1", "", "+", "9" * 5_000, "²"])
def test_what_integer_parse_int_refuses_is_no_number_of_32_bits(text):
    with pytest.raises(ValueError, match=r"number|bits"):
        int32_of(text)


def test_what_java_reads_is_a_number():
    of_another_script = "\N{ARABIC-INDIC DIGIT THREE}"
    assert [int32_of(text) for text in ("2147483647", "-2147483648", "+7", "007", of_another_script)] == [
        INT32_MAX,
        INT32_MIN,
        7,
        7,
        3,
    ]
    assert list(map(int64_of, ("9223372036854775807", "-9223372036854775808"))) == [INT64_MAX, INT64_MIN]
    with pytest.raises(ValueError, match="64 bits"):
        int64_of("9223372036854775808")


def numbers_of(cls: type) -> list[tuple[str, int]]:
    """The fields that are numbers, and the largest of each."""
    hints = get_type_hints(cls, include_extras=True)
    kinds = [(field.name, without_none(hints[field.name])) for field in attrs.fields(cls)]
    return [(name, INT32_MAX if kind == Int32 else INT64_MAX) for name, kind in kinds if without_width(kind) is int]


def test_no_number_of_a_header_exceeds_its_width():
    def check(cls):
        for name, largest in numbers_of(cls):
            field = getattr(attrs.fields(cls), name)
            for beyond in (largest + 1, -largest - 2, 10**30):
                try:
                    header = decode_header(cls, {wire_name(cls, field): str(beyond)})
                except ProtocolError:
                    continue
                assert getattr(header, name) is None

    holds_for_each(check, [cls for cls in HEADERS if numbers_of(cls)], names)


@each_case("cls", [cls for cls in BODIES if attrs.has(cls) and numbers_of(cls) and cls is not model.Message], ids=names)
def test_no_number_of_a_body_exceeds_its_width(cls):
    @settings(max_examples=2)
    @given(values_of(cls))
    def refused(body):
        for name, largest in numbers_of(cls):
            decode_body(cls, encode_body(body))
            for beyond in (largest + 1, -largest - 2):
                damaged = attrs.evolve(body, **{name: beyond})
                if cls.__module__ != service.__name__:  # calls of RocketMQ 5 never travel as JSON
                    with pytest.raises(ProtocolError, match=r"bits|is a float"):  # which only answers contain
                        decode_json_body(cls, encode_json_body(damaged))
                if INT64_MIN <= beyond < 2**64:  # there is no larger number in msgpack
                    with pytest.raises(ProtocolError, match="bits"):
                        decode_body(cls, encode_body(damaged))

    refused()


def test_a_malformed_number_of_a_send_or_a_pull_is_refused():
    with pytest.raises(ProtocolError, match='For input string: "three"'):
        decode_header(headers.PullMessageRequestHeader, {"consumerGroup": "g", "queueId": "three"})


def test_unknown_fields_of_a_header_are_ignored():
    assert decode_header(headers.GetMinOffsetRequestHeader, {"topic": "t", "queueId": "1", "nsd": "true"}) == (
        headers.GetMinOffsetRequestHeader("t", 1)
    )


@each_case(
    "raw",
    [
        None,
        b"",
        b"\xc1",
        b"\x93\x01",
        msgpack.packb(7),
        msgpack.packb([]),
        msgpack.packb({}),
        msgpack.packb({"consumerIdList": "abc"}),
        msgpack.packb({"consumerIdList": [1]}),
        msgpack.packb({"consumerIdList": [None]}),
    ],
)
def test_a_body_of_the_wrong_shape_is_one_clear_error(raw):
    with pytest.raises(ProtocolError, match="is no GetConsumerListByGroupResponseBody"):
        decode_body(bodies.GetConsumerListByGroupResponseBody, raw)
    with pytest.raises(ProtocolError, match="is no GetConsumerListByGroupResponseBody"):
        decode_body_cached(bodies.GetConsumerListByGroupResponseBody, raw)


@given(st.binary(max_size=40))
def test_random_bytes_give_a_body_or_a_protocol_error(raw):
    for cls in (model.HeartbeatData, bodies.RegisterBrokerBody, model.TopicRouteData, bodies.PullMessageResponseBody):
        try:
            body = decode_body(cls, raw)
        except ProtocolError:
            continue
        assert isinstance(body, cls)


def test_who_gets_a_shared_body_by_reference_does_not_read_its_bytes():
    body = bodies.PullMessageResponseBody((model.Message("orders", 0, 1, 2, 3, 4, b"body", {"TAGS": "red"}),))
    raw = encode_shared_body(body)
    assert bytes(raw) == encode_body(body)
    assert decode_body(bodies.PullMessageResponseBody, raw) is body
    assert decode_body(bodies.PullMessageResponseBody, bytes(raw)) == body
    with pytest.raises(ProtocolError):
        decode_body(bodies.TopicList, raw)


def test_equal_bytes_are_read_once():
    raw = encode_body(bodies.GetConsumerListByGroupResponseBody(("c1", "c2")))
    first = decode_body_cached(bodies.GetConsumerListByGroupResponseBody, raw)
    assert decode_body_cached(bodies.GetConsumerListByGroupResponseBody, bytes(bytearray(raw))) is first


def test_ids_as_map_keys_travel_as_sorted_pairs():
    group = bodies.BrokerMemberGroup("c", "b", {2: "y", 0: "x"})
    plain = msgpack.unpackb(encode_body(bodies.GetBrokerMemberGroupResponseBody(group)))
    assert plain["brokerMemberGroup"]["brokerAddrs"] == [[0, "x"], [2, "y"]]


def test_a_raw_body_stays_as_it_is():
    assert decode_body(bytes, encode_body(b"hello")) == b"hello"
    assert decode_body(bytes, None) == b""


def test_the_registry_speaks_what_the_control_plane_needs():
    needed = (10, 11, 14, 15, 29, 30, 31, 34, 35, 36, 37, 38, 40, 41, 42, 46, 103, 104, 105, 106, 310, 322)
    needed += (12, 17, 25, 26, 28, 32, 33, 39, 200, 202, 203, 204, 207, 208, 215, 220, 221, 222, 307, 309, 320)
    assert [code for code in (*needed, 901, 904, 905, 906) if RequestCode(code) not in EXCHANGES] == []


@given(st.dictionaries(TEXTS.filter(bool), TEXTS.filter(bool), max_size=3))
def test_properties_survive_their_text_form(properties):
    assert text_to_properties(properties_to_text(properties)) == properties


def test_an_empty_property_does_not_survive_its_text_form():
    assert text_to_properties(properties_to_text({"KEYS": "", "TAGS": "a"})) == {"TAGS": "a"}
    assert text_to_properties(None) == {}


VERSIONS = st.builds(model.DataVersion, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


@given(VERSIONS, VERSIONS)
def test_versions_compare_by_state_version_then_counter_then_timestamp(item, other):
    assert item.compare(other) == -other.compare(item)
    assert (item.compare(other) == 0) == (item == other)
    if item.state_version != other.state_version:
        assert item.compare(other) == (1 if item.state_version > other.state_version else -1)
    elif item.counter != other.counter:
        assert item.compare(other) == (1 if item.counter > other.counter else -1)


def test_the_next_version_counts_on():
    assert model.DataVersion(1, 5, 3).next_version(9, 2) == model.DataVersion(2, 9, 4)
