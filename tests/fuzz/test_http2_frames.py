"""Random HTTP/2 on the server's end of a connection: it is read, or ends the connection with a reason."""

from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.guests.grpc.connection import CallStarted, ConnectionEnded, MessageReceived
from emulator.guests.grpc.floods import PREFACE
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server_connection import ServerConnection
from emulator.guests.grpc.status import ConnectionLimitError, GrpcStatus
from fuzz.http2_frames import RandomClient, frames_in

FRAMES = 2_000
LIMITS = GrpcLimits(received_bytes=2_000_000, unsent_bytes=2_000_000)
NS_PER_FRAME = 5_000_000


class Served:
    """A connection whose server does anything."""

    def __init__(self, chance, now_ns):
        self._chance = chance
        self.connection = ServerConnection(LIMITS, now_ns)
        self.events = Counter()
        self.ends = []
        self._untaken = []

    def receive(self, chunk, now_ns):
        for event in self.connection.receive(chunk, now_ns):
            self.events[type(event).__name__] += 1
            if isinstance(event, MessageReceived):
                self._untaken.append(event)
            elif isinstance(event, ConnectionEnded):
                self.ends.append(event.text)
            elif isinstance(event, CallStarted):
                assert event.head.path
        self._act(now_ns)
        self.connection.bytes_to_send()
        assert self.connection.received_bytes >= 0
        assert self.connection.unsent_bytes >= 0
        assert self.connection.ended is None or not self.connection.calls

    def _act(self, now_ns):
        connection, chance = self.connection, self._chance
        while self._untaken and chance.random() < 0.8:
            event = self._untaken.pop(0)
            connection.on_taken(event.call, event.message)
        for call in list(connection.calls):
            match chance.randrange(8):
                case 0:
                    with suppress(ConnectionLimitError):
                        connection.send_message(call, b"x" * chance.choice((0, 10, 100_000)))
                case 1:
                    connection.end(call, chance.choice(list(GrpcStatus)), "text ü", now_ns)
                case 2 if chance.random() < 0.1:
                    connection.reset(call)


@pytest.mark.parametrize("seed", range(4))
def test_random_frames_are_read_or_end_their_connection(seed):
    chance = Random(f"http2 {seed}")
    client, now_ns, frames, ends, events = RandomClient(chance), 0, 0, [], Counter()
    served = None
    while frames < FRAMES:
        if served is None or served.connection.ended is not None or client.is_used_up:
            served = Served(chance, now_ns)
            served.receive(client.begin(), now_ns)
        chunk = client.frames()
        now_ns += NS_PER_FRAME
        frames += frames_in(chunk)
        cut = chance.randrange(len(chunk) + 1)
        served.receive(chunk[:cut], now_ns)
        served.receive(chunk[cut:], now_ns)
        ends += served.ends
        events += served.events
        served.ends, served.events = [], Counter()

    assert events["CallStarted"] > FRAMES / 10, "most frames are read"
    assert 0 < len(ends) < FRAMES / 20
    assert [text for text in ends if not text] == []


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
def test_any_bytes_behind_the_preface_are_read_or_end_the_connection(chunks, begins):
    connection = ServerConnection(LIMITS, 0)
    connection.receive(PREFACE if begins else b"", 0)
    for chunk in chunks:
        events = connection.receive(chunk, 0)
        connection.bytes_to_send()

        assert connection.ended is None or connection.ended.text
        assert connection.ended is None or not events or events[-1] is connection.ended
