"""A server of gRPC and its client over bytes in memory, in virtual time: instants are exact."""

import pytest
import trio

from emulator.guests.grpc.handlers import StreamMethod
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.status import GrpcError, GrpcStatus
from support.grpc_world import BYTES, in_virtual_time

MIB = 1024 * 1024


async def _error_of(call, *arguments, **options):
    with pytest.raises(GrpcError) as caught:
        await call(*arguments, **options)
    return caught.value.status, caught.value.text


def test_a_unary_call_is_answered():
    async def scene(stage):
        return await stage.client.unary("s/Echo", b"x" * (4 * MIB))

    assert in_virtual_time(scene) == b"x" * (4 * MIB)


def test_a_handler_sees_metadata_addresses_and_the_time_that_is_left():
    async def scene(stage):
        return await stage.client.unary("s/Context", b"", {"x-mq-client-id": "c"}, timeout_ms=3_000)

    shown = (3_000.0, 2_900.0, "proxy:8081", {"x-mq-client-id": "c"})
    assert in_virtual_time(scene) == repr(shown).encode()


def test_responses_of_a_stream_come_one_after_the_other():
    async def scene(stage):
        call = stage.client.open("s/Count")
        call.send(b"3")
        call.half_close()
        seen = []
        while (message := await call.receive()) is not None:
            seen.append((stage.now_ms(), message))
        return seen, stage.now_ms()

    assert in_virtual_time(scene) == ([(0.0, b"0"), (10.0, b"1"), (20.0, b"2")], 30.0)


def test_both_sides_of_a_bidirectional_call_send_as_they_like():
    async def scene(stage):
        call = stage.client.open("s/Chat")
        call.send(b"a")
        first = await call.receive()
        call.send(b"b")
        second = await call.receive()
        call.half_close()
        return first, second, await call.receive(), await call.receive()

    assert in_virtual_time(scene) == (b"A", b"B", b"bye", None)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("s/Nope", (GrpcStatus.UNIMPLEMENTED, "Method not found: s/Nope")),
        ("s/Refuse", (GrpcStatus.INVALID_ARGUMENT, "x")),
        ("s/Fail", (GrpcStatus.INTERNAL, "'boom'")),
        ("s/Unreadable", (GrpcStatus.UNKNOWN, "")),
    ],
)
def test_a_call_that_fails_has_the_status_of_grpc_java(path, error):
    async def scene(stage):
        return await _error_of(stage.client.unary, path, b"x"), stage.calls.failed

    seen, failed = in_virtual_time(scene)
    assert seen == error
    assert failed == ([("s/Fail", "KeyError('boom')")] if path == "s/Fail" else [])


@pytest.mark.parametrize(
    ("messages", "text"), [((), "Half-closed without a request"), ((b"a", b"b"), "Too many requests")]
)
def test_a_unary_call_has_exactly_one_request(messages, text):
    async def scene(stage):
        call = stage.client.open("s/Echo")
        for message in messages:
            call.send(message)
        call.half_close()
        return await _error_of(call.receive)

    assert in_virtual_time(scene) == (GrpcStatus.INTERNAL, text)


def test_a_call_ends_at_its_deadline_and_its_handler_is_cancelled():
    async def scene(stage):
        error = await _error_of(stage.client.unary, "s/Hold", b"", timeout_ms=250)
        ended_ms = stage.now_ms()
        await stage.client_host.sleep_ms(1)
        return error, ended_ms, stage.calls.seen, await stage.client.unary("s/Echo", b"next")

    assert in_virtual_time(scene) == ((GrpcStatus.DEADLINE_EXCEEDED, ""), 250.0, ["held", "cancelled"], b"next")


def test_the_server_ends_a_call_at_the_deadline_where_the_client_does_not():
    async def scene(stage):
        stage.client_host.freeze()  # its timers wait; the bytes in memory do not
        call = stage.client.open("s/Hold", timeout_ms=250)
        call.send(b"")
        call.half_close()
        error = await _error_of(call.receive)
        return error, stage.now_ms(), stage.calls.seen

    assert in_virtual_time(scene) == (
        (GrpcStatus.CANCELLED, "the peer has reset the call"),
        250.0,
        ["held", "cancelled"],
    )


def test_a_client_that_cancels_a_call_cancels_its_handler():
    async def scene(stage):
        call = stage.client.open("s/Chat")
        call.send(b"a")
        await call.receive()
        call.cancel()
        await stage.client_host.sleep_ms(1)
        return stage.calls.seen, await _error_of(call.receive)

    assert in_virtual_time(scene) == (["cancelled"], (GrpcStatus.CANCELLED, ""))


def test_a_client_that_leaves_cancels_its_handlers_and_the_server_ends():
    async def scene(stage):
        call = stage.client.open("s/Chat")
        call.send(b"a")
        await call.receive()
        await stage.client_stream.aclose()
        await stage.client_host.sleep_ms(1)
        return stage.calls.seen, stage.server_ended_ms, stage.calls.faults

    assert in_virtual_time(scene) == (["cancelled"], 0.0, [])


def test_a_sender_waits_until_the_client_has_read():
    async def scene(stage):
        call = stage.client.open("s/Large")
        call.send(b"5")
        call.half_close()
        await stage.client_host.sleep_ms(1)
        before = len(stage.calls.seen)
        sizes = []
        while (message := await call.receive()) is not None:
            sizes.append(len(message))
        return before, len(stage.calls.seen), sizes, stage.calls.unsent_bytes_max

    before, after, sizes, unsent_bytes_max = in_virtual_time(scene)
    assert before < 3
    assert 1_000_000 < unsent_bytes_max < 1_100_000
    assert (after, sizes) == (5, [1_000_000] * 5)


def test_a_client_waits_while_a_handler_reads_nothing():
    async def scene(stage):
        call = stage.client.open("s/Deaf")
        for _ in range(10):
            call.send(b"x" * 500_000)
        with trio.CancelScope() as scope:
            stage.client_host.call_later_ms(1_000, scope.cancel)
            await call.until_ready()
        return scope.cancelled_caught, stage.server.connection.received_bytes

    waited, received_bytes = in_virtual_time(scene)
    assert waited
    assert 500_000 <= received_bytes <= 2 * MIB


def test_a_connection_without_calls_ends_after_its_idle_time():
    async def scene(stage):
        await stage.client_host.sleep_ms(50_000)
        await stage.client.unary("s/Echo", b"x")
        await stage.client_host.sleep_ms(200_000)
        return stage.server_ended_ms, await _error_of(stage.client.unary, "s/Echo", b"x")

    assert in_virtual_time(scene) == (170_000.0, (GrpcStatus.UNAVAILABLE, "the peer has sent GOAWAY: max_idle"))


def test_a_connection_with_an_open_call_is_never_idle():
    async def scene(stage):
        call = stage.client.open("s/Chat")
        call.send(b"a")
        await stage.client_host.sleep_ms(500_000)
        call.send(b"b")
        seen = await call.receive(), await call.receive()
        call.half_close()
        await call.receive()
        await stage.client_host.sleep_ms(500_000)
        return seen, stage.server_ended_ms

    assert in_virtual_time(scene) == ((b"A", b"B"), 620_000.0)


def test_a_connection_that_drains_serves_its_open_calls():
    async def scene(stage):
        call = stage.client.open("s/Chat")
        call.send(b"a")
        await call.receive()
        stage.server.drain("app_requested")
        await stage.client_host.sleep_ms(1_000)
        refused = await _error_of(stage.client.unary, "s/Echo", b"x")
        call.send(b"b")
        served = await call.receive()
        call.half_close()
        await call.receive()
        await stage.client_host.sleep_ms(1_000)
        return refused, served, stage.server_ended_ms

    unavailable = (GrpcStatus.UNAVAILABLE, "the peer has sent GOAWAY: app_requested")
    assert in_virtual_time(scene) == (unavailable, b"B", 1_000.0)


def test_a_client_that_reads_nothing_loses_its_connection():
    async def scene(stage):
        call = stage.client.open("s/Flood")
        call.send(b"50")
        call.half_close()
        await stage.client_host.sleep_ms(5_000)
        return stage.calls.faults, stage.server_ended_ms

    async def flood(_context, request, responses):
        for _ in range(int(request)):
            responses.send(b"z" * 1_000_000)

    async def with_flood(stage):
        stage.calls.methods["s/Flood"] = StreamMethod(BYTES, flood)
        return await scene(stage)

    faults, ended_ms = in_virtual_time(with_flood, GrpcLimits(unsent_bytes=10 * MIB))
    assert [text.startswith("it has not read 1") for text in faults] == [True]
    assert ended_ms == 0.0
