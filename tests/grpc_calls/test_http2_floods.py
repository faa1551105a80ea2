"""Each flood of HTTP/2 ends its own connection with one reason and a GOAWAY frame; clients that do as usual go on."""

import re
import struct

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hpack import Encoder

from emulator.guests.grpc.connection import CallCancelled, ConnectionEnded
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server_connection import ServerConnection
from emulator.guests.grpc.status import GrpcStatus
from support.every_case import each_case
from support.h2_peer import H2Peer, frame, framed, headers

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
S = 1_000_000_000


def test_rapid_reset():
    peer = H2Peer()
    for _ in range(1_000):
        call = peer.call(framed(b"x"))
        peer.h2.reset_stream(call, ErrorCodes.CANCEL)
    peer.raw(b"")

    assert peer.reason() == "too many calls that were reset"


def test_resets_that_malformed_messages_provoke():
    peer = H2Peer()
    for _ in range(1_000):
        peer.call(framed(b"x", 4))
        peer.swap()
        if peer.server.ended is not None:
            break

    assert peer.reason() == "too many calls that were reset"


def test_answers_to_frames_that_the_client_does_not_read():
    peer = H2Peer()
    call = peer.call(framed(b"x"), ends=False)
    peer.swap()
    peer.h2.reset_stream(call)
    peer.raw(b"")
    for _ in range(100):
        peer.raw(frame(DATA, 0, call, b"y") * 1_000)  # each is answered RST_STREAM

    assert re.fullmatch(r"it has not read 2\d{5} bytes of answers to its frames", peer.reason())


def test_a_settings_flood():
    peer = H2Peer()
    peer.raw(frame(SETTINGS) * 200)

    assert peer.reason() == "too many SETTINGS frames"


def test_a_ping_flood():
    peer = H2Peer()
    peer.raw(frame(PING, 0, 0, b"12345678") * 300)

    assert peer.reason() == "too many PING frames"


def test_a_continuation_flood_is_seen_before_its_headers_are_decoded():
    peer = H2Peer()
    peer.raw(frame(HEADERS, 0, 1, b"") + frame(CONTINUATION, 0, 1, b"") * 20)

    assert peer.reason() == "more than 8 CONTINUATION frames for one call"


def test_endless_metadata():
    peer = H2Peer()
    peer.raw(frame(HEADERS, 0, 1, b"\x00" * 16_384) + frame(CONTINUATION, 0, 1, b"\x00" * 16_384) * 4)

    assert peer.reason() == "more than 65536 bytes of metadata for one call"


def test_a_bomb_of_compressed_metadata():
    encoder = Encoder()
    block = encoder.encode([*headers(), ("x-a", "a" * 4_000)]) + encoder.encode([("x-a", "a" * 4_000)]) * 200
    peer = H2Peer()
    peer.raw(frame(HEADERS, 5, 1, block))

    assert peer.reason().startswith("not HTTP/2: DenialOfServiceError")


def test_empty_data_frames():
    peer = H2Peer()
    call = peer.call(ends=False)
    peer.raw(frame(DATA, 0, call) * 100)

    assert peer.reason() == "too many empty DATA frames"


def test_window_updates_that_no_data_has_caused():
    peer = H2Peer()
    peer.raw(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 3_000)

    assert peer.reason() == "too many WINDOW_UPDATE frames"


def test_a_window_that_overflows():
    peer = H2Peer()
    peer.raw(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)))

    assert peer.reason().startswith("not HTTP/2: FlowControlError")


def test_a_window_of_a_call_that_overflows_resets_this_call_alone():
    peer = H2Peer()
    good, bad = peer.call(framed(b"x")), peer.call(ends=False)
    peer.raw(frame(WINDOW_UPDATE, 0, bad, struct.pack(">I", 2**31 - 1)))
    peer.server.end(good, GrpcStatus.OK, "", 0)
    peer.swap()

    assert (peer.answer(bad)[2], peer.has_ended(good)) == (ErrorCodes.FLOW_CONTROL_ERROR, True)
    assert CallCancelled(bad, "the peer has reset the call") in peer.events


def test_a_settings_frame_whose_windows_overflow():
    peer = H2Peer()
    call = peer.call(ends=False)
    peer.swap()
    peer.h2.increment_flow_control_window(1_000, call)
    peer.raw(frame(SETTINGS, 0, 0, struct.pack(">HI", SettingCodes.INITIAL_WINDOW_SIZE, 2**31 - 1)))

    assert peer.reason().startswith("not HTTP/2: FlowControlError")


def test_data_beyond_the_windows():
    peer = H2Peer(window_bytes=65_535)
    call = peer.call(framed(b"x"), ends=False)
    peer.swap()  # no handler takes the message, so the windows stay as they are
    peer.raw(frame(DATA, 0, call, b"y" * 16_384) * 5)

    assert peer.reason().startswith("not HTTP/2: FlowControlError")


def test_a_window_that_is_opened_byte_by_byte():
    peer = H2Peer()
    peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1})
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.send_message(call, b"z" * 100_000)
    for _ in range(5_000):
        peer.h2.increment_flow_control_window(1, call)
        peer.swap()
        if peer.server.ended is not None:
            break

    assert peer.reason() == "too many WINDOW_UPDATE frames"


@pytest.mark.parametrize(("kind", "content"), [(PRIORITY, b"\0\0\0\3\0"), (0x42, b"unknown")])
def test_frames_that_carry_no_call(kind, content):
    peer = H2Peer()
    peer.raw(frame(kind, 0, 1, content) * 200)

    assert peer.reason() == "too many frames that carry no call"


def test_more_calls_at_a_time_than_allowed():
    peer = H2Peer(concurrent_calls=10)
    chunk = b"".join(frame(HEADERS, 4, call, Encoder().encode(headers())) for call in range(1, 23, 2))
    peer.raw(chunk)

    assert peer.reason().startswith("not HTTP/2: TooManyStreamsError")


def test_messages_that_never_end():
    peer = H2Peer(received_bytes=1_000_000)
    for _ in range(20):
        call = peer.call(ends=False)
        peer.h2.send_data(call, struct.pack(">BI", 0, 100_000) + b"x" * 16_000)
        peer.swap()
    for call in range(1, 41, 2):
        for _ in range(3):
            if peer.server.ended is None:
                peer.h2.send_data(call, b"x" * 16_000)
                peer.swap()

    assert peer.reason() == "more than 1000000 bytes of messages wait"


@each_case(
    ("chunk", "text"),
    [
        (frame(DATA, 0, 0, b"x"), "Stream ID must be non-zero for DataFrame"),
        (frame(CONTINUATION, 4, 1, b""), "NoSuchStreamError: 1"),
        (frame(HEADERS, 0, 1, b"") + frame(PING, 0, 0, b"12345678"), "Invalid frame during header block"),
        (frame(DATA, 0, 1, b"x" * 20_000), "Received overlong frame: length 20000, max 16384"),
        (frame(HEADERS, 4, 1, b"\xff\xff\xff\xff"), "Error decoding header block"),
        (frame(HEADERS, 4, 2, Encoder().encode(headers())), "Invalid stream ID for peer"),
        (frame(RST_STREAM, 0, 1, b"x"), "Frame data missing or invalid"),
        (frame(PING, 0, 0, b"short"), "Frame data missing or invalid"),
    ],
)
def test_bytes_that_are_no_frames_end_the_connection(chunk, text):
    peer = H2Peer()
    peer.swap()
    ended = peer.raw(chunk)[-1]

    assert isinstance(ended, ConnectionEnded)
    assert ended.is_fault
    assert ended.text.startswith("not HTTP/2: ")
    assert text in peer.reason()


def test_another_protocol_ends_the_connection():
    server = ServerConnection(GrpcLimits(), 0)

    assert server.receive(b"GET / HTTP/1.1\r\n\r\n", 0) == [
        ConnectionEnded("not HTTP/2: ProtocolError: Invalid HTTP/2 preamble.", is_fault=True)
    ]


def test_allowances_fill_up_with_time():
    peer = H2Peer()
    for second in range(60):
        peer.now_ns = second * S
        peer.raw(frame(PING, 0, 0, b"12345678") * 10 + frame(SETTINGS) * 10)

    assert peer.server.ended is None


def test_a_client_that_reads_much_may_update_windows_and_ping_as_often_as_it_needs():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    for _ in range(2_000):
        peer.server.send_message(call, b"z" * 2_000)
        peer.swap()
        peer.h2.increment_flow_control_window(2_005)
        peer.h2.increment_flow_control_window(2_005, call)
        peer.h2.ping(b"bandwidt")
    peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()

    assert (peer.server.ended, peer.has_ended(call)) == (None, True)


def test_after_the_end_nothing_of_the_peer_is_read():
    peer = H2Peer()
    peer.raw(frame(SETTINGS) * 200)
    received_bytes = peer.server.received_bytes

    assert peer.server.receive(frame(PING, 0, 0, b"12345678") * 1_000, 0) == []
    assert peer.server.received_bytes == received_bytes
