"""Floods of HTTP/2 on the port of a proxy: each ends its own connection with one row; another client is served."""

import gc
import struct
from contextlib import closing

import pytest
import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes

from emulator.guests.grpc.messages import message_class
from emulator.guests.grpc.server import GrpcServer
from nodes.protocol.v2.enums import Code
from support.dialed_node import malformed
from support.dialed_proxy import SERVICE, live_proxy, plain_channel
from support.h2_peer import frame, framed, headers
from support.limited import limit

HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 1, 3, 4, 6, 8, 9
QUERY_ROUTE = message_class("QueryRouteRequest")(topic={"name": "t"})
ROUTE, RECEIVE, HEARTBEAT = (SERVICE + name for name in ("QueryRoute", "ReceiveMessage", "Heartbeat"))


class RawClient:
    """A client of HTTP/2 that may do what no library does."""

    def __init__(self, stream):
        self.stream = stream
        self.h2 = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
        self.h2.initiate_connection()

    def call(self, path, message=b"", *, ends=True):
        call = self.h2.get_next_available_stream_id()
        self.h2.send_headers(call, headers(_path=path, x_mq_client_id="c"))
        self.h2.send_data(call, framed(message), end_stream=ends)
        return call

    async def flush(self, more=b""):
        await self.stream.send_all(self.h2.data_to_send() + more)

    async def until_closed(self):
        """Read until the server closes; returns the last bytes."""
        last = b""
        while chunk := await self.stream.receive_some():
            last = (last + chunk)[-100:]
        return last


async def rapid_reset(client):
    for _ in range(700):
        client.h2.reset_stream(client.call(ROUTE))
    await client.flush()


async def settings(client):
    await client.flush(frame(SETTINGS) * 1_000)


async def pings(client):
    await client.flush(frame(PING, 0, 0, b"12345678") * 1_000)


async def continuations(client):
    await client.flush(frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, b"x" * 1_000) * 40)


async def window_updates(client):
    await client.flush(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 4_000)


async def overflowing_window(client):
    await client.flush(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)))


FLOODS = {
    rapid_reset: "too many calls that were reset",
    settings: "too many SETTINGS frames",
    pings: "too many PING frames",
    continuations: "more than 8 CONTINUATION frames for one call",
    window_updates: "too many WINDOW_UPDATE frames",
    overflowing_window: "not HTTP/2: FlowControlError",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_its_own_connection_with_one_row(flood):
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            first = await stage.call("QueryRoute", QUERY_ROUTE, channel=channel)
            stream = await trio.open_tcp_stream(stage.physical, 8_081)
            async with stream:
                client = RawClient(stream)
                await flood(client)
                last = await client.until_closed()
            second = await stage.call("QueryRoute", QUERY_ROUTE, channel=channel)
        return first.status.code, second.status.code, last, await stage.all_is_well()

    executed = live_proxy(scene)
    first, second, last, is_well = executed.result
    assert (first, second, is_well) == (Code.OK, Code.OK, True)
    rows = malformed(executed)
    assert len(rows) == 1
    assert FLOODS[flood] in rows[0]
    assert rows[0].encode() in last or flood is overflowing_window  # a GOAWAY frame has the reason


def test_a_slow_reader_loses_its_connection_when_too_much_waits_for_it():
    async def scene(stage):
        limit(stage, unsent_bytes=300_000)
        stage.body, stage.received = b"x" * 1_000_000, 1
        stream = await trio.open_tcp_stream(stage.physical, 8_081)
        async with stream:
            client = RawClient(stream)
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
            for _ in range(3):
                client.call(RECEIVE)
            await client.flush()
            await client.until_closed()
        return await stage.all_is_well()

    executed = live_proxy(scene)
    assert executed.result
    assert [row.startswith("it has not read 1000") for row in malformed(executed)] == [True]


def test_guests_that_hold_unread_answers_together_lose_the_connection_with_the_most():
    async def scene(stage):
        limit(stage, all_unsent_bytes=1_500_000)
        stage.received = 1
        async with await trio.open_tcp_stream(stage.physical, 8_081) as first:
            large = await _unread_answer(stage, first, 1_000_000)
            while not stage.world.guests.budget.unsent.total_bytes:
                await trio.lowlevel.checkpoint()
            async with await trio.open_tcp_stream(stage.physical, 8_081) as second:
                await _unread_answer(stage, second, 700_000)
                await large.until_closed()

    executed = live_proxy(scene)
    assert len(malformed(executed)) == 1
    assert "guests hold more than 1500000 bytes of frames that they do not read" in malformed(executed)[0]


async def _unread_answer(stage, stream, body_bytes):
    """Make a call and leave its answer unread, with a PING frame behind it, so that something happens later."""
    stage.body = b"x" * body_bytes
    client = RawClient(stream)
    client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    client.call(RECEIVE)
    await client.flush()
    return client


def test_half_messages_of_all_guests_together_are_bounded():
    async def scene(stage):
        limit(stage, unfinished_bytes=100_000)
        stream = await trio.open_tcp_stream(stage.physical, 8_081)
        async with stream:
            client = RawClient(stream)
            for _ in range(8):
                call = client.h2.get_next_available_stream_id()
                client.h2.send_headers(call, headers(_path=HEARTBEAT))
            await client.flush()
            client.h2.receive_data(await stream.receive_some())  # with windows for the rest
            for call in range(1, 16, 2):
                client.h2.send_data(call, struct.pack(">BI", 0, 1_000_000) + b"x" * 6_000)
            await client.flush()
            for call in range(1, 16, 2):
                client.h2.send_data(call, b"x" * 8_000)
            await client.flush()
            await client.until_closed()
        return await stage.all_is_well()

    executed = live_proxy(scene)
    assert executed.result
    assert "more than 100000 bytes" in malformed(executed)[0]


def test_a_call_that_never_sends_its_message_takes_no_one_s_time():
    async def scene(stage):
        stream = await trio.open_tcp_stream(stage.physical, 8_081)
        async with stream:
            client = RawClient(stream)
            for _ in range(900):
                client.h2.send_headers(client.h2.get_next_available_stream_id(), headers(_path=ROUTE))
            await client.flush()
            with closing(plain_channel(stage)) as channel:
                response = await stage.call("QueryRoute", QUERY_ROUTE, channel=channel)
        return response.status.code

    assert live_proxy(scene).result == Code.OK


def test_the_calls_of_a_connection_that_has_ended_are_freed_while_the_node_holds_its_end():
    async def scene(stage):
        for _ in range(5):
            async with await trio.open_tcp_stream(stage.physical, 8_081) as stream:
                client = RawClient(stream)
                client.call(ROUTE, QUERY_ROUTE.SerializeToString())
                await client.flush()
                await stream.receive_some()
        while stage.process.endpoints:
            await trio.lowlevel.checkpoint()
        gc.collect()
        return sum(isinstance(held, GrpcServer) for held in gc.get_objects())

    assert live_proxy(scene).result == 0
