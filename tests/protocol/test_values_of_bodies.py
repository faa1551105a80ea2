"""Bodies and headers are counted before values are made of them: few bytes of a guest may become very many values."""

import json
import struct
import zlib

import msgpack
import pytest

from emulator.guests.remoting.codec import EmulatorCodec, GuestAddresses, RemotingCodec
from emulator.guests.remoting.fastjson import VALUES_MAX
from emulator.guests.remoting.message_binary import encode_messages
from emulator.guests.remoting.remoting_command import HEADER_FIELDS_MAX, HeaderError, RemotingDecoder, encode_remoting
from nodes.filter.filter_api import SubscriptionError, build
from nodes.filter.sql_filter import SQL_CHARS_MAX, compile_sql
from nodes.filter.sql_tokens import SqlError
from nodes.protocol.batch_body import MESSAGES_MAX, BatchedMessage, LongBatchError
from nodes.protocol.batch_body import decode_messages as decode_batch
from nodes.protocol.batch_body import encode_messages as encode_batch
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError, UnreadableBody
from nodes.protocol.model import HeartbeatData, Message
from nodes.protocol.names import EXPRESSION_CHARS_MAX
from nodes.protocol.registry import decode_body
from nodes.rpc.codec import FrameError, encode
from nodes.rpc.msgpack_values import VALUES_MAX as MSGPACK_VALUES_MAX
from nodes.rpc.msgpack_values import has_many_values
from support.every_case import each_case
from support.remoting_program import request

HEARTBEAT = int(RequestCode.HEART_BEAT)
TOO_MANY = f"more than {VALUES_MAX} values"


def remoting(code: int, body: bytes, fields: dict[str | None, str | None] | None = None) -> Command:
    """What a node gets of a frame of RocketMQ's."""
    (command,) = RemotingCodec(GuestAddresses(str)).decode(encode_remoting(request(code, 1, fields=fields, body=body)))
    return command


def emulators(code: int, body: bytes) -> Command:
    """What a node gets of a frame of the emulator's."""
    (command,) = EmulatorCodec().decode(encode(Command(code, 0, 1, body=body)))
    return command


# --- bodies in JSON -----------------------------------------------------------------------


def consumers(entries: str) -> bytes:
    return f'{{"clientID":"c","consumerDataSet":[{entries}]}}'.encode()


JSON_BOMBS = {
    "empty groups": consumers(",".join(["{}"] * 10_000)),
    "empty subscriptions": consumers('{{"subscriptionDataSet":[{}]}}'.format(",".join(["{}"] * 8_000))),
    "numbers": consumers('{{"subscriptionDataSet":[{{"codeSet":[{}]}}]}}'.format(",".join(["1"] * 30_000))),
    "bare keys": consumers(",".join(["{groupName:'g'}"] * 8_000)),
    "no commas": b"{x:[" + b"'' " * 20_000 + b"]}",
    "comments": b"{" + b"/**/" * 60_000 + b"}",
    "halves of pairs": consumers('{"groupName":"%s"}' % ("\\ud841" * 60_000)),
}


@pytest.mark.parametrize("body", JSON_BOMBS.values(), ids=JSON_BOMBS.keys())
def test_a_body_in_json_that_makes_too_many_values_is_unreadable(body: bytes) -> None:
    command = remoting(HEARTBEAT, body)
    with pytest.raises(ProtocolError, match=TOO_MANY):
        decode_body(HeartbeatData, command.body)


def test_numbers_of_very_many_digits_are_not_read() -> None:
    for body in (b'{"clientID":1,"x":%s}' % (b"9" * 401), b"{clientID:%s}" % (b"9" * 401)):
        with pytest.raises(ProtocolError, match="a number of 401 digits; at most 400 are read"):
            decode_body(HeartbeatData, remoting(HEARTBEAT, body).body)


def test_a_heartbeat_of_a_thousand_groups_is_read() -> None:
    group = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    subscription = {"topic": "t", "subString": "a || b", "tagsSet": ["a", "b"], "codeSet": [97, 98], "subVersion": 1}
    groups = [{**group, "subscriptionDataSet": [subscription]} for _ in range(1_000)]
    read = decode_body(HeartbeatData, remoting(HEARTBEAT, json.dumps({"consumerDataSet": groups}).encode()).body)
    assert len(read.consumer_data_set) == 1_000


# --- registrations ------------------------------------------------------------------------


def part(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def registration(topics: list[bytes], mappings: list[bytes]) -> bytes:
    parts = [part(b'{"counter":1}'), struct.pack(">i", len(topics)), *map(part, topics), part(b"[]")]
    return zlib.compress(b"".join([*parts, struct.pack(">i", len(mappings)), *map(part, mappings)]), 9)


REGISTRATION_BOMBS = {
    "attributes": registration([b"t 4 4 6 SINGLE_TAG {a:1,b:2,c:[[[1]]]}"] * 5_000, []),
    "mappings": registration([], [b'{"currIdMap":{%s}}' % b",".join(b'"%d":1' % n for n in range(900))] * 40),
}


@pytest.mark.parametrize("body", REGISTRATION_BOMBS.values(), ids=REGISTRATION_BOMBS.keys())
def test_all_parts_of_a_registration_are_counted_together(body: bytes) -> None:
    command = remoting(RequestCode.REGISTER_BROKER, body, {"compressed": "true"})
    assert isinstance(command.body, UnreadableBody)
    assert TOO_MANY in command.body.reason


# --- messages -----------------------------------------------------------------------------


def message(properties: dict[str, str]) -> Message:
    return Message("t", 0, 0, 0, 0, 0, b"", properties, born_host="1.1.1.1:1", store_host="1.1.1.1:1")


@pytest.mark.parametrize(
    "messages", [[message({})] * 4_000, [message({f"k{n}": "v" for n in range(6_000)})] * 9], ids=["many", "properties"]
)
def test_messages_that_a_guest_relays_are_counted(messages: list[Message]) -> None:
    command = remoting(RequestCode.CONSUME_MESSAGE_DIRECTLY, encode_messages(messages))
    with pytest.raises(ProtocolError, match=TOO_MANY):
        decode_body(PullMessageResponseBody, command.body)


def test_a_batch_has_a_limit_of_messages_and_of_their_properties() -> None:
    assert len(decode_batch(encode_batch([BatchedMessage(b"")] * MESSAGES_MAX))) == MESSAGES_MAX
    for messages in ([BatchedMessage(b"")] * (MESSAGES_MAX + 1), [BatchedMessage(b"", "k\x01v\x02" * 6_000)] * 17):
        with pytest.raises(LongBatchError):
            decode_batch(encode_batch(messages))


# --- headers and expressions --------------------------------------------------------------


def test_a_header_in_json_has_a_limit_of_fields() -> None:
    fields: dict[str | None, str | None] = {str(number): "" for number in range(HEADER_FIELDS_MAX + 1)}
    decoder = RemotingDecoder()
    decoder.take(encode_remoting(request(1, 1, fields=fields)))
    with pytest.raises(HeaderError, match="header of more than 4096 fields"):
        decoder.next()


def test_long_expressions_are_not_compiled_and_no_tags_are_made_of_them() -> None:
    compile_sql(" or ".join(["a = 1"] * 900))
    with pytest.raises(SqlError, match=f"at most {SQL_CHARS_MAX} are read"):
        compile_sql(" or ".join(["a = 1"] * 1_000))
    for kind in (None, "SQL92"):
        with pytest.raises(SubscriptionError, match=f"at most {EXPRESSION_CHARS_MAX} are read"):
            build("t", "a||" * EXPRESSION_CHARS_MAX, kind)


# --- msgpack ------------------------------------------------------------------------------


def list_of(number: int, entry: bytes) -> bytes:
    return b"\xdd" + number.to_bytes(4) + entry * number


MSGPACK_BOMBS = {
    "empty lists": list_of(300_000, b"\x90"),
    "empty maps": list_of(300_000, b"\x80"),
    "pairs": list_of(150_000, b"\x92\xc0\xc0"),
    "announced": b"\xdd\x00\xf0\x00\x00" * 1_000,
    "behind a text": b"\x92" + b"\xdb" + (5_000).to_bytes(4) + b"x" * 5_000 + list_of(300_000, b"\xc0"),
}


@each_case("bomb", MSGPACK_BOMBS.values(), ids=MSGPACK_BOMBS.keys())
def test_msgpack_that_makes_too_many_values_is_unreadable(bomb: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"more than {MSGPACK_VALUES_MAX} values"):
        decode_body(HeartbeatData, emulators(HEARTBEAT, bomb).body)
    with pytest.raises(FrameError, match=f"more than {MSGPACK_VALUES_MAX} values"):
        list(EmulatorCodec().decode(len(bomb).to_bytes(4) + bomb))


def test_raw_bodies_are_not_counted() -> None:
    body = MSGPACK_BOMBS["empty lists"]
    assert emulators(RequestCode.SEND_MESSAGE_V2, body).body == body


def test_values_of_every_form_are_counted_to_the_end() -> None:
    every = [1, -1, 200, 70_000, 2**40, 1.5, None, True, "a", "a" * 40, "a" * 300, "a" * 70_000, b"b" * 300]
    every += [b"b" * 70_000, msgpack.ExtType(5, b"xx"), msgpack.ExtType(5, b"x" * 300), {"k": []}, [0] * 20]
    packed = msgpack.packb(every)
    assert not has_many_values(packed)
    assert has_many_values(b"\x92" + packed + list_of(300_000, b"\xc0"))


def test_a_frame_whose_header_has_very_many_fields_ends_its_connection() -> None:
    fields = {str(number): "" for number in range(HEADER_FIELDS_MAX + 1)}
    with pytest.raises(FrameError, match="header of more than 4096 fields"):
        list(EmulatorCodec().decode(encode(Command(HEARTBEAT, 0, 1, ext_fields=fields))))
