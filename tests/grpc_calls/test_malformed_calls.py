"""Calls that are malformed get what a server of grpc-java 1.53 sends, which RocketMQ 5.3.3 ships; others go on."""

import gzip
import struct

from h2.errors import ErrorCodes

from emulator.guests.grpc.connection import CallCancelled, ConnectionEnded, MessageReceived
from emulator.guests.grpc.status import GrpcStatus
from support.every_case import each_case
from support.h2_peer import H2Peer, framed

MIB = 1024 * 1024
REFUSED = [
    ({"_path": "s/M"}, b"404", b"12", b"Expected path to start with /: s/M"),
    ({"_method": "GET"}, b"405", b"13", b"Method 'GET' is not supported"),
    ({"content_type": None}, b"415", b"13", b"Content-Type is missing from the request"),
    ({"content_type": "text/html"}, b"415", b"13", b"Content-Type 'text/html' is not supported"),
    ({"content_type": "application/grpcfoo"}, b"415", b"13", b"Content-Type 'application/grpcfoo' is not supported"),
]


@each_case(("changes", "http_status", "status", "text"), REFUSED)
def test_headers_that_are_no_call_get_a_status_of_http_and_of_grpc(changes, http_status, status, text):
    peer = H2Peer()
    call = peer.call(framed(b"x"), **changes)
    events = peer.swap()
    headers, _, reset = peer.answer(call)

    assert events == []
    assert (headers[b":status"], headers[b"grpc-status"], headers[b"grpc-message"]) == (http_status, status, text)
    assert reset == ErrorCodes.INTERNAL_ERROR


@each_case("timeout", ["xx", "10x", "123456789S", "", "-1S"])
def test_a_timeout_that_is_none_resets_the_call(timeout):
    peer = H2Peer()
    call = peer.call(framed(b"x"), grpc_timeout=timeout)

    assert peer.swap() == []
    assert peer.answer(call) == (None, b"", ErrorCodes.INTERNAL_ERROR)


def test_an_unknown_encoding_is_unimplemented():
    peer = H2Peer()
    call = peer.call(framed(b"x", 1), grpc_encoding="snappy")
    events = peer.swap()
    headers, _, _ = peer.answer(call)

    assert events == []
    assert (headers[b"grpc-status"], headers[b"grpc-message"]) == (b"12", b"Can't find decompressor for snappy")


MALFORMED = {
    "half a message": ({}, framed(b"hello")[:7], "Encountered end-of-stream mid-frame"),
    "half a prefix": ({}, framed(b"hello")[:3], "Encountered end-of-stream mid-frame"),
    "too long": ({}, struct.pack(">BI", 0, 200 * MIB), f"gRPC message exceeds maximum size {130 * MIB}: {200 * MIB}"),
    "compressed": ({}, framed(b"x", 1), "Can't decode compressed gRPC message as compression not configured"),
    "reserved bits": ({}, framed(b"x", 4), "gRPC frame header malformed: reserved bits not zero"),
    "no gzip": ({"grpc_encoding": "gzip"}, framed(b"garbage", 1), "a message is not gzip: "),
    "short gzip": (
        {"grpc_encoding": "gzip"},
        framed(gzip.compress(b"x" * 100)[:20], 1),
        "a message is not gzip: it ends early",
    ),
}


@each_case("name", MALFORMED)
def test_a_malformed_message_resets_its_call_and_no_other(name):
    changes, body, text = MALFORMED[name]
    peer = H2Peer()
    good = peer.call(framed(b"x"))
    bad = peer.call(body, **changes)
    cancelled = [event for event in peer.swap() if isinstance(event, CallCancelled)]
    peer.server.end(good, GrpcStatus.OK, "", 0)
    peer.swap()

    assert [(event.call, event.text.startswith(text)) for event in cancelled] == [(bad, True)]
    assert peer.answer(bad) == (None, b"", ErrorCodes.CANCEL)
    assert peer.has_ended(good)
    assert (peer.server.ended, peer.server.received_bytes) == (None, 0)


def test_a_bomb_of_gzip_is_not_unpacked():
    peer = H2Peer(message_bytes=MIB)
    call = peer.call(framed(gzip.compress(b"x" * (3 * MIB)), 1), grpc_encoding="gzip")

    assert peer.swap()[1:] == [CallCancelled(call, f"gRPC message exceeds maximum size {MIB}: {MIB + 1}")]


def test_a_message_is_unpacked_while_it_arrives():
    packed = gzip.compress(b"x" * (12 * MIB))
    peer = H2Peer(window_bytes=MIB)
    call = peer.call(framed(packed, 1)[:-100], grpc_encoding="gzip", ends=False)
    peer.swap()

    assert 4 * MIB < peer.server.received_bytes < 12 * MIB
    peer.h2.send_data(call, framed(packed, 1)[-100:], end_stream=True)
    received = [len(event.message) for event in peer.swap() if isinstance(event, MessageReceived)]
    assert received == [12 * MIB]


def test_what_is_unpacked_counts_as_what_has_arrived():
    peer = H2Peer(received_bytes=2 * MIB)
    peer.call(framed(gzip.compress(b"x" * (5 * MIB)), 1)[:-1], grpc_encoding="gzip", ends=False)

    assert peer.swap()[-1] == ConnectionEnded(f"more than {2 * MIB} bytes of messages wait", is_fault=True)


def test_others_go_on_before_the_next_message_is_unpacked():
    peer = H2Peer()
    message = framed(gzip.compress(b"x" * (4 * MIB)), 1)
    for _ in range(3):
        peer.call(message, grpc_encoding="gzip")
    events = peer.server.receive(peer.h2.data_to_send(), 0)
    rounds = [sum(isinstance(event, MessageReceived) for event in events)]
    while peer.server.is_behind:
        rounds.append(sum(isinstance(event, MessageReceived) for event in peer.server.go_on(0)))

    assert rounds == [1, 1, 1, 0]


def test_more_metadata_than_allowed_is_answered_431():
    peer = H2Peer()
    call = peer.call(framed(b"x"), x_a="a" * 9_000)
    events = peer.swap()

    assert events == []
    assert peer.answer(call)[0] == {b":status": b"431"}
    assert peer.server.ended is None


def test_a_long_text_of_a_status_is_cut():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.end(call, GrpcStatus.INTERNAL, "ü" * 5_000, 0)
    peer.swap()

    assert peer.answer(call)[0][b"grpc-message"] == b"%C3%BC" * 2_048
