"""Our frames: what goes in comes out, however the bytes were cut; what is no frame is refused."""

import struct

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.command import Command
from nodes.rpc.codec import FRAME_BYTES_MAX, Decoder, FrameError, decode, encode
from support.every_case import each_case

ints = st.integers(-(2**31), 2**31 - 1)
commands = st.builds(
    Command,
    code=ints,
    flag=st.integers(0, 3),
    opaque=ints,
    version=ints,
    language=st.text(max_size=8),
    remark=st.none() | st.text(),
    ext_fields=st.dictionaries(st.text(), st.text(), max_size=5),
    body=st.none() | st.binary(),
    cause=st.integers(0, 2**62),
    request_code=ints,
)


def fields(**changed):
    """The content of a frame whose fields are right but for those given."""
    return msgpack.packb([changed.get(name, value) for name, value in Command(11)._asdict().items()])


@given(st.lists(commands, max_size=6), st.data())
def test_commands_survive_any_cut_of_the_byte_stream(sent, data):
    stream = b"".join(map(encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    decoder, received = Decoder(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decoder.feed(stream[begin:end])

    assert received == sent
    assert not decoder.unfinished_bytes


def test_bytes_may_come_one_at_a_time():
    sent = [Command(1, remark="grüße"), Command(2, body=b"x" * 300)]
    decoder, received = Decoder(), []
    for byte in b"".join(map(encode, sent)):
        received += decoder.feed(bytes([byte]))

    assert received == sent


def test_an_unfinished_frame_is_known_as_such():
    decoder = Decoder()
    frame = encode(Command(1))

    assert decoder.feed(frame + frame[:3]) == [Command(1)]
    assert decoder.unfinished_bytes


@each_case(
    ("content", "reason"),
    [
        (b"", "not msgpack"),
        (b"\xc1", "not msgpack"),
        (b"\x01\x02", "not msgpack"),
        (msgpack.packb({1: 2}), "not msgpack"),
        (b"\x9a" + b"\xa1\xff" * 10, "not msgpack"),
        (b"\xdd\xff\xff\xff\xff", "not msgpack"),
        (msgpack.packb({"code": 1}), "expected an array of 10 fields"),
        (msgpack.packb([1] * 9), "expected an array of 10 fields"),
        (msgpack.packb([1] * 11), "expected an array of 10 fields"),
        *(
            (fields(**{name: wrong}), "a field has the wrong type")
            for name, wrong in (
                ("code", "1"), ("code", None), ("code", True), ("flag", 1.0), ("opaque", b"1"), ("version", None),
                ("language", 1), ("remark", b"text"), ("ext_fields", []), ("ext_fields", None), ("body", "text"),
                ("cause", "0"), ("request_code", None),
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_command_is_refused_with_the_reason(content, reason):
    with pytest.raises(FrameError, match=reason):
        decode(content)
    with pytest.raises(FrameError, match=reason):
        Decoder().feed(struct.pack(">I", len(content)) + content)


def test_a_length_beyond_the_limit_is_refused_before_its_bytes_arrive():
    with pytest.raises(FrameError, match="frame of 16777217 bytes announced; at most 16777216 are allowed"):
        Decoder().feed(struct.pack(">I", FRAME_BYTES_MAX + 1))


def test_a_frame_beyond_the_limit_is_not_even_sent():
    with pytest.raises(FrameError, match="at most 16777216 are allowed"):
        encode(Command(1, body=bytes(FRAME_BYTES_MAX)))
    assert len(encode(Command(1, body=bytes(FRAME_BYTES_MAX - 100)))) > FRAME_BYTES_MAX - 100


def test_what_came_before_a_bad_frame_is_not_lost_with_it():
    with pytest.raises(FrameError) as error:
        Decoder().feed(encode(Command(1)) + encode(Command(2)) + b"\x00\x00\x00\x01\xc1")

    assert error.value.commands_before == (Command(1), Command(2))
