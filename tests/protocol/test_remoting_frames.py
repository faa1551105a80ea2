"""RocketMQ's own frames: what goes in comes out in both forms of the header, and what is no frame is refused."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.guests.remoting.remoting_command import (
    FIRST_BYTE,
    HeaderError,
    LanguageCode,
    RemotingCommand,
    RemotingDecoder,
    SerializeType,
    decode_remoting,
    encode_remoting,
    from_command,
)
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.header_codec import decode_header
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.headers_pop import PopMessageRequestHeader
from nodes.protocol.properties import properties_to_text, text_to_properties
from nodes.rpc.codec import FRAME_BYTES_MAX, FrameError
from support.every_case import each_case

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
shorts = st.integers(-(2**15), 2**15 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
commands = st.builds(
    RemotingCommand,
    code=shorts,
    language=st.sampled_from(LanguageCode),
    version=shorts,
    opaque=ints,
    flag=ints,
    remark=st.none() | texts,
    ext_fields=st.none() | st.dictionaries(texts, texts, min_size=1, max_size=5),
    body=st.none() | st.binary(min_size=1),
    serialize_type=st.sampled_from(SerializeType),
)


def heard(chunks):
    decoder, received = RemotingDecoder(), []
    for chunk in chunks:
        decoder.take(chunk)
        while (command := decoder.next()) is not None:
            received.append(command)
    return received, decoder


@given(st.lists(commands, max_size=6), st.data())
@settings(max_examples=60)
def test_commands_survive_any_cut_of_the_byte_stream(sent, data):
    stream = b"".join(map(encode_remoting, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    received, decoder = heard(stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True))

    assert received == sent
    assert not decoder.unfinished_bytes


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_garbage_is_a_frame_error_and_nothing_else(garbage):
    try:
        read = decode_remoting(garbage)
    except FrameError:
        return
    assert isinstance(read, RemotingCommand)


@given(commands, st.integers(0, 80), st.integers(0, 255))
@settings(max_examples=200)
def test_a_frame_with_one_wrong_byte_is_read_or_refused(command, place, byte):
    content = bytearray(encode_remoting(command)[4:])
    content[place % len(content)] = byte
    with contextlib.suppress(FrameError):
        decode_remoting(bytes(content))


def test_a_node_sees_texts_only_and_its_answer_goes_back_as_it_was_asked():
    header = b'{"code":310,"opaque":7,"language":"ZIG","extFields":{"e":3,"m":true,"n":null,"i":"x"}}'
    read = decode_remoting(struct.pack(">I", len(header)) + header + b"body")
    command = read.to_command(0)

    assert command == Command(310, 0, 7, 0, "OTHER", None, {"e": "3", "m": "true", "i": "x"}, b"body")
    for form in SerializeType:
        answer = decode_remoting(encode_remoting(from_command(command.answer(17, "no"), form))[4:])
        assert (answer.code, answer.opaque, answer.flag, answer.remark, answer.version) == (17, 7, 1, "no", 479)
        assert (answer.language, answer.serialize_type) == (LanguageCode.PYTHON, form)


def test_every_frame_that_is_short_enough_begins_with_a_zero():
    longest = RemotingCommand(1, serialize_type=SerializeType.ROCKETMQ)
    rest = len(encode_remoting(longest))
    frame = encode_remoting(longest._replace(body=bytes(FRAME_BYTES_MAX - rest)))

    assert len(frame) == FRAME_BYTES_MAX
    assert frame[:1] == FIRST_BYTE
    with pytest.raises(FrameError, match="16777217 bytes; at most 16777216"):
        encode_remoting(longest._replace(body=bytes(FRAME_BYTES_MAX - rest + 1)))


def test_a_frame_that_is_too_long_is_refused_before_it_has_come():
    decoder = RemotingDecoder()
    decoder.take(struct.pack(">I", FRAME_BYTES_MAX - 3))
    with pytest.raises(FrameError, match="16777217 bytes announced"):
        decoder.next()


@each_case(
    ("content", "reason"),
    [
        (b"", "too short for a header"),
        (struct.pack(">I", 100) + b"{}", "header of 100 bytes announced"),
        (struct.pack(">I", 0), "no header"),
        (struct.pack(">I", 4) + b"null", "no header"),
        (struct.pack(">I", 2) + b"[]", "no JSON object"),
        (struct.pack(">I", 3) + b"{x}", "header is no JSON"),
        (struct.pack(">I", 11) + b'{"code":[]}', "code of the header is no number"),
        (struct.pack(">I", 19) + b'{"code":4294967296}', "beyond 32 bits"),
        (struct.pack(">I", 2 << 24), "unknown form 2"),
        (struct.pack(">I", 1 << 24 | 3) + b"abc", "ends inside a field"),
        (struct.pack(">I", 2_000_000) + b" " * 2_000_000, "header of 2000000 bytes; at most 1048576"),
        (
            struct.pack(">IhbhiiiI", 1 << 24 | 60_021, 1, 0, 1, 1, 0, 0, 60_000) + bytes(60_000),
            "header of more than 4096 fields",
        ),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(content, reason):
    with pytest.raises(HeaderError, match=reason):
        decode_remoting(content)


@pytest.mark.trap("X18")
def test_the_binary_header_keeps_sixteen_bits_of_a_code_so_requests_of_pop_do_not_survive_it():
    code = int(RequestCode.POP_MESSAGE)
    forms = {
        form: decode_remoting(encode_remoting(RemotingCommand(code, serialize_type=form))[4:]) for form in SerializeType
    }

    assert forms[SerializeType.JSON].code == code
    assert forms[SerializeType.ROCKETMQ].code == code & 0xFFFF


@pytest.mark.trap("X18")
def test_a_field_that_is_missing_is_nothing_and_an_optional_number_that_is_none_is_missing():
    assert decode_header(PopMessageRequestHeader, {}).max_msg_nums == 0
    assert decode_header(BrokerHeartbeatRequestHeader, {"brokerId": "x"}).broker_id is None
    assert text_to_properties(properties_to_text({"a": "", "b": "1"})) == {"b": "1"}
