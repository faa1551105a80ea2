"""Calls on a connection without I/O, with `h2` as the client: messages, windows, ends, and how a connection drains."""

import gzip

import pytest
from h2.errors import ErrorCodes
from hypothesis import given
from hypothesis import strategies as st

from emulator.guests.grpc.connection import CallCancelled, CallStarted, ConnectionEnded, HalfClosed, MessageReceived
from emulator.guests.grpc.status import ConnectionLimitError, GrpcStatus
from support.h2_peer import H2Peer, frame, framed

MIB = 1024 * 1024
OK = {b"grpc-status": b"0"}


def test_a_unary_call_has_a_head_one_message_and_an_answer_with_trailers():
    peer = H2Peer()
    call = peer.call(framed(b"question"), x_mq_client_id="c@1", grpc_timeout="3S")
    started, message, closed = peer.swap()
    peer.server.send_message(call, b"answer")
    peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()

    assert (started.head.path, started.head.timeout_ns, started.head.authority) == ("s/M", 3_000_000_000, "h:1")
    assert dict(started.head.metadata) == {"x-mq-client-id": "c@1"}
    assert (message, closed) == (MessageReceived(call, b"question"), HalfClosed(call))
    headers, data, trailers = peer.answer(call)
    assert headers == {
        b":status": b"200",
        b"content-type": b"application/grpc",
        b"grpc-encoding": b"identity",
        b"grpc-accept-encoding": b"gzip",
    }
    assert (data, trailers) == (framed(b"answer"), OK)


def test_an_error_without_an_answer_is_one_frame_of_headers():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.end(call, GrpcStatus.INVALID_ARGUMENT, "falsch ü % x", 0)
    peer.swap()

    headers, data, trailers = peer.answer(call)
    assert (headers[b"grpc-status"], headers[b"grpc-message"]) == (b"3", b"falsch %C3%BC %25 x")
    assert (data, trailers, peer.has_ended(call)) == (b"", None, True)


def test_messages_of_a_stream_arrive_in_order_in_both_directions():
    peer = H2Peer()
    call = peer.call(framed(b"a") + framed(b"b"), ends=False)
    peer.swap()
    peer.server.send_message(call, b"1")
    peer.server.send_message(call, b"2")
    peer.swap()
    peer.h2.send_data(call, framed(b"c"), end_stream=True)
    peer.swap()
    peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()

    received = [event.message for event in peer.events if isinstance(event, MessageReceived)]
    assert (received, peer.events[-1]) == ([b"a", b"b", b"c"], HalfClosed(call))
    assert peer.answer(call)[1:] == (framed(b"1") + framed(b"2"), OK)


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 40))
def test_messages_are_found_however_their_bytes_are_cut(messages, piece_bytes):
    peer = H2Peer()
    call = peer.call(ends=False)
    stream = b"".join(map(framed, messages))
    for place in range(0, len(stream), piece_bytes):
        peer.h2.send_data(call, stream[place : place + piece_bytes])
    peer.h2.end_stream(call)
    peer.swap()

    assert peer.events[1:] == [*(MessageReceived(call, message) for message in messages), HalfClosed(call)]


@given(st.integers(1, 60))
def test_events_are_found_however_the_bytes_of_the_connection_are_cut(piece_bytes):
    peer = H2Peer()
    call = peer.call(framed(b"x" * 500), x_a="b" * 300)
    chunk = peer.h2.data_to_send()
    for place in range(0, len(chunk), piece_bytes):
        peer.raw(chunk[place : place + piece_bytes])

    assert peer.events[1:] == [MessageReceived(call, b"x" * 500), HalfClosed(call)]
    assert peer.server.received_bytes == 500


def test_a_message_longer_than_the_windows_arrives_while_no_handler_has_taken_it():
    peer = H2Peer()
    call = peer.call(ends=False)
    _send_large(peer, call, framed(b"x" * (4 * MIB)))

    assert peer.events[-1] == MessageReceived(call, b"x" * (4 * MIB))


def test_a_client_waits_while_no_handler_takes_its_messages():
    peer = H2Peer()
    call = peer.call(framed(b"x"), ends=False)
    peer.swap()
    sent_bytes = _send_large(peer, call, framed(b"y" * (2 * MIB)))
    for event in list(peer.events):
        if isinstance(event, MessageReceived):
            peer.server.on_taken(call, event.message)
    peer.swap()
    rest_bytes = _send_large(peer, call, framed(b"y" * (2 * MIB))[sent_bytes:])

    assert sent_bytes < MIB
    assert sent_bytes + rest_bytes == 2 * MIB + 5
    assert peer.events[-1] == MessageReceived(call, b"y" * (2 * MIB))


def _send_large(peer, call, data):
    """Send as the windows allow; returns how many bytes they have let pass."""
    sent_bytes = 0
    while sent_bytes < len(data) and (window_bytes := peer.h2.local_flow_control_window(call)) > 0:
        piece = data[sent_bytes : sent_bytes + min(window_bytes, 16_384)]
        peer.h2.send_data(call, piece)
        sent_bytes += len(piece)
        peer.swap()
    return sent_bytes


def test_a_large_answer_waits_for_the_client_s_windows_and_then_its_trailers_come():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.send_message(call, b"z" * (4 * MIB))
    peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()
    waits_bytes = peer.server.unsent_bytes
    while not peer.has_ended(call):
        peer.h2.increment_flow_control_window(50_000)
        peer.h2.increment_flow_control_window(50_000, call)
        peer.swap()

    assert waits_bytes == 4 * MIB + 5 - 65_535
    assert peer.answer(call)[1:] == (framed(b"z" * (4 * MIB)), OK)
    assert peer.server.unsent_bytes == 0


def test_calls_take_turns_so_a_large_answer_holds_no_small_one_up():
    peer = H2Peer()
    large, small = peer.call(framed(b"x")), peer.call(framed(b"x"))
    peer.swap()
    peer.server.send_message(large, b"z" * MIB)
    peer.server.send_message(small, b"answer")
    peer.server.end(small, GrpcStatus.OK, "", 0)
    peer.swap()

    assert (peer.has_ended(small), peer.has_ended(large)) == (True, False)


def test_a_call_whose_own_window_is_empty_holds_no_other_up():
    peer = H2Peer()
    peer.h2.update_settings({4: 0})
    blocked, other = peer.call(framed(b"x")), peer.call(framed(b"x"))
    peer.swap()
    peer.h2.increment_flow_control_window(100, other)
    for call in (blocked, other):
        peer.server.send_message(call, b"answer")
        peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()
    before = peer.has_ended(blocked), peer.has_ended(other)
    peer.h2.update_settings({4: 100})
    peer.swap()

    assert before == (False, True)
    assert peer.has_ended(blocked)


def test_a_call_is_ready_again_once_the_client_has_read():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    first = peer.server.is_ready(call)
    peer.server.send_message(call, b"z" * 200_000)
    full = peer.server.is_ready(call)
    for _ in range(4):
        peer.swap()
        peer.h2.increment_flow_control_window(50_000)
        peer.h2.increment_flow_control_window(50_000, call)
    peer.swap()

    assert (first, full, peer.server.is_ready(call)) == (True, False, True)


def test_a_call_that_the_client_resets_is_cancelled_and_its_answer_is_dropped():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.send_message(call, b"z" * MIB)
    peer.h2.reset_stream(call, ErrorCodes.CANCEL)
    events = peer.swap()
    peer.server.send_message(call, b"late")
    peer.server.end(call, GrpcStatus.OK, "", 0)

    assert events == [CallCancelled(call, "the peer has reset the call")]
    assert (peer.server.unsent_bytes, peer.server.is_idle) == (0, True)


def test_a_call_that_ends_early_takes_the_rest_of_its_messages_and_frees_the_windows():
    peer = H2Peer()
    call = peer.call(framed(b"x"), ends=False)
    peer.swap()
    peer.server.end(call, GrpcStatus.UNIMPLEMENTED, "Method not found: s/M", 0)
    peer.swap()

    assert _send_large(peer, call, framed(b"y" * (3 * MIB))) == 3 * MIB + 5
    assert (peer.server.received_bytes, peer.server.ended) == (0, None)


def test_compressed_messages_are_read():
    peer = H2Peer()
    call = peer.call(framed(gzip.compress(b"hello"), 1) + framed(b"plain"), grpc_encoding="gzip")

    assert peer.swap()[1:] == [MessageReceived(call, b"hello"), MessageReceived(call, b"plain"), HalfClosed(call)]


def test_a_ping_is_answered():
    peer = H2Peer()
    peer.h2.ping(b"12345678")
    peer.swap()

    assert [event.ping_data for event in peer.seen if type(event).__name__ == "PingAckReceived"] == [b"12345678"]


@pytest.mark.parametrize("begins", [True, False])
def test_a_connection_that_drains_serves_calls_until_the_client_knows_and_refuses_later_ones(begins):
    peer = H2Peer()
    old = peer.call(framed(b"x"))
    peer.swap()
    peer.server.drain("max_idle")
    meanwhile = peer.call(framed(b"x")) if begins else None
    drained_early = peer.server.is_drained
    peer.raw(peer.h2.data_to_send())
    _answer_ping(peer)
    late = peer.h2.get_next_available_stream_id()
    for call in filter(None, (old, meanwhile)):
        peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.server.bytes_to_send()

    assert not drained_early
    assert peer.server.is_drained
    peer.h2.send_headers(late, [(":method", "POST"), (":path", "/s/M"), (":scheme", "http"), (":authority", "h")])
    peer.raw(b"")
    assert late not in [event.call for event in peer.events if isinstance(event, CallStarted)]
    assert peer.server.bytes_to_send()[3] == 3  # RST_STREAM


def _answer_ping(peer):
    """Read as a client does that does not act on GOAWAY at once."""
    chunk = peer.server.bytes_to_send()
    assert b"max_idle" in chunk
    peer.raw(bytes((0, 0, 8, 6, 1, 0, 0, 0, 0)) + b"draining")


def test_the_end_of_the_stream_of_bytes_ends_the_connection_once():
    peer = H2Peer()
    peer.call(framed(b"x"), ends=False)
    peer.swap()

    assert peer.server.on_stream_end() == [ConnectionEnded("the stream of bytes has ended", is_fault=True)]
    assert peer.server.on_stream_end() == []
    assert peer.server.receive(b"more", 0) == []


def test_a_goaway_of_the_client_ends_the_connection_without_blame_when_its_calls_have_ended():
    peer = H2Peer()
    call = peer.call(framed(b"x"))
    peer.swap()
    goaway = frame(7, 0, 0, bytes(8) + b"bye")
    before = peer.raw(goaway)
    peer.server.end(call, GrpcStatus.OK, "", 0)
    peer.swap()

    assert (before, peer.has_ended(call)) == ([], True)
    assert peer.raw(goaway) == [ConnectionEnded("the peer has sent GOAWAY: bye", is_fault=False)]


def test_a_client_that_reads_nothing_loses_its_connection_when_too_much_waits():
    peer = H2Peer(unsent_bytes=MIB)
    call = peer.call(framed(b"x"))
    peer.swap()
    peer.server.send_message(call, b"z" * (3 * MIB))  # one message may be longer than the limit
    with pytest.raises(ConnectionLimitError, match=r"it has not read 3\d{6} bytes"):
        peer.server.send_message(call, b"z")

    assert peer.reason().startswith("it has not read")
