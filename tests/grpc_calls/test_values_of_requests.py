"""Requests are counted before anything is made of them: two bytes may become a value with thirty fields."""

from contextlib import closing

import grpc
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from emulator.guests.grpc.messages import message_class
from emulator.guests.grpc.request_cost import TooManyValuesError, require_few_values
from emulator.guests.grpc.translation import translation
from nodes.protocol.v2 import service
from nodes.protocol.v2.enums import Code
from support.dialed_proxy import live_proxy, plain_channel, telemetry
from support.every_case import each_case

SEND = message_class("SendMessageRequest")
HEARTBEAT = message_class("HeartbeatRequest")
BOMB = b"\x0a\x00" * 524_288
"""A batch of empty messages."""


def part(number, content):
    """A field that holds bytes."""
    return bytes((number << 3 | 2,)) + _length(len(content)) + content


def _length(length):
    return bytes((length,)) if length < 128 else bytes((length & 127 | 128,)) + _length(length >> 7)


def delays(number):
    policy = {"customized_backoff": {"next": [{}] * number}}
    return message_class("TelemetryCommand")(settings={"backoff_policy": policy}).SerializeToString()


BOMBS = {
    "empty messages": ("SendMessageRequest", BOMB),
    "properties of a message": ("SendMessageRequest", part(1, part(2, b"") * 200_000)),
    "keys of a message": ("SendMessageRequest", part(1, part(3, part(2, b"") * 200_000))),
    "the same field again": ("SendMessageRequest", part(1, part(1, b"") * 200_000)),
    "unknown fields": ("HeartbeatRequest", b"\x78\x00" * 200_000),
    "unknown groups": ("HeartbeatRequest", b"\x7b\x7c" * 200_000),
    "subscriptions": ("TelemetryCommand", part(2, part(4, part(2, b"") * 200_000))),
    "delays": ("TelemetryCommand", delays(60_000)),
    "types in one piece": ("QueryRouteResponse", part(2, part(5, b"\x01" * 200_000))),
    "behind a long text": ("SendMessageRequest", part(1, part(4, b"x" * 100_000)) + BOMB),
}


@each_case("name", BOMBS)
def test_a_request_that_makes_too_many_values_is_refused(name):
    kind, content = BOMBS[name]
    message_class(kind).FromString(content)  # it is one
    with pytest.raises(TooManyValuesError, match=f"a request of {len(content)} bytes with more than 100000 values"):
        require_few_values(message_class(kind), content)


def test_large_messages_and_long_batches_are_read():
    message = {"topic": {"name": "t"}, "user_properties": {f"k{n}": "v" for n in range(128)}, "body": b"x" * 4_000_000}
    small = {"topic": {"name": "t"}, "system_properties": {"tag": "a", "keys": ["k"]}, "body": b"x" * 100}
    for messages in ([message], [small] * 1_000):
        content = SEND(messages=messages).SerializeToString()
        assert len(translation(service.SendMessageRequest).from_bytes(content).messages) == len(messages)


@given(st.binary(max_size=60), st.integers(0, 40))
def test_whatever_can_be_read_is_counted_to_its_end(content, values_max):
    """At least one for each field: what passes with a limit has no more fields than that."""
    for kind in (SEND, message_class("TelemetryCommand")):
        try:
            message = kind.FromString(content)
            require_few_values(kind, content, values_max)
        except Exception:  # noqa: BLE001 - refused, by either
            continue
        assert _fields(message) <= values_max


def _fields(message):
    fields = 0
    for _, value in message.ListFields():
        several = list(value.values()) if hasattr(value, "values") else value
        for item in several if isinstance(several, list) or hasattr(several, "append") else [several]:
            fields += 1 + (_fields(item) if hasattr(item, "ListFields") else 0)
    return fields


def test_a_guest_is_answered_that_its_request_is_too_large_and_others_are_served():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            raw = channel.unary_unary(
                "/apache.rocketmq.v2.MessagingService/SendMessage",
                lambda content: content,
                message_class("SendMessageResponse").FromString,
            )
            response = await trio.to_thread.run_sync(lambda: raw(BOMB, timeout=10, compression=grpc.Compression.Gzip))
            stream = telemetry(channel, iter([message_class("TelemetryCommand").FromString(BOMBS["subscriptions"][1])]))
            with pytest.raises(grpc.RpcError) as ended:
                await trio.to_thread.run_sync(lambda: list(stream))
            query = message_class("QueryRouteRequest")(topic={"name": "t"})
            again = await stage.call("QueryRoute", query, channel=channel)
        return response.status, ended.value.code(), again.status.code

    status, ended, again = live_proxy(scene).result
    assert (status.code, again) == (Code.PAYLOAD_TOO_LARGE, Code.OK)
    assert status.message.startswith(f"a request of {len(BOMB)} bytes with more than 100000 values")
    assert ended is grpc.StatusCode.RESOURCE_EXHAUSTED
