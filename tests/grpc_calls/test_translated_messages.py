"""Messages of `apache.rocketmq.v2` as values and back: every class, by the public definitions."""

import types
import typing
from collections.abc import Mapping
from enum import IntEnum
from inspect import getmembers, isclass

import attrs
import pytest
from google.protobuf.descriptor_pool import Default
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.guests.grpc.messages import message_class, pool, service_methods
from emulator.guests.grpc.status import GrpcError
from emulator.guests.grpc.translation import IllegalTimeError, receive_message_parts, translation
from nodes.protocol.v2 import definition, enums, service
from support.every_case import each_case
from support.received_message import received_message

STREAMED = service.ReceiveMessageResponse
"""The one value that stands for several messages."""
CLASSES = [
    cls
    for module in (definition, service)
    for _, cls in getmembers(module, isclass)
    if cls.__module__ == module.__name__ and cls is not STREAMED
]
YEARS_MS = 1_000 * 200_000_000_000


@each_case("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_value_has_the_fields_of_its_message(cls):
    fields = message_class(cls.__name__).DESCRIPTOR.fields_by_name
    named = [field.name if field.name in fields else field.name.removesuffix("_ms") for field in attrs.fields(cls)]

    assert [name for name in named if name not in fields] == []
    assert [name for name in fields if name not in named] == []


@each_case("cls", [cls for _, cls in getmembers(enums, isclass) if cls.__module__ == enums.__name__])
def test_each_enum_has_the_names_and_numbers_of_the_definitions(cls):
    defined = pool().FindEnumTypeByName(f"apache.rocketmq.v2.{cls.__name__}")

    assert {member.name: int(member) for member in cls} == {value.name: value.number for value in defined.values}


def values(hint):
    """Values of a field."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(st.none(), *(values(kind) for kind in arguments if kind is not type(None)))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
    if attrs.has(hint):
        return built(hint)
    if issubclass(hint, IntEnum):
        return st.sampled_from(hint)
    return {
        int: st.integers(-(2**31), 2**31 - 1),
        str: st.text(max_size=8),
        bytes: st.binary(max_size=8),
        bool: st.booleans(),
        float: st.floats(width=32, allow_nan=False),
    }[hint]


def built(cls):
    """Values of a class; of the fields of a oneof at most one is set."""
    oneofs = {
        field.name: group.name
        for group in message_class(cls.__name__).DESCRIPTOR.oneofs
        if len(group.fields) > 1
        for field in group.fields
    }
    hints = typing.get_type_hints(cls)

    def single(fields):
        seen = []
        for name, value in fields.items():
            if name in oneofs and value is not None:
                fields = fields | ({name: None} if oneofs[name] in seen else {})
                seen.append(oneofs[name])
        return cls(**fields)

    strategy = {field.name: values(hints[field.name]) for field in attrs.fields(cls)}
    return st.fixed_dictionaries(strategy).map(single)


@each_case("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_value_that_becomes_a_message_and_comes_back_is_the_same(cls):
    translated = translation(cls)

    @settings(max_examples=15)
    @given(built(cls))
    def holds(value):
        assert translated.from_bytes(translated.to_bytes(value)) == value

    holds()


@given(st.builds(STREAMED, built(definition.Status), st.lists(built(definition.Message), max_size=3).map(tuple)))
def test_received_messages_are_a_stream_that_begins_with_its_status(value):
    value = attrs.evolve(value, delivery_timestamp_ms=1_700_000_000_123)
    parts = list(receive_message_parts(value))

    assert len(parts) == len(value.messages) + 2
    assert received_message(parts) == value
    assert received_message(parts[:1]) == STREAMED(value.status)


@each_case("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_empty_message_is_the_default_value(cls):
    assert translation(cls).from_bytes(b"") == cls()


@given(st.binary(max_size=200), st.sampled_from(CLASSES))
def test_any_bytes_are_a_message_or_are_refused(content, cls):
    try:
        found = type(translation(cls).from_bytes(content)).__name__
    except GrpcError as error:
        found = error.status.name
    except IllegalTimeError as error:
        found = str(error).partition(" is not valid: seconds ")[0]

    assert found in (cls.__name__, "UNKNOWN", "Duration", "Timestamp")


@each_case(
    ("kind", "seconds", "nanos", "ms"),
    [
        ("Timestamp", 1, 500_000_000, 1_500),
        ("Timestamp", -1, 500_000_000, -500),
        ("Timestamp", 1, -1, None),
        ("Timestamp", 253_402_300_800, 0, None),
        ("Duration", 1, 999_999, 1_000),
        ("Duration", -1, -500_000_000, -1_500),
        ("Duration", 0, -500_000_000, -500),
        ("Duration", 1, -1, None),
        ("Duration", -1, 1, None),
        ("Duration", 315_576_000_001, 0, None),
    ],
)
def test_times_are_milliseconds_as_java_computes_them(kind, seconds, nanos, ms):
    cls, name = {
        "Timestamp": (definition.SystemProperties, "born_timestamp"),
        "Duration": (service.ReceiveMessageRequest, "invisible_duration"),
    }[kind]
    message = message_class(cls.__name__)()
    getattr(message, name).seconds, getattr(message, name).nanos = seconds, nanos
    if ms is None:
        with pytest.raises(IllegalTimeError, match=f"{kind} is not valid: seconds {seconds}, nanos {nanos}"):
            translation(cls).to_value(message)
    else:
        assert getattr(translation(cls).to_value(message), f"{name}_ms") == ms


@each_case("ms", [0, 1, -1, -999, -1_000, 1_234_567_890_123, -YEARS_MS, YEARS_MS])
def test_durations_of_any_sign_come_back(ms):
    translated = translation(service.ReceiveMessageRequest)
    request = service.ReceiveMessageRequest(invisible_duration_ms=ms)

    assert translated.from_bytes(translated.to_bytes(request)) == request


def test_an_unknown_number_of_an_enum_is_unspecified():
    message = message_class("Settings")(client_type=99)

    assert translation(definition.Settings).to_value(message).client_type is enums.ClientType.CLIENT_TYPE_UNSPECIFIED


def test_a_lone_surrogate_becomes_a_question_mark():
    message = translation(definition.Resource).to_message(definition.Resource("a\ud800b"))

    assert message.name == "a?b"


def test_the_service_has_sixteen_methods_with_their_messages():
    methods = {method.name: method for method in service_methods()}

    assert len(methods) == 16
    assert methods["Telemetry"].path == "apache.rocketmq.v2.MessagingService/Telemetry"
    assert methods["QueryRoute"].request.DESCRIPTOR.full_name == "apache.rocketmq.v2.QueryRouteRequest"
    assert [name for name, method in methods.items() if method.kind.value != "unary"] == [
        "ReceiveMessage",
        "PullMessage",
        "Telemetry",
    ]


def test_the_definitions_stand_next_to_those_of_another_program():
    with pytest.raises(KeyError):
        Default().FindMessageTypeByName("apache.rocketmq.v2.Message")
    assert message_class("Message") is message_class("Message")
